package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// A closed database is one file that only its owner may read: what a backup by copy takes.
func TestCloseLeavesOnePrivateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "takt.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PartitionRows(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Jobs(t.Context(), "default", store.Page{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() != "takt.db" {
			t.Errorf("%s (%d bytes) is left behind", f.Name(), info.Size())
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: others may read it", f.Name(), info.Mode())
		}
	}
}
