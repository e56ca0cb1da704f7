package postgres_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
	"github.com/taktsched/takt/internal/store/storetest"
)

// TestExamOfRows is the exam where nothing lies in lots.
func TestExamOfRows(t *testing.T) {
	unwatched(t)
	t.Parallel()
	h := harness(t, postgres.NoLots)
	h.Seeds = 1
	storetest.Run(t, h)
}

// grants are n executions that come granted, numbered from a number on.
func grants(f store.Fence, n, from int) *engine.Batch {
	b := &engine.Batch{Seq: f.Seq + 1, At: noon, Level: engine.Level}
	for i := range n {
		x, sh := benchRows(int64(from + i))
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: x})
		b.Shards = append(b.Shards, engine.ShardWrite{Row: sh, Total: 1})
	}
	return b
}

// ends are their ends.
func ends(f store.Fence, n, from int) *engine.Batch {
	b := grants(f, n, from)
	for i := range b.Executions {
		x, sh := &b.Executions[i], &b.Shards[i]
		x.From, x.Row.State, x.Row.EndedAt = job.ExecutionRunning, job.ExecutionSucceeded, x.Row.PlannedAt
		sh.From, sh.Row.State = job.ShardLeased, job.ShardSucceeded
	}
	return b
}

// tally counts rows: of lots, of members that are left in them, of live executions, of history.
func tally(t *testing.T, s *postgres.Store) string {
	t.Helper()
	return postgres.Text(t.Context(), t, s, `SELECT (SELECT count(*) FROM lots) || ' lots of ' || (SELECT coalesce(sum(remaining), 0) FROM lots) || ', '
		|| (SELECT count(*) FROM executions) || ' rows, ' || (SELECT count(*) FROM history_executions) || ' ended'`)
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// TestLotsLie: what is granted at once lies in one row; few have rows of their own, and what is left of old lots gets them.
func TestLotsLie(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	commit := func(b *engine.Batch) {
		t.Helper()
		if err := s.Commit(t.Context(), f, b); err != nil {
			t.Fatal(err)
		}
		f.Seq++
	}
	commit(grants(f, store.Worthwhile-1, 1))
	want(t, "few", tally(t, s), "0 lots of 0, 7 rows, 0 ended")
	commit(ends(f, store.Worthwhile-1, 1))
	old := grants(f, 10, 100)
	old.Level = engine.LevelBlocks
	commit(old)
	want(t, "beside servers that know no lots", tally(t, s), "0 lots of 0, 10 rows, 7 ended")
	commit(ends(f, 10, 100))
	for i := range 40 {
		commit(grants(f, 100, 1000*(i+1)))
		commit(ends(f, 99, 1000*(i+1)))
	}
	want(t, "some for long", tally(t, s), fmt.Sprintf("16 lots of 16, 24 rows, %d ended", 17+40*99))
	for i := range 40 {
		commit(ends(f, 1, 1000*(i+1)+99))
	}
	want(t, "all ended", tally(t, s), fmt.Sprintf("0 lots of 0, 0 rows, %d ended", 17+40*100))
	commit(grants(f, 1000, 100_000))
	size := func() int {
		n, err := strconv.Atoi(postgres.Text(t.Context(), t, s, `SELECT pg_table_size('lots')::text`))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := size()
	for i := range 20 {
		commit(ends(f, 10, 100_000+10*i))
	}
	if grown := size() - before; grown > 100_000 {
		t.Errorf("20 ends in a lot of 1,000 made its table %d bytes larger: its arrays are written anew", grown)
	}
}

// TestLotsOfTwoServers: who takes a partition over, or back, knows what the other did to its lots.
func TestLotsOfTwoServers(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	both := []*postgres.Store{openAt(t, postgres.Config{DSN: dsn, Partitions: 1}), openAt(t, postgres.Config{DSN: dsn})}
	var f store.Fence
	take := func(s *postgres.Store, who string) {
		t.Helper()
		rows, err := s.PartitionRows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		row, err := s.AcquirePartition(t.Context(), rows[0], who, 1, engine.Level)
		if err != nil {
			t.Fatal(err)
		}
		f = row.Fence
	}
	commit := func(s *postgres.Store, b *engine.Batch) {
		t.Helper()
		if err := s.Commit(t.Context(), f, b); err != nil {
			t.Fatal(err)
		}
		f.Seq++
	}
	take(both[0], "a")
	commit(both[0], grants(f, 50, 1))
	late := f
	for n, s := range []*postgres.Store{both[1], both[0], both[1]} {
		take(s, fmt.Sprint("owner ", n))
		for what, b := range map[string]*engine.Batch{"that came": grants(f, 1, 50-n), "that ended": ends(f, 2, 10*n), "that is there, among others": grants(f, 20, 40)} {
			if n > 0 || what != "that ended" {
				wantKind(t, "one "+what, s.Commit(t.Context(), f, b), job.KindFenced, "state_guard")
			}
		}
		commit(s, ends(f, 10, 10*n+1))
		loaded, err := s.LoadPartition(t.Context(), 0)
		if err != nil || len(loaded.Executions) != 40-10*n {
			t.Fatalf("owner %d loads %d executions, %v", n, len(loaded.Executions), err)
		}
	}
	late.Seq++
	wantKind(t, "the first owner", both[0].Commit(t.Context(), late, ends(late, 1, 45)), job.KindFenced, "fence")
}

// TestLotsOfRacingOwners: commits under an epoch that is over, at the same time as those of the owner, disturb nothing that is
// remembered of lots.
func TestLotsOfRacingOwners(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	old := owner(t, s)
	if err := s.Commit(t.Context(), old, grants(old, 100, 1)); err != nil {
		t.Fatal(err)
	}
	old.Seq++
	f := owner(t, s)
	var zombies sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		zombies.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.Commit(t.Context(), old, ends(old, 10, 1)); job.KindOf(err) != job.KindFenced {
					t.Errorf("under an epoch that is over: %v", err)
				}
			}
		})
	}
	for i := range 20 {
		for _, b := range []*engine.Batch{grants(f, 20, 1000+20*i), ends(f, 5, 1+5*i)} {
			b.Seq = f.Seq + 1
			if err := s.Commit(t.Context(), f, b); err != nil {
				t.Error(err)
			} else {
				f.Seq++
			}
		}
	}
	close(stop)
	zombies.Wait()
	loaded, err := s.LoadPartition(t.Context(), 0)
	if err != nil || len(loaded.Executions) != 400 {
		t.Errorf("%d executions are under way, %v, want 400", len(loaded.Executions), err)
	}
}
