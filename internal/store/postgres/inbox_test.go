package postgres_test

import (
	"slices"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// A look at many inboxes finds those of the partitions asked for that have an entry, of whatever form.
func TestInboxesFilled(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 8})
	putOne(t, s) // its entry is in partition 0
	filled := func(asked ...int) []int {
		t.Helper()
		got, err := s.InboxesFilled(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		return got
	}
	if got := filled(1, 2, 3, 4, 5, 6, 7); len(got) != 0 {
		t.Errorf("empty inboxes: %v", got)
	}
	many := make([]store.Trigger, 20)
	for i := range many {
		many[i] = store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{byte(i)}), Bulk: true, Request: engine.Request{At: noon}}
	}
	if _, err := s.Triggers(t.Context(), many, func(job.Definition) int { return 5 }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trigger(t.Context(), trigger(99), func(job.Definition) int { return 3 }); err != nil {
		t.Fatal(err)
	}
	if got := filled(0, 1, 2, 3, 4, 5, 6, 7); !slices.Equal(got, []int{0, 3, 5}) {
		t.Errorf("filled: %v", got)
	}
	if got := filled(4, 5); !slices.Equal(got, []int{5}) {
		t.Errorf("filled of 4 and 5: %v", got)
	}
	if got := filled(); len(got) != 0 {
		t.Errorf("filled of none: %v", got)
	}
}

// A list of triggers of which some may lie in one row and others not takes one statement; each has its number, in their order, and one
// commit that takes all of them leaves nothing.
func TestMixedTriggers(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	putOne(t, s)
	f := owner(t, s)
	var all []store.Trigger
	for i, at := range []job.Instant{noon, noon, noon + 1, noon + 2, noon + 2, noon + 2, noon + 3, noon + 4, noon + 4} {
		all = append(all, store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(at, [10]byte{byte(i)}), Bulk: true, Request: engine.Request{At: at}})
	}
	got, err := s.Triggers(t.Context(), all, toFirst)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Entry <= got[i-1].Entry {
			t.Errorf("entry %d has number %d, the one before %d", i, got[i].Entry, got[i-1].Entry)
		}
	}
	page, err := s.InboxPage(t.Context(), 0, 100)
	if err != nil || len(page.Entries) != 1+len(all) { // and that of the job
		t.Fatalf("%d entries, %v", len(page.Entries), err)
	}
	for i := range got {
		if e := page.Entries[i+1]; e.ID != got[i].Entry || e.Execution != all[i].Execution {
			t.Errorf("entry %d: %d of %s, want %d of %s", i, e.ID, e.Execution, got[i].Entry, all[i].Execution)
		}
		if pending, err := s.EntryPending(t.Context(), got[i].Entry); err != nil || !pending {
			t.Errorf("entry %d is not pending: %v", i, err)
		}
	}
	b := next(f)
	for i := range page.Entries {
		b.Consumed = append(b.Consumed, page.Entries[i].ID)
	}
	if err := s.Commit(t.Context(), f, b); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if pending, err := s.EntryPending(t.Context(), got[i].Entry); err != nil || pending {
			t.Errorf("entry %d is pending: %v", i, err)
		}
	}
	if filled, err := s.InboxesFilled(t.Context(), []int{0}); err != nil || len(filled) != 0 {
		t.Errorf("left in the inbox: %v, %v", filled, err)
	}
}
