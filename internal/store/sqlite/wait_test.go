package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// A bubble whose goroutines sleep hours and write in between: virtual time passes, the store holds nothing up.
func TestInsideBubble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "takt.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		done := make(chan error)
		for range 5 {
			go func() {
				for range 20 {
					time.Sleep(time.Hour)
					if err := s.Ping(t.Context()); err != nil {
						done <- err
						return
					}
					if _, err := s.PartitionRows(t.Context()); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 5 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took != 20*time.Hour {
			t.Errorf("took %v of virtual time", took)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// lock takes the write lock of the file as another program would.
func lock(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}

// A busy database is asked again by a Go timer: it costs virtual time only, has an end, and honours the context.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "takt.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		release := lock(t, path)
		start := time.Now()
		if err := s.Ping(t.Context()); job.KindOf(err) != job.KindUnavailable {
			t.Errorf("Ping: %v", err)
		}
		if took := time.Since(start); took < time.Second || took > 10*time.Second {
			t.Errorf("gave up after %v", took)
		}
		if _, err := s.PartitionRows(t.Context()); err != nil {
			t.Errorf("a reader was held up: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		if err := s.Ping(short); job.KindOf(err) != job.KindUnavailable {
			t.Errorf("Ping: %v", err)
		}
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("gave up after %v", took)
		}
		time.AfterFunc(500*time.Millisecond, release)
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("Ping after the lock was gone: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Renewals pass everything that queues for the writer, commits pass people.
func TestWriterOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "takt.db")
	synctest.Test(t, func(t *testing.T) {
		s, f := owned(t, path)
		release := sqlite.Block(s)
		order := make(chan string, 4)
		start := func(name string, call func() error) {
			go func() {
				if err := call(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				order <- name
			}()
			synctest.Wait()
		}
		sweep := func() error { _, err := s.SweepRequestKeys(t.Context(), 1, 1); return err }
		start("people", sweep)
		start("people", func() error { return s.Ping(t.Context()) }) // anybody may ask for one
		start("commit", func() error { return s.Commit(t.Context(), f, &engine.Batch{Seq: 1}) })
		start("renew", func() error { _, err := s.RenewPartition(t.Context(), f); return err })

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Commit(impatient, f, &engine.Batch{Seq: 1}); job.KindOf(err) != job.KindUnavailable {
			t.Errorf("a commit that gave up: %v", err)
		}
		if n := sqlite.Waiting(s); n != 4 {
			t.Errorf("%d wait", n)
		}
		release()
		for _, want := range []string{"renew", "commit", "people", "people"} {
			if got := <-order; got != want {
				t.Errorf("%s went before %s", got, want)
			}
		}
	})
}
