package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
	"github.com/taktsched/takt/internal/store/storetest"
)

// harness opens stores in files of one directory that the test removes.
func harness(t *testing.T, change ...func(*sqlite.Store)) storetest.Harness {
	dir := t.TempDir()
	return storetest.Harness{Open: func(tb storetest.TB, partitions int) store.Store {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			tb.Fatalf("directory: %v", err)
		}
		s, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(sub, "takt.db"), Partitions: partitions, NoSync: true})
		if err != nil {
			tb.Fatalf("Open: %v", err)
		}
		for _, f := range change {
			f(s)
		}
		return s
	}}
}

func TestExam(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness(t))
}
