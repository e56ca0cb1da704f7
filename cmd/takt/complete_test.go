package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// Names are kept for ten seconds, for one server, namespace and token; no fault of the cache is one of the completion.
func TestNameCache(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
	now := time.Unix(1_800_000_000, 0)
	c := newNameCache("jobs", "http://a", "default")
	if _, known := c.read(now); known {
		t.Error("names before any were kept")
	}
	c.write(now, []cobra.Completion{"x\ty"})
	if names, known := c.read(now.Add(9 * time.Second)); !known || len(names) != 1 || names[0] != "x\ty" {
		t.Errorf("%q, %v", names, known)
	}
	for _, at := range []time.Duration{10 * time.Second, time.Hour, -time.Second} {
		if names, known := c.read(now.Add(at)); known {
			t.Errorf("after %s: %q", at, names)
		}
	}
	for _, other := range []nameCache{newNameCache("jobs", "http://a", "other"), newNameCache("pools", "http://a", "default"), newNameCache("jobshttp://a", "default"), {}} {
		if _, known := other.read(now); known {
			t.Errorf("%+v has names of another", other)
		}
	}
	info, err := os.Stat(c.file)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v: others may read it", info, err)
	}
	if err := os.WriteFile(c.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, known := c.read(now); known {
		t.Error("rubbish is taken for names")
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(c.file), ".names-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	nameCache{file: "/dev/null/x"}.write(now, nil)
	nameCache{}.write(now, nil)
}
