package sqlite_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	modernc "modernc.org/sqlite"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

func pragma(t *testing.T, s *sqlite.Store, text string) {
	t.Helper()
	err := sqlite.OnWriter(s, func(conn any) error {
		_, err := conn.(driver.ExecerContext).ExecContext(context.Background(), "PRAGMA "+text, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, what string, err error, kind job.Kind, code string) {
	t.Helper()
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Kind != kind || e.Code != code {
		t.Errorf("%s: %v (%v), should be %s %s", what, err, job.KindOf(err), kind, code)
	}
}

// large is a batch that needs pages.
func large(seq int64) *engine.Batch {
	e, sh := benchRows(seq)
	e.Params = []byte(`"` + strings.Repeat("x", 200_000) + `"`)
	return &engine.Batch{Seq: seq, Executions: []engine.ExecutionWrite{{Row: e}}, Shards: []engine.ShardWrite{{Row: sh}}}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	s, f := owned(t, filepath.Join(t.TempDir(), "takt.db"))
	pragma(t, s, "max_page_count = 60")
	err := s.Commit(t.Context(), f, large(1))
	wantError(t, "Commit", err, job.KindUnavailable, "disk_full")
	if e, ok := errors.AsType[*job.Error](err); ok && e.Hint == "" {
		t.Error("no hint")
	}
	if _, err := s.RenewPartition(t.Context(), f); err != nil {
		t.Errorf("RenewPartition, which needs no page: %v", err)
	}
	pragma(t, s, "max_page_count = 1000000")
	if err := s.Commit(t.Context(), f, large(1)); err != nil {
		t.Errorf("Commit with space again: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	s, f := owned(t, filepath.Join(t.TempDir(), "takt.db"))
	pragma(t, s, "query_only = 1")
	wantError(t, "Ping", s.Ping(t.Context()), job.KindUnavailable, "not_writable")
	wantError(t, "Commit", s.Commit(t.Context(), f, large(1)), job.KindUnavailable, "not_writable")
	if _, err := s.LoadPartition(t.Context(), 0); err != nil {
		t.Errorf("LoadPartition: %v", err)
	}
}

// A COMMIT that fails for any reason but BUSY is unknown, and the store goes on with the next transaction.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	s, f := owned(t, filepath.Join(t.TempDir(), "takt.db"))
	failing := true
	if err := sqlite.OnWriter(s, func(conn any) error {
		conn.(modernc.HookRegisterer).RegisterCommitHook(func() int32 {
			if failing {
				return 1
			}
			return 0
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	wantError(t, "Commit", s.Commit(t.Context(), f, large(1)), job.KindUnknown, "commit_unknown")
	failing = false
	rows, err := s.PartitionRows(t.Context())
	if err != nil || rows[0].Seq != 0 {
		t.Fatalf("after the failure: %v, %v", rows, err)
	}
	if err := s.Commit(t.Context(), f, large(1)); err != nil {
		t.Errorf("Commit again: %v", err)
	}
}

// Data that breaks a constraint is rejected, and nothing of it stays.
func TestConstraint(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "takt.db"))
	put := func(name string) error {
		_, _, err := s.PutJob(t.Context(), store.PutJob{Definition: job.Definition{UID: job.UID{1}, Namespace: "ns", Name: name}})
		return err
	}
	if err := put("a"); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a second job with the uid", put("b"), job.KindRejected, "data_refused")
	_, err := s.Job(t.Context(), "ns", "b")
	wantError(t, "Job", err, job.KindNotFound, "job_not_found")
	page, err := s.InboxPage(t.Context(), 0, 10)
	if err != nil || len(page.Entries) != 1 {
		t.Errorf("inbox: %v, %v", page.Entries, err)
	}
}
