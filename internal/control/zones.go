package control

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

// Zones is the version of the time zone database that this program reads, as Go looks for one: that of the system, such as
// 2025b, else the one that came with the program, such as go1.26.8.
var Zones = sync.OnceValue(func() string {
	dirs := []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}
	if own := os.Getenv("ZONEINFO"); own != "" {
		dirs = append([]string{own}, dirs...)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "Europe")); err != nil {
			continue
		}
		return zonesIn(dir)
	}
	return runtime.Version()
})

var zoneVersion = regexp.MustCompile(`^(# version )?([0-9]{4}[a-z]{1,2})`)

// zonesIn reads the version of the zone files in a directory; a system that does not say is named by its directory.
func zonesIn(dir string) string {
	for _, name := range []string{"+VERSION", "tzdata.zi", "version"} {
		text, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // where Go reads its zones, too
		if err != nil {
			continue
		}
		if m := zoneVersion.FindStringSubmatch(strings.TrimSpace(string(text[:min(len(text), 64)]))); m != nil {
			return m[2]
		}
	}
	return "of " + dir
}

// ZonesMark is Zones as the database keeps it.
func ZonesMark() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(Zones()))
	return int64(h.Sum64() >> 1)
}
