package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// queues are n executions that come and wait in line.
func queues(f store.Fence, n, from int) *engine.Batch {
	b := grants(f, n, from)
	for i := range b.Executions {
		x, sh := &b.Executions[i].Row, &b.Shards[i].Row
		x.State, x.StartedAt = job.ExecutionQueued, 0
		*sh = job.Shard{Execution: x.ID, State: job.ShardQueued}
	}
	return b
}

// starts are their grants.
func starts(f store.Fence, n, from int) *engine.Batch {
	b := grants(f, n, from)
	for i := range b.Executions {
		b.Executions[i].From, b.Shards[i].From = job.ExecutionQueued, job.ShardQueued
	}
	return b
}

// drops are their ends without a start.
func drops(f store.Fence, n, from int) *engine.Batch {
	b := ends(f, n, from)
	for i := range b.Executions {
		b.Executions[i].From, b.Shards[i].From = job.ExecutionQueued, job.ShardQueued
		b.Executions[i].Row.State, b.Shards[i].Row.State = job.ExecutionCancelled, job.ShardCancelled
	}
	return b
}

// TestLotsWait: requests that wait in line lie many in a row, and go from there to where they would go from rows of their own.
func TestLotsWait(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	commit := func(what, wanted string, b *engine.Batch) {
		t.Helper()
		if err := s.Commit(t.Context(), f, b); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		f.Seq++
		want(t, what, tally(t, s), wanted)
	}
	commit("few", "0 lots of 0, 7 rows, 0 ended", queues(f, store.Worthwhile-1, 1))
	old := queues(f, 10, 10)
	old.Level = engine.LevelLots
	commit("beside servers that know no waiting lots", "0 lots of 0, 17 rows, 0 ended", old)
	planned := queues(f, 10, 30)
	for i := range planned.Executions {
		planned.Executions[i].Row.Trigger = job.TriggerSchedule
	}
	commit("planned ones", "0 lots of 0, 27 rows, 0 ended", planned)

	commit("many", "1 lots of 100, 27 rows, 0 ended", queues(f, 100, 100))
	commit("their grant", "2 lots of 100, 27 rows, 0 ended", starts(f, 50, 100))
	commit("the grant of few", "2 lots of 97, 30 rows, 0 ended", starts(f, 3, 150))
	commit("the grant of few that have rows, and of others", "3 lots of 104, 23 rows, 0 ended", func() *engine.Batch {
		b, more := starts(f, 7, 1), starts(f, 7, 153)
		b.Executions, b.Shards = append(b.Executions, more.Executions...), append(b.Shards, more.Shards...)
		return b
	}())
	commit("ends in line", "3 lots of 94, 23 rows, 10 ended", drops(f, 10, 160))
	for what, b := range map[string]*engine.Batch{"grant of what is granted": starts(f, 20, 145), "grant of what ended": starts(f, 20, 165), "end of what waits": ends(f, 1, 180), "what is there": queues(f, 30, 190)} {
		wantKind(t, what, s.Commit(t.Context(), f, b), job.KindFenced, "state_guard")
	}
	want(t, "what was refused", tally(t, s), "3 lots of 94, 23 rows, 10 ended")

	loaded, err := s.LoadPartition(t.Context(), 0)
	if err != nil || len(loaded.Executions) != 67 {
		t.Errorf("%d executions are under way, %v, want 67", len(loaded.Executions), err)
	}
	states := map[job.ExecutionState]int{}
	for _, state := range []job.ExecutionState{job.ExecutionQueued, job.ExecutionRunning, ""} {
		rows, _, err := s.Executions(t.Context(), store.ExecutionFilter{Namespace: "default", State: state, Page: store.Page{Limit: 500}})
		if states[state] = len(rows); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(states); got != "map[:127 queued:50 running:67]" {
		t.Errorf("lists: %s", got)
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts.Live[job.ExecutionQueued] != 50 || counts.Live[job.ExecutionRunning] != 67 {
		t.Errorf("counts: %v, %v", counts.Live, err)
	}
}

// TestBacklogOfLots: pages of what waits have it in the order of work, wherever it lies, also for who takes the partition over.
func TestBacklogOfLots(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	first, second := openAt(t, postgres.Config{DSN: dsn, Partitions: 1}), openAt(t, postgres.Config{DSN: dsn})
	f := owner(t, first)
	put := func(s *postgres.Store, b *engine.Batch) {
		t.Helper()
		if err := s.Commit(t.Context(), f, b); err != nil {
			t.Fatal(err)
		}
		f.Seq++
	}
	var all []job.ExecutionID
	for i, n := range []int{300, 5, 20, 7, 40} { // lots and rows in turn
		b := queues(f, n, 1000*(i+1))
		for k := range b.Executions { // interleaved
			b.Executions[k].Row.PlannedAt = noon + job.Instant(10*k+i)
			all = append(all, b.Executions[k].Row.ID)
		}
		put(first, b)
	}
	f = owner(t, second)
	put(second, starts(f, 60, 1000))
	all = all[60:]
	var got []job.ExecutionID
	var w engine.WantBacklog
	for w.Limit = 100; ; {
		page, err := second.BacklogPage(t.Context(), 0, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			x := &row.Execution
			if x.PlannedAt < w.PlannedAt || x.State != job.ExecutionQueued || len(row.Shards) != 1 || row.Shards[0].State != job.ShardQueued {
				t.Errorf("%+v behind %d", row, w.PlannedAt)
			}
			got, w.PlannedAt, w.ID = append(got, x.ID), x.PlannedAt, x.ID
		}
		if !page.Partial {
			break
		}
	}
	compare := func(a, b job.ExecutionID) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(all, compare)
	slices.SortFunc(got, compare)
	if !slices.Equal(got, all) {
		t.Errorf("%d executions in pages, want %d", len(got), len(all))
	}
}

// TestLotsWaitBounded: there are not more waiting lots than readers look at; what comes then has rows until some are empty.
func TestLotsWaitBounded(t *testing.T) {
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
	for i := range 40 {
		commit(queues(f, 10, 100*(i+1)))
	}
	want(t, "40 times ten", tally(t, s), "32 lots of 320, 80 rows, 0 ended")
	for i := range 20 { // what is granted has its own bound
		commit(starts(f, 10, 100*(i+1)))
	}
	want(t, "20 of them granted", tally(t, s), "28 lots of 280, 120 rows, 0 ended")
	commit(queues(f, 1000, 10_000))
	want(t, "1,000 more", tally(t, s), "33 lots of 1280, 120 rows, 0 ended")
}

// TestLotsWaitForCancel: who deletes a job with its executions is told of those that wait in lots, too.
func TestLotsWaitForCancel(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	def := job.Definition{UID: job.UID{1}, Namespace: "default", Name: "bench", Spec: job.Spec{Pool: "main", Handler: "noop"}}
	if _, _, err := s.PutJob(t.Context(), store.PutJob{Definition: def, At: noon}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []func() *engine.Batch{func() *engine.Batch { return queues(f, 20, 1) }, func() *engine.Batch { return starts(f, 8, 1) }, func() *engine.Batch { return queues(f, 3, 100) }} {
		if err := s.Commit(t.Context(), f, b()); err != nil {
			t.Fatal(err)
		}
		f.Seq++
	}
	if _, err := s.DeleteJob(t.Context(), store.DeleteJob{Namespace: "default", Name: "bench", Deletion: job.Deletion{At: noon, Cancel: true}}); err != nil {
		t.Fatal(err)
	}
	page, err := s.InboxPage(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, e := range page.Entries {
		told += len(e.Queued)
	}
	if told != 15 {
		t.Errorf("%d executions are told of, want 15", told)
	}
}
