package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// A copy that is made while commits go on is one instant of the database, whole, and private.
func TestBackupOnline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, f := owned(t, filepath.Join(dir, "takt.db"))
	ctx, stop := context.WithCancel(t.Context())
	began := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for seq := int64(1); ctx.Err() == nil; seq++ {
			if err := s.Commit(t.Context(), f, large(seq)); err != nil {
				t.Error(err)
				return
			}
			if seq == 5 {
				close(began)
			}
		}
	})
	<-began
	for _, name := range []string{"a.db", "b.db"} {
		path := filepath.Join(dir, name)
		if err := s.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
		}
		wantError(t, "a second backup into the file", s.Backup(t.Context(), path), job.KindConflict, "file_exists")
		if err := sqlite.Verify(t.Context(), path); err != nil {
			t.Error(err)
		}
		back := open(t, path)
		rows, err := back.PartitionRows(t.Context())
		if err != nil || rows[0].Seq < 5 {
			t.Fatalf("%v, %v", rows, err)
		}
		journal, err := back.Journal(t.Context(), 0, 0, 1<<20)
		if err != nil || int64(len(journal)) != rows[0].Seq {
			t.Errorf("seq %d, %d journal rows, %v: not one instant", rows[0].Seq, len(journal), err)
		}
	}
	stop()
	wg.Wait()
}

func TestBackupRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := filepath.Join(dir, "to.db")
	wantError(t, "no database", sqlite.Copy(t.Context(), filepath.Join(dir, "none"), to), job.KindNotFound, "no_database")
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, bytes.Repeat([]byte("junk"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "junk", sqlite.Copy(t.Context(), junk, to), job.KindInvalid, "not_a_database")
	s := open(t, filepath.Join(dir, "takt.db"))
	wantError(t, "no directory", s.Backup(t.Context(), filepath.Join(dir, "none", "to.db")), job.KindUnavailable, "not_writable")
	if _, err := os.Stat(to); err == nil {
		t.Error("a refused copy left a file")
	}
}

func change(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// Inspect tells what is applied, what a start would apply, and what this binary does not know.
func TestInspect(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "takt.db")
	s := open(t, path)
	state, err := sqlite.Inspect(t.Context(), path) // while it is in use
	if err != nil || state.Version != state.Known || state.Ahead != 0 || len(state.Migrations) < 4 || state.Check() != nil {
		t.Errorf("new: %+v, %v", state, err)
	}
	for _, m := range state.Migrations {
		if !m.Applied || m.Name == "" {
			t.Errorf("new: %+v", m)
		}
	}
	known := state.Known
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	change(t, path, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	state, err = sqlite.Inspect(t.Context(), path)
	if err != nil || state.Version >= known || state.Migrations[len(state.Migrations)-1].Applied || state.Check() != nil {
		t.Errorf("behind: %+v, %v", state, err)
	}
	change(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (90001, 1)`)
	if state, err = sqlite.Inspect(t.Context(), path); err != nil || state.Ahead != 1 || state.Version != 90001 || state.Check() != nil {
		t.Errorf("one ahead: %+v, %v", state, err)
	}
	change(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (90002, 1)`)
	if state, err = sqlite.Inspect(t.Context(), path); err != nil || state.Ahead != 2 {
		t.Errorf("two ahead: %+v, %v", state, err)
	}
	wantError(t, "two ahead", state.Check(), job.KindConflict, "database_newer")
}

func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "takt.db")
	s, f := owned(t, path)
	for seq := range int64(20) {
		if err := s.Commit(t.Context(), f, large(seq+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 8192; i < len(raw); i += 4096 {
		copy(raw[i:], "damaged!damaged!damaged!")
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "Verify", sqlite.Verify(t.Context(), path), job.KindUnavailable, "database_damaged")
}
