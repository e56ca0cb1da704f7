package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// What a commit or a call ends with when the database, or the way to it, fails.

// owner takes partition 0.
func owner(t *testing.T, s *postgres.Store) store.Fence {
	t.Helper()
	rows, err := s.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := s.AcquirePartition(t.Context(), rows[0], "me", 1, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	return row.Fence
}

func next(f store.Fence) *engine.Batch { return &engine.Batch{Seq: f.Seq + 1, At: noon} }

func wantKind(t *testing.T, what string, err error, kind job.Kind, codes ...string) {
	t.Helper()
	e, ok := errors.AsType[*job.Error](err)
	if !ok || e.Kind != kind || !strings.Contains(strings.Join(codes, " "), e.Code) {
		t.Errorf("%s: %v, should be %s %v", what, err, kind, codes)
	}
}

func openAt(t *testing.T, c postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAnswerOfCommitIsLost(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	p := newProxy(t, c.HostPort())
	s, direct := openAt(t, postgres.Config{DSN: through(p, dsn, c), Partitions: 1}), openAt(t, postgres.Config{DSN: dsn})
	f := owner(t, s)
	if err := s.Commit(t.Context(), f, next(f)); err != nil { // makes months and prepares statements
		t.Fatal(err)
	}
	f.Seq++
	// a connection that was idle for a second is asked first whether it lives, and then nothing is sent: once more
	landed, err := false, error(nil)
	for !landed {
		p.hold()
		done := make(chan error, 1)
		go func() { done <- s.Commit(context.Background(), f, next(f)) }()
		for over := false; !over && !landed; {
			select {
			case err = <-done:
				over = true
			default:
			}
			rows, wrong := direct.PartitionRows(t.Context())
			if wrong != nil {
				t.Fatal(wrong)
			}
			if landed = rows[0].Seq == f.Seq+1; landed && !over {
				p.cut()
				err = <-done
			}
		}
		p.cut()
		if !landed && job.KindOf(err) != job.KindUnavailable {
			t.Fatalf("a commit that did not land: %v", err)
		}
	}
	wantKind(t, "the commit that landed", err, job.KindUnknown, "commit_unknown")
	wantKind(t, "the same again", s.Commit(t.Context(), f, next(f)), job.KindFenced, "fence")
}

func TestDatabaseSaysNothing(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	p := newProxy(t, c.HostPort())
	s := openAt(t, postgres.Config{DSN: through(p, c.Database(t), c), Partitions: 1, OwnerTTL: 4 * time.Second})
	f := owner(t, s)
	if err := s.Commit(t.Context(), f, next(f)); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	p.hold()
	if err := s.Commit(t.Context(), f, next(f)); job.KindOf(err) != job.KindUnknown { // or nothing was sent: the connection was idle
		wantKind(t, "a commit into silence", err, job.KindUnavailable, "gave_up", "database_silent", "database_unreachable")
	}
	_, err := s.RenewPartition(t.Context(), f)
	wantKind(t, "a renewal into silence", err, job.KindUnavailable, "database_silent", "database_unreachable", "gave_up")
}

// A read that has begun ends by itself, too, when the network falls silent: engines and the upkeep read under no time of
// their own.
func TestReadIntoSilence(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	p := newProxy(t, c.HostPort())
	s := openAt(t, postgres.Config{DSN: through(p, c.Database(t), c), Partitions: 1})
	postgres.Bound(s, 200*time.Millisecond)
	err := postgres.ReadAfter(t.Context(), s, p.hold)
	wantKind(t, "a read into silence", err, job.KindUnavailable, "database_silent")
	postgres.Vacuum(t.Context(), s)
	p.cut() // or the store's end waits for answers
}

func TestDatabaseStopsAndStarts(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t, pgtest.Options{})
	s := openAt(t, postgres.Config{DSN: c.Database(t), Partitions: 1})
	f := owner(t, s)
	if err := s.Commit(t.Context(), f, next(f)); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	for _, mode := range []pgtest.Mode{pgtest.Fast, pgtest.Kill} {
		if err := c.Stop(mode); err != nil {
			t.Fatal(err)
		}
		// a connection that was open meanwhile is not known to be dead before it is used
		err := s.Commit(t.Context(), f, next(f))
		if kind := job.KindOf(err); kind != job.KindUnavailable && kind != job.KindUnknown {
			t.Errorf("a commit at a database that stopped: %v", err)
		}
		wantKind(t, "the next one", s.Commit(t.Context(), f, next(f)), job.KindUnavailable, "database_unreachable", "database_stopping")
		wantKind(t, "ping", s.Ping(t.Context()), job.KindUnavailable, "database_unreachable", "database_stopping")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(t.Context(), f, next(f)); err != nil {
			t.Errorf("a commit at a database that came back: %v", err)
		}
		f.Seq++
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("ping at a database that came back: %v", err)
		}
	}
}

// TestFrozenOwner: an owner freezes when half of its commit is sent. The database waits for the rest with the partition's
// row locked; the successor ends that.
func TestFrozenOwner(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1, OwnerTTL: 4 * time.Second})
	f := owner(t, s)
	frozen, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = frozen.Close(context.Background()) }()
	half := frozen.StartPipeline(t.Context())
	half.SendQueryParams(`UPDATE partitions SET seq = 1 WHERE id = 0`, nil, nil, nil, nil)
	half.SendFlushRequest() // no Sync
	if err := half.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := half.GetResults(); err != nil {
		t.Fatal(err)
	}
	rows, err := s.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, "a commit behind it", s.Commit(t.Context(), f, next(f)), job.KindUnavailable, "database_busy", "database_slow")
	row, err := s.AcquirePartition(t.Context(), rows[0], "successor", 1, engine.Level)
	if err != nil || row.Owner != "successor" || row.Seq != 0 {
		t.Errorf("take-over from a frozen owner: %+v, %v", row, err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t, pgtest.Options{})
	dsn := c.Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1})
	f := owner(t, s)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(`ALTER DATABASE ` + pgtest.Name(dsn) + ` SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '` + pgtest.Name(dsn) + `'`); err != nil {
		t.Fatal(err)
	}
	_ = s.Ping(t.Context()) // meets the ended connections
	wantKind(t, "ping", s.Ping(t.Context()), job.KindUnavailable, "database_read_only")
	_ = s.Commit(t.Context(), f, next(f))
	wantKind(t, "commit", s.Commit(t.Context(), f, next(f)), job.KindUnavailable, "database_read_only")
	_, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
	wantKind(t, "open", err, job.KindUnavailable, "database_read_only")
}

func TestFailover(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t, pgtest.Options{})
	dsn := primary.Database(t)
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Close)
	_, err = postgres.Open(t.Context(), postgres.Config{DSN: standby.DSN(pgtest.Name(dsn))})
	wantKind(t, "open on a standby", err, job.KindUnavailable, "database_read_only")
	both := strings.Replace(dsn, primary.HostPort(), primary.HostPort()+","+standby.HostPort(), 1) + "&target_session_attrs=read-write"
	s := openAt(t, postgres.Config{DSN: both, Partitions: 1})
	f := owner(t, s)
	before, err := s.Lineage(t.Context())
	if err != nil || before == "" {
		t.Fatalf("lineage %q: %v", before, err)
	}
	if again, err := s.Lineage(t.Context()); err != nil || again != before {
		t.Errorf("the lineage changes by itself: %q, %q, %v", before, again, err)
	}
	reads := func(when string) { // on the connections of engines, and of lists
		if _, err := s.InboxPage(t.Context(), 0, 10); err != nil {
			t.Errorf("a page of the inbox %s the failover: %v", when, err)
		}
		if _, _, err := s.Jobs(t.Context(), "ns", store.Page{}); err != nil {
			t.Errorf("a list %s the failover: %v", when, err)
		}
	}
	reads("before")
	if err := primary.Stop(pgtest.Fast); err != nil { // hands all over to the standby first
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	_ = s.Commit(t.Context(), f, next(f)) // meets the connection that is gone
	reads("after")
	rows, err := s.PartitionRows(t.Context())
	if err != nil || rows[0].Owner != "me" {
		t.Fatalf("after the failover: %+v, %v", rows, err)
	}
	f.Seq = rows[0].Seq
	if err := s.Commit(t.Context(), f, next(f)); err != nil {
		t.Errorf("commit after the failover: %v", err)
	}
	if after, err := s.Lineage(t.Context()); err != nil || after == before {
		t.Errorf("the lineage after the failover is that of before: %q, %v", after, err)
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1})
	if _, err := c.Exec(`ALTER DATABASE ` + pgtest.Name(dsn) + ` CONNECTION LIMIT 0`); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
	wantKind(t, "open", err, job.KindUnavailable, "too_many_connections")
	if _, err := s.PartitionRows(t.Context()); err != nil {
		t.Errorf("a connection that is there: %v", err)
	}
}

// TestNoPasswordInErrors: whatever is wrong with an address, what is said of it may be logged.
func TestNoPasswordInErrors(t *testing.T) {
	t.Parallel()
	host := pgtest.Start(t).HostPort()
	for _, dsn := range []string{
		"postgres://takt:hunter2@127.0.0.1:1/takt?sslmode=disable&connect_timeout=2",
		"postgres://takt:hunter2@" + host + "/nowhere?sslmode=disable",
		"postgres://nobody:hunter2@" + host + "/postgres?sslmode=disable",
		"postgres://takt:hunter2@" + host + "/postgres?sslmode=require",
		"postgres://takt:hunter2@[::1:5432/takt",
		"postgres://takt:hunter2%@localhost/takt",
		"postgres://takt:hunter2@localhost:port/takt",
		"host=127.0.0.1 password=hunter2 port=x",
		"password='hunter2",
		"hunter2",
	} {
		s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s opens", dsn)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if _, carries := e.(*pgconn.ConnectError); carries || strings.Contains(e.Error(), "hunter2") {
				t.Errorf("%s: the error %T says %v", dsn, e, e)
			}
		}
		if e, ok := errors.AsType[*job.Error](err); !ok || e.Code == "" || e.Hint == "" {
			t.Errorf("%s: %#v has no code or hint", dsn, err)
		}
	}
}
