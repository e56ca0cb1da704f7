package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// What goes in few ways to the database: who waits how long, and what is left behind.

func trigger(n byte) store.Trigger {
	return store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{n})}
}

func putOne(t *testing.T, s *postgres.Store) {
	t.Helper()
	if _, _, err := s.PutJob(t.Context(), put("j", "h", 1, 0)); err != nil {
		t.Fatal(err)
	}
}

// A panic in a transaction, which the API survives, takes no connection out of the pool.
func TestPanicInTransaction(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1, People: 2})
	putOne(t, s)
	bad := trigger(1)
	bad.Merge = func(job.Definition) (json.RawMessage, error) { panic("merge") }
	for range 3 {
		func() {
			defer func() { _ = recover() }()
			_, err := s.Trigger(t.Context(), bad, toFirst)
			t.Errorf("no panic, but %v", err)
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Trigger(ctx, trigger(2), toFirst); err != nil {
		t.Errorf("a trigger after panics: %v", err)
	}
}

// What a page's entries refer to is never of another commit than they are.
func TestCommitAmidInbox(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	putOne(t, both[0])
	f := owner(t, both[0])
	before, err := both[1].InboxPage(t.Context(), 0, 10)
	if err != nil || len(before.Entries) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	postgres.AmidInbox(both[1], func() {
		page, err := both[1].InboxPage(t.Context(), 0, 10)
		if err != nil || page.Seq != f.Seq+1 || len(page.Entries) != 0 {
			t.Errorf("a page that a commit came amid: %+v, %v", page, err)
		}
	}, func() {
		b := next(f)
		b.Consumed = []int64{before.Entries[0].ID}
		if err := both[0].Commit(t.Context(), f, b); err != nil {
			t.Error(err)
		}
	})
}

// A first statement that waits for a lock is no database that stands still, however long it waits.
func TestFirstStatementWaits(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1})
	putOne(t, s)
	if _, err := s.Trigger(t.Context(), trigger(1), toFirst); err != nil { // prepares statements
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `BEGIN; SELECT 1 FROM jobs FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	const begins = 3 * time.Second
	postgres.Hasty(s, begins)
	over := make(chan error, 1)
	go func() {
		_, err := s.Trigger(t.Context(), trigger(2), toFirst)
		over <- err
	}()
	select {
	case err := <-over:
		t.Errorf("a trigger ended while the job was locked: %v", err)
	case <-time.After(2 * begins):
		if _, err := conn.Exec(t.Context(), `COMMIT`); err != nil {
			t.Fatal(err)
		}
		if err := <-over; err != nil {
			t.Errorf("a trigger that waited for a lock: %v", err)
		}
	}
}

// A database that stands still is told of as soon as a transaction does not begin, not when all of its time is over: that is an
// hour here, and the caller's a minute, after which another code would be told.
func TestBeginIntoSilence(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	p := newProxy(t, c.HostPort())
	s := openAt(t, postgres.Config{DSN: through(p, c.Database(t), c), Partitions: 1, OwnerTTL: time.Minute})
	putOne(t, s)
	f := owner(t, s)
	if most := postgres.LongestPing(s); most > 5*time.Second {
		t.Errorf("an idle connection is asked for %v whether it lives, before a transaction begins", most)
	}
	postgres.Bound(s, time.Hour)
	for what, call := range map[string]func(context.Context) error{
		"an inbox": func(ctx context.Context) error { _, err := s.InboxPage(ctx, 0, 10); return err },
		"a look at the inbox before a commit": func(ctx context.Context) error {
			b := next(f)
			b.Consumed = []int64{99}
			return s.Commit(ctx, f, b)
		},
		"a trigger": func(ctx context.Context) error { _, err := s.Trigger(ctx, trigger(1), toFirst); return err },
	} {
		postgres.Hasty(s, time.Hour)                                          // it is there, however busy the machine
		if err := call(t.Context()); job.KindOf(err) == job.KindUnavailable { // makes connections and prepares statements
			t.Fatalf("%s: %v", what, err)
		}
		postgres.Hasty(s, 100*time.Millisecond)
		p.hold()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		wantKind(t, what+" into silence", call(ctx), job.KindUnavailable, "database_silent")
		cancel()
		p.cut()
	}
}

// A caller who goes ends its own wait for a database that stands still.
func TestCallerLeavesSilence(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	p := newProxy(t, c.HostPort())
	s := openAt(t, postgres.Config{DSN: through(p, c.Database(t), c), Partitions: 1, OwnerTTL: time.Minute})
	postgres.Bound(s, time.Hour)
	postgres.Hasty(s, time.Hour)
	if err := s.Ping(t.Context()); err != nil { // makes a connection
		t.Fatal(err)
	}
	p.hold()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("gone")) })
	over := make(chan error, 1)
	go func() { over <- s.Ping(ctx) }()
	select {
	case err := <-over:
		wantKind(t, "a ping whose caller has gone", err, job.KindUnavailable, "gave_up", "database_unreachable")
	case <-time.After(time.Minute):
		t.Error("a ping goes on for a minute whose caller has gone")
	}
	p.cut()
}

// A connection whose statements a change of the tables has made useless is left, and another one asked.
func TestTablesChange(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1, Engines: 1})
	if _, err := s.InboxPage(t.Context(), 0, 10); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `ALTER TABLE partitions ALTER COLUMN last_token TYPE numeric`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.InboxPage(t.Context(), 0, 10); err != nil {
		t.Errorf("a page of changed tables: %v", err)
	}
}
