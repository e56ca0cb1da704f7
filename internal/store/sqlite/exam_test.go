package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
	"github.com/taktsched/takt/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// examPartitions is how many the exam asks for.
const examPartitions = 2

// harness opens stores in files of a directory that the test removes: copies of one, for to make its tables takes longer than
// most cases do.
func harness(t *testing.T, change func(*sqlite.Store)) storetest.Harness {
	dir, files := t.TempDir(), new(atomic.Int64)
	open := func(path string, partitions int) (*sqlite.Store, error) {
		return sqlite.Open(context.Background(), sqlite.Config{Path: path, Partitions: partitions, NoSync: true})
	}
	empty := sync.OnceValues(func() ([]byte, error) {
		path := filepath.Join(dir, "empty.db")
		s, err := open(path, examPartitions)
		if err != nil {
			return nil, err
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
		return os.ReadFile(path)
	})
	return storetest.Harness{Seeds: seeds, Open: func(tb storetest.TB, partitions int) store.Store {
		path := filepath.Join(dir, fmt.Sprintf("%d.db", files.Add(1)))
		made, err := empty()
		if err == nil && partitions == examPartitions {
			err = os.WriteFile(path, made, 0o600)
		}
		if err != nil {
			tb.Fatalf("a copy of an empty database: %v", err)
		}
		s, err := open(path, partitions)
		if err != nil {
			tb.Fatalf("Open: %v", err)
		}
		change(s)
		return s
	}}
}

func TestExam(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness(t, func(*sqlite.Store) {}))
}

// TestMutants shows that the exam is no formality: each half of it finds each mutant.
func TestMutants(t *testing.T) {
	unwatched(t)
	t.Parallel()
	for name, change := range sqlite.Mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := harness(t, change)
			h.Seeds = 3
			v := storetest.Judge(h)
			if v.Case == "" || v.History == "" {
				t.Fatalf("the mutant passes: cases say %q, histories say %q", v.Case, v.History)
			}
			t.Logf("killed: %s\nby case: %.300s\nby history: %.300s", name, v.Case, v.History)
		})
	}
}
