package postgres_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// TestLoadAmidCommits: what a load reads on two ways to the database belongs together, also when there was a commit in between.
func TestLoadAmidCommits(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	if err := s.Commit(t.Context(), f, grants(f, 20, 1)); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	times := postgres.AmidLoad(s, func() {
		if err := s.Commit(t.Context(), f, ends(f, 5, 1)); err != nil {
			t.Error(err)
		}
		f.Seq++
	})
	loaded, err := s.LoadPartition(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if times() != 1 || loaded.Seq != f.Seq || len(loaded.Executions) != 15 {
		t.Errorf("%d commits amid the load: it is of commit %d with %d executions, should be %d with 15", times(), loaded.Seq, len(loaded.Executions), f.Seq)
	}
}

// TestDueAmidCommits: a page of due schedules with calendars, which are a way of their own, is of one commit.
func TestDueAmidCommits(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	if _, err := s.ApplyJobs(t.Context(), store.ApplyJobs{Calendars: []store.PutCalendar{calendarPut("c", "MON")}, Items: []store.PutJob{keeping("j", job.UID{1}, "c")}}); err != nil {
		t.Fatal(err)
	}
	plan := func(at job.Instant) {
		t.Helper()
		b := next(f)
		b.Cursors = []job.Cursor{{Job: job.UID{1}, Schedule: "main", Revision: 1, Stamp: 1, Next: at}}
		if err := s.Commit(t.Context(), f, b); err != nil {
			t.Fatal(err)
		}
		f.Seq++
	}
	plan(noon)
	times := postgres.AmidDue(s, func() { plan(noon + 1) })
	page, err := s.DuePage(t.Context(), 0, engine.WantDue{Until: noon + 1, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if times() != 1 || page.Seq != f.Seq || len(page.Items) != 1 || page.Items[0].Cursor.Next != noon+1 || page.Items[0].Definition.Calendars["c"] == nil {
		t.Errorf("%d commits amid the page: it is of commit %d, should be %d: %+v", times(), page.Seq, f.Seq, page.Items)
	}
}

// TestListsOfLots: pages over lots that lie among each other, and over some that lie one behind the other, are full, and miss nothing.
func TestListsOfLots(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	var want []job.ExecutionID
	add := func(numbers func(i int) int) {
		t.Helper()
		b := engine.Batch{Seq: f.Seq + 1, At: noon, Level: engine.Level}
		for i := range 20 {
			one := queues(f, 1, numbers(i))
			b.Executions, b.Shards = append(b.Executions, one.Executions...), append(b.Shards, one.Shards...)
			want = append(want, one.Executions[0].Row.ID)
		}
		if err := s.Commit(t.Context(), f, &b); err != nil {
			t.Fatal(err)
		}
		f.Seq++
	}
	for k := range 10 {
		add(func(i int) int { return 100 + k + 10*i })
		add(func(i int) int { return 1000 + 20*k + i })
	}
	slices.SortFunc(want, func(a, b job.ExecutionID) int { return bytes.Compare(b[:], a[:]) })
	for _, limit := range []int{1, 7, 50, 399, 400} {
		var got []job.ExecutionID
		for after, more := "", true; more; more = after != "" {
			page, next, err := s.Executions(t.Context(), store.ExecutionFilter{Namespace: "default", Page: store.Page{Limit: limit, After: after}})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) != min(limit, len(want)-len(got)) {
				t.Fatalf("a page of %d behind %d has %d", limit, len(got), len(page))
			}
			for i := range page {
				got = append(got, page[i].ID)
			}
			after = next
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d list %d, in order or not, should be %d", limit, len(got), len(want))
		}
	}
	loaded := 0
	for w := (engine.WantBacklog{Limit: 70}); ; {
		page, err := s.BacklogPage(t.Context(), 0, w)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Rows {
			if loaded++; page.Rows[i].Execution.ID != want[len(want)-loaded] {
				t.Fatalf("number %d of the backlog is another one", loaded)
			}
		}
		if !page.Partial {
			break
		}
		last := &page.Rows[len(page.Rows)-1].Execution
		w.PlannedAt, w.ID = last.PlannedAt, last.ID
	}
	if loaded != len(want) {
		t.Errorf("the backlog has %d, should be %d", loaded, len(want))
	}
}
