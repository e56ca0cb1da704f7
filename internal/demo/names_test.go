package demo_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/demo"
)

// A name that is no UTF-8 must come through JSON as the name that the audit looks for.
func TestNamesThatAreNoUTF8(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "z": "2"})
	odd := "bad\xff\nname"
	if err := os.WriteFile(filepath.Join(dir, odd), []byte("x"), 0o600); err != nil {
		if runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Skip("this file system takes no such name")
	}
	paths, err := demo.Walk(t.Context(), dir)
	if err != nil || len(paths) != 3 || paths[1] != odd {
		t.Fatalf("%q %v", paths, err)
	}
	e := demo.Describe(dir, odd)
	if !utf8.ValidString(e.Path) || e.Path != `bad\xff\nname` || e.Error != "" || e.Size != 1 {
		t.Errorf("%+v", e)
	}
}

// Whoever writes into the directory during the run is told so instead of being shown missing files.
func TestStampSeesChanges(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "d/b": "2"})
	stamp := func() string {
		s, err := demo.Stamp(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := stamp()
	if stamp() != before {
		t.Fatal("two looks at the same files differ")
	}
	if err := os.WriteFile(filepath.Join(dir, "d", "b"), []byte("22"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := stamp()
	if changed == before {
		t.Error("a changed file is not seen")
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if stamp() == changed {
		t.Error("a removed file is not seen")
	}
}
