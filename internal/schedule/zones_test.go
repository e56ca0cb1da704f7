package schedule_test

import (
	"archive/zip"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// zoneNames are the zones that Go brings along.
func zoneNames(t *testing.T) (names []string) {
	t.Helper()
	archive, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip")) //nolint:staticcheck // tests run where Go is
	if err != nil {
		t.Skipf("no list of zones: %v", err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	if len(names) < 400 {
		t.Fatalf("%d zones only", len(names))
	}
	return names
}
