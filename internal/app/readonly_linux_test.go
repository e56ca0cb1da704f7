package app_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file system that the kernel makes read-only under the running server, as it does after an error of the disk: a clear
// error, not ready with the reason, what is stored is still read, and nothing acknowledged is lost.
func TestReadOnlyUnderway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dir := t.TempDir()
	image, disk := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) error {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Logf("%s %v: %s", name, args, out)
		}
		return err
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64<<20); err != nil {
		t.Fatal(err)
	}
	if run("mkfs.ext4", "-q", "-F", image) != nil || run("mount", "-o", "loop", image, disk) != nil {
		t.Skip("a file system in a file cannot be mounted here")
	}
	defer func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }() // it may be done already
	data := filepath.Join(disk, "data")
	v := newVictim(t, data)
	for range 3 {
		if p := v.put(1000); p.Code != "" {
			t.Fatalf("on a healthy disk: %+v", p)
		}
	}
	if err := run("mount", "-o", "remount,abort", disk); err != nil {
		t.Skip("this kernel cannot abort a file system")
	}
	p := v.put(10)
	if p.Kind != "unavailable" && p.Kind != "unknown" || p.Hint == "" {
		t.Errorf("read-only: %+v", p)
	}
	if body := v.awaitReadiness(http.StatusServiceUnavailable); !strings.Contains(body, "cannot be written") && !strings.Contains(body, "disk of the database fails") {
		t.Errorf("readyz does not say why: %s", body)
	}
	v.checkStored()
	_ = v.stop() // it cannot write its last words
	if err := syscall.Unmount(disk, 0); err != nil {
		t.Fatalf("the server keeps the disk: %v", err)
	}
	if err := run("mount", "-o", "loop", image, disk); err != nil {
		t.Fatal(err)
	}
	again := newVictim(t, data)
	again.stored = v.stored
	again.checkStored()
	if p := again.put(10); p.Code != "" {
		t.Errorf("writable again: %+v", p)
	}
	if err := again.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
}
