package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// Connections that the network has forgotten keep no place in the pool, whether a commit finds that out or the question
// whether one that was idle lives: the next commit goes over a new one at once. (pgx says goodbye to such a connection for 15 s.)
func TestLostConnectionsKeepNoPlace(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	for name, idle := range map[string]bool{"in use": false, "idle": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, c.HostPort())
			s := openAt(t, postgres.Config{DSN: through(p, c.Database(t), c), Partitions: 3, Commits: 3, OwnerTTL: time.Second})
			t.Cleanup(p.cut) // or the store's end waits for what parts
			var owners []store.Fence
			rows, err := s.PartitionRows(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				got, err := s.AcquirePartition(t.Context(), row, "me", 1, engine.Level)
				if err != nil {
					t.Fatal(err)
				}
				owners = append(owners, got.Fence)
			}
			postgres.TakeCommits(t, s) // all three are there
			postgres.Idle(s, idle)
			p.lose()
			if idle {
				if err := s.Commit(t.Context(), owners[0], next(owners[0])); err != nil {
					t.Errorf("a commit, when all connections were idle and are lost: %v", err)
				}
				return
			}
			var all sync.WaitGroup
			for _, f := range owners {
				all.Go(func() {
					if err := s.Commit(t.Context(), f, next(f)); job.KindOf(err) != job.KindUnknown && job.KindOf(err) != job.KindUnavailable {
						t.Errorf("a commit into silence: %v", err)
					}
				})
			}
			all.Wait()
			if n := postgres.CommitConns(s); n > 0 {
				t.Errorf("%d places are taken by connections that are lost", n)
			}
			if err := s.Commit(t.Context(), owners[0], next(owners[0])); err != nil {
				t.Errorf("the next commit: %v", err)
			}
		})
	}
}

// A server that freezes while it makes the tables of a month keeps the others' commits of that month waiting for half a lease
// at most.
func TestFrozenAmidMonth(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn, p := c.Database(t), newProxy(t, c.HostPort())
	open := func(dsn string) *postgres.Store {
		return openAt(t, postgres.Config{DSN: dsn, Partitions: 2, OwnerTTL: time.Second})
	}
	frozen, other := open(through(p, dsn, c)), open(dsn)
	rows, err := other.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := other.AcquirePartition(t.Context(), rows[1], "other", 1, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	f := owner(t, frozen)
	p.holdAt("obj_description") // which is asked behind the lock
	b := next(f)
	b.At = job.InstantOf(time.Date(2027, 3, 5, 0, 0, 0, 0, time.UTC))
	var making sync.WaitGroup
	making.Go(func() { _ = frozen.Commit(t.Context(), f, b) }) // ends when the way is cut
	t.Cleanup(func() { p.cut(); making.Wait() })
	for held := 0; held == 0; {
		n, err := c.ExecIn(pgtest.Name(dsn), `SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database() AND locktype = 'advisory'`)
		if err != nil {
			t.Fatal(err)
		}
		held = int(n)
	}
	b = next(row.Fence)
	b.At = job.InstantOf(time.Date(2027, 3, 6, 0, 0, 0, 0, time.UTC))
	if err := other.Commit(t.Context(), row.Fence, b); err != nil {
		t.Errorf("a commit into a month that a frozen server was making: %v", err)
	}
}
