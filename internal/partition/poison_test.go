package partition_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// refusing is a memory whose database refuses some sessions' rows.
func refusing(gate chan struct{}) *memory {
	return &memory{onCommit: func(_ context.Context, n int, b *engine.Batch) error {
		if n == 1 {
			<-gate
		}
		if slices.ContainsFunc(b.Sessions, func(s job.Session) bool { return s.ID == sessionBad }) {
			return job.Errorf(job.KindRejected, "bad_data", "the database refuses this")
		}
		return nil
	}}
}

// One bad report among good ones of the same step is set aside alone; the good ones are accepted although
// their engine was dropped twice. Both for a panic in Step and for data that the store refuses.
func TestPoisonIsSetAsideAlone(t *testing.T) {
	for _, bad := range []job.SessionID{sessionPanics, sessionBad} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			st := refusing(gate)
			r := newRig(t, st, nil)
			synctest.Wait()
			first := r.report("opener") // its commit gathers the others into one step
			synctest.Wait()
			var good []<-chan result
			var poison <-chan result
			for i := range 9 {
				if i == 4 {
					poison = r.report(bad)
				} else {
					good = append(good, r.report("good"))
				}
				synctest.Wait()
			}
			close(gate)
			if res := <-first; res.err != nil {
				t.Fatalf("the first report: %v", res.err)
			}
			for i, ch := range good {
				if res := <-ch; res.err != nil {
					t.Errorf("%s: good report %d: %v", bad, i, res.err)
				}
			}
			wantKind(t, <-poison, job.KindRejected, "poison")
			if res := <-r.report("after"); res.err != nil {
				t.Errorf("%s: a report afterwards: %v", bad, res.err)
			}
			recorded := 0
			for _, b := range st.batches {
				recorded += len(b.Poison)
			}
			if got := r.node.Stats()[0].Poisoned; recorded != 1 || got != 1 {
				t.Errorf("%s: %d records of poison, %d counted; want 1", bad, recorded, got)
			}
			r.end()
		})
	}
}

// A bad inbox entry is set aside with its row; the others are consumed.
func TestPoisonEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		for id := range int64(10) {
			kind := engine.EntryTrigger
			if id == 6 {
				kind = kindPanics
			}
			st.put(id+1, kind)
		}
		r := newRig(t, st, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for id := range int64(10) {
			if !r.node.AwaitEntry(ctx, 0, id+1) {
				t.Errorf("entry %d was not consumed", id+1)
			}
		}
		if got := r.node.Stats()[0].Poisoned; got != 1 {
			t.Errorf("%d events set aside, want 1", got)
		}
		r.end()
	})
}

// When even the record is refused, the entry is left out and the partition goes on.
func TestPoisonThatCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{onCommit: func(_ context.Context, _ int, b *engine.Batch) error {
			if len(b.Poison) > 0 {
				return job.Errorf(job.KindRejected, "bad_data", "the database refuses this, too")
			}
			return nil
		}}
		st.put(1, kindPanics)
		r := newRig(t, st, nil)
		time.Sleep(5 * time.Second)
		st.put(2, engine.EntryTrigger)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if !r.node.AwaitEntry(ctx, 0, 2) {
			t.Error("an entry behind the bad one was not consumed")
		}
		if res := <-r.report("a"); res.err != nil {
			t.Errorf("a report afterwards: %v", res.err)
		}
		before := r.node.Stats()[0].Engines
		time.Sleep(time.Minute)
		if after := r.node.Stats()[0].Engines; after != before {
			t.Errorf("%d more engines in a minute: the bad entry comes again and again", after-before)
		}
		r.end()
	})
}

// A schedule that the engine can not digest is recorded once and left out of later pages; the schedules
// beside it are planned.
func TestPoisonInAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		for _, name := range []string{"a", "b", schedulePanics, "c"} {
			st.due = append(st.due, engine.Due{Cursor: job.Cursor{Schedule: name}})
		}
		r := newRig(t, st, nil)
		time.Sleep(20 * time.Second)
		planned := map[string]bool{}
		recorded := 0
		synctest.Wait()
		for _, b := range st.batches {
			recorded += len(b.Poison)
			for _, c := range b.Cursors {
				planned[c.Schedule] = true
			}
		}
		if !planned["a"] || !planned["b"] || !planned["c"] || planned[schedulePanics] || recorded != 1 {
			t.Errorf("planned %v with %d records of poison, want a, b and c, and 1", planned, recorded)
		}
		before := r.node.Stats()[0].Engines
		time.Sleep(time.Minute)
		if after := r.node.Stats()[0].Engines; after != before {
			t.Errorf("%d more engines in a minute: the bad schedule comes again and again", after-before)
		}
		r.end()
	})
}

// Entries that stay in the inbox, of kinds that this server does not know and such as could not even be set
// aside, do not take the places of newer ones; nor does anybody read the inbox again and again for them.
func TestEntriesThatStayLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{onCommit: func(_ context.Context, _ int, b *engine.Batch) error {
			if len(b.Poison) > 0 {
				return job.Errorf(job.KindRejected, "bad_data", "the database refuses this, too")
			}
			return nil
		}}
		for id := range int64(30) {
			kind := engine.EntryKind("of_tomorrow")
			if id%10 == 0 {
				kind = kindPanics
			}
			st.put(id+1, kind)
		}
		r := newRig(t, st, func(c *partition.Config) { c.InboxPage = 8 })
		time.Sleep(time.Minute)
		for id := range int64(20) {
			st.put(id+31, engine.EntryTrigger)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.node.Wake(0)
		if !r.node.AwaitEntry(ctx, 0, 50) {
			t.Error("an entry behind those that stay was not consumed")
		}
		before := st.looks()
		time.Sleep(10 * time.Second)
		if n := st.looks() - before; n > 25 {
			t.Errorf("the inbox was read %d times in 10 s", n)
		}
		r.end()
	})
}
