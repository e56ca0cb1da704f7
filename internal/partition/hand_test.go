package partition_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

func (m *memory) page(ids ...int64) engine.InboxPage {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := engine.InboxPage{Seq: m.row.Seq}
	for _, id := range ids {
		p.Entries = append(p.Entries, engine.Entry{ID: id, Kind: engine.EntryTrigger})
	}
	return p
}

// What is handed over is taken in at once and without a read; the look each half second goes on.
func TestHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		r := newRig(t, st, nil)
		time.Sleep(time.Second + 100*time.Millisecond)
		before, begun := st.looks(), time.Now()
		for id := range int64(10) {
			st.put(id+1, engine.EntryTrigger)
			r.node.Hand(0, st.page(id+1))
			if !r.node.AwaitEntry(t.Context(), 0, id+1) {
				t.Fatal("not consumed")
			}
		}
		if took, read := time.Since(begun), st.looks()-before; took != 0 || read != 0 {
			t.Errorf("ten entries took %v and %d reads", took, read)
		}
		time.Sleep(2 * time.Second)
		if read := st.looks() - before; read < 3 {
			t.Errorf("%d reads in two seconds", read)
		}
		if got := st.commits(); got != 10 {
			t.Errorf("%d commits, want 10", got)
		}
		r.end()
		r.node.Hand(0, st.page(11)) // nobody is there
	})
}

// While a commit is on the way what is handed over waits, and goes together.
func TestHandedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		st := refusing(gate)
		r := newRig(t, st, nil)
		time.Sleep(time.Second + 100*time.Millisecond)
		first := r.report("a")
		synctest.Wait()
		before := st.looks()
		for id := int64(1); id <= 100; id++ { // more than are kept: the rest is read
			st.put(id, engine.EntryTrigger)
			r.node.Hand(0, st.page(id))
		}
		synctest.Wait()
		close(gate)
		<-first
		for id := int64(1); id <= 100; id++ {
			if !r.node.AwaitEntry(t.Context(), 0, id) {
				t.Fatal("not consumed")
			}
		}
		if got := st.commits(); got > 3 {
			t.Errorf("%d commits, want 2 or 3", got)
		}
		if read := st.looks() - before; read > 2 {
			t.Errorf("%d reads", read)
		}
		r.end()
	})
}

// What was written before is taken in before.
func TestHandedBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		r := newRig(t, st, nil)
		time.Sleep(time.Second + 100*time.Millisecond)
		st.put(1, engine.EntryCancel)
		st.put(2, engine.EntryTrigger)
		st.put(3, engine.EntryTrigger)
		before := st.looks()
		r.node.Wake(0)
		synctest.Wait() // both are taken in by the read
		r.node.Hand(0, st.page(2))
		synctest.Wait()
		if !r.node.AwaitEntry(t.Context(), 0, 3) || st.looks() != before+1 {
			t.Errorf("%d reads, want 1", st.looks()-before)
		}
		r.end()
		if got := len(st.batches); got != 1 || len(st.batches[0].Consumed) != 3 {
			t.Errorf("%d commits: %+v", got, st.batches)
		}
	})
}

// A page that comes late, to the engine that has taken its entries or to one after it, takes nothing twice and breaks nothing.
func TestHandedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		node, end := soleNode(t, st)
		at := job.Instant(946_684_800_000)
		def := job.Definition{UID: job.UID{1}, Namespace: "default", Name: "one", Spec: job.Spec{Pool: "p", Handler: "h"}}
		_, w, err := st.PutJob(t.Context(), store.PutJob{Definition: def, At: at})
		if err != nil {
			t.Fatal(err)
		}
		node.Wake(0)
		if !node.AwaitEntry(t.Context(), 0, w.Entry) {
			t.Fatal("the owner did not take the job in")
		}
		var page engine.InboxPage
		tr, err := st.Trigger(t.Context(), store.Trigger{Namespace: "default", Job: "one", Execution: job.RequestedID(at, [10]byte{7}), Request: engine.Request{At: at},
			Told: func(_ int, seq int64, e *engine.Entry) {
				page = engine.InboxPage{Seq: seq, Entries: []engine.Entry{*e}}
			}},
			func(job.Definition) int { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		if page.Entries[0].ID != tr.Entry {
			t.Fatalf("told %+v", page)
		}
		node.Hand(0, page)
		if !node.AwaitEntry(t.Context(), 0, tr.Entry) {
			t.Fatal("the owner did not take the trigger in")
		}
		check := func() {
			t.Helper()
			node.Hand(0, page)
			time.Sleep(5 * time.Second)
			if s := node.Stats()[0]; s.CommitErr != 0 || s.Engines != 1 || s.Poisoned != 0 {
				t.Errorf("%+v", s)
			}
		}
		check()
		end()
		node, end = soleNode(t, st)
		check()
		end()
		rows, _, err := st.Executions(t.Context(), store.ExecutionFilter{Namespace: "default", Page: store.Page{Limit: 10}})
		if err != nil || len(rows) != 1 {
			t.Errorf("%d executions, %v", len(rows), err)
		}
	})
}

// soleNode runs a real engine over a database until end.
func soleNode(t *testing.T, st *sqlite.Store) (node *partition.Node, end func()) {
	t.Helper()
	node, err := partition.NewNode(t.Context(), partition.Config{Store: st, Incarnation: "a", Sole: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	for node.Ready() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	return node, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// What is reported while entries are written waits for them a moment, and goes with them; when they do not come, it goes without.
func TestExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		r := newRig(t, st, nil)
		time.Sleep(time.Second + 100*time.Millisecond)
		before, begun := st.commits(), time.Now()
		done := r.node.Expect(0)
		first := r.report("a")
		time.Sleep(time.Millisecond)
		pending(t, "a report beside entries that are written", first)
		st.put(1, engine.EntryTrigger)
		r.node.Hand(0, st.page(1))
		done()
		<-first
		if took, n := time.Since(begun), st.commits()-before; took != time.Millisecond || n != 1 {
			t.Errorf("%d commits in %v", n, took)
		}
		time.Sleep(time.Second)
		begun = time.Now()
		done = r.node.Expect(0)
		<-r.report("a")
		if took := time.Since(begun); took < 5*time.Millisecond || took > 20*time.Millisecond {
			t.Errorf("a report waited %v for entries that do not come", took)
		}
		done()
		begun = time.Now()
		<-r.report("a")
		if took := time.Since(begun); took != 0 {
			t.Errorf("a report waited %v for nothing", took)
		}
		r.node.Expect(7)()
		r.end()
	})
}
