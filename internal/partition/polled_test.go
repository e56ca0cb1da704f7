package partition_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// doored is a database whose commits wait while its door is shut.
type doored struct {
	*sqlite.Store

	mu      sync.Mutex
	door    chan struct{}                          // nil: open
	created map[job.ExecutionID]job.ExecutionState // as they were first written
}

func (g *doored) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	g.mu.Lock()
	door := g.door
	for i := range b.Executions {
		if w := &b.Executions[i]; w.From == "" {
			g.created[w.Row.ID] = w.Row.State
		}
	}
	g.mu.Unlock()
	if door != nil {
		<-door
	}
	return g.Store.Commit(ctx, f, b)
}

func (g *doored) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.door = make(chan struct{})
}

func (g *doored) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.door)
	g.door = nil
}

func (g *doored) first(id job.ExecutionID) job.ExecutionState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.created[id]
}

// office is a node over such a database, with a job and a worker of it.
type office struct {
	*holder
	st     *doored
	at     job.Instant
	polled chan []engine.Assignment
	end    func()
}

const officeGather = 2 * time.Millisecond

func newOffice(t *testing.T, path string) *office {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	st := &doored{Store: db, created: map[job.ExecutionID]job.ExecutionState{}}
	node, err := partition.NewNode(t.Context(), partition.Config{Store: st, Incarnation: "one", Sole: true, Gather: officeGather})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	for node.Ready() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	o := &office{holder: &holder{t: t, node: node, session: job.SessionIDOf(0, "default", "p", "w", "1")}, st: st, at: 946_684_800_000,
		polled: make(chan []engine.Assignment, 1), end: func() {
			stop()
			if err := errors.Join(<-done, db.Close()); err != nil {
				t.Error(err)
			}
		}}
	o.open(ctx)
	return o
}

// open puts the job in and opens the worker's session.
func (o *office) open(ctx context.Context) {
	o.t.Helper()
	def := job.Definition{UID: job.UID{1}, Namespace: "default", Name: "one", Spec: job.Spec{Pool: "p", Handler: "h"}}
	_, w, err := o.st.PutJob(ctx, store.PutJob{Definition: def, At: o.at})
	if err != nil {
		o.t.Fatal(err)
	}
	o.node.Wake(0)
	if !o.node.AwaitEntry(ctx, 0, w.Entry) {
		o.t.Fatal("the owner did not take the job in")
	}
	ses := job.Session{ID: o.session, Namespace: "default", Pool: "p", Worker: "w", Incarnation: "1", Handlers: []string{"h"}, Slots: 10}
	if _, err := o.node.Call(ctx, 0, 0, engine.SessionOpen{Session: ses, Call: o.call()}); err != nil {
		o.t.Fatal(err)
	}
}

// trigger asks for an execution and hands its entry over.
func (o *office) trigger(n byte) (id job.ExecutionID, entry int64) {
	o.t.Helper()
	var page engine.InboxPage
	id = job.RequestedID(o.at, [10]byte{n})
	tr, err := o.st.Trigger(o.t.Context(), store.Trigger{Namespace: "default", Job: "one", Execution: id, Request: engine.Request{At: o.at},
		Told: func(_ int, seq int64, e *engine.Entry) {
			page = engine.InboxPage{Seq: seq, Entries: []engine.Entry{*e}}
		}},
		func(job.Definition) int { return 0 })
	if err != nil {
		o.t.Fatal(err)
	}
	o.node.Hand(0, page)
	synctest.Wait()
	return id, tr.Entry
}

// poll asks for work in the background.
func (o *office) poll(number int64, held ...job.Token) {
	go func() {
		reply, err := o.node.Call(context.Background(), 0, 0, engine.Poll{Session: o.session, Call: o.call(), Number: number, Free: 10 - len(held), Held: held, Wait: 20 * time.Second})
		if err != nil {
			o.t.Errorf("poll %d: %v", number, err)
			o.polled <- nil
			return
		}
		o.polled <- reply.Value.(*engine.Polled).Assignments
	}()
	synctest.Wait()
}

// What comes while a worker that was just given work is about to ask for more is granted in the commit that creates it. A worker that
// does not ask again keeps nobody waiting for longer than a step may gather.
func TestNextPollIsAwaited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "takt.db")
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, path)
		defer o.end()
		o.poll(1)
		time.Sleep(20 * officeGather) // no burst goes on

		o.st.shut()
		first, _ := o.trigger(1)
		second, _ := o.trigger(2)
		time.Sleep(10 * officeGather) // the commit of the first takes longer than a step gathers
		o.st.open()
		got := <-o.polled
		if len(got) != 1 || got[0].Execution.ID != first {
			t.Fatalf("the first poll brought %+v", got)
		}
		time.Sleep(officeGather / 2)
		o.st.shut() // the commit that it comes to
		o.poll(2, got[0].Token)
		third, entry := o.trigger(3)
		time.Sleep(10 * officeGather)
		o.st.open()
		if got = <-o.polled; len(got) != 1 || got[0].Execution.ID != second || o.st.first(second) != job.ExecutionRunning {
			t.Errorf("the next poll brought %+v; what came before it was written as %s first", got, o.st.first(second))
		}
		landed := time.Now()
		if !o.node.AwaitEntry(t.Context(), 0, entry) || time.Since(landed) > officeGather {
			t.Errorf("nobody asked again: taken in after %v", time.Since(landed))
		}
		if state := o.st.first(third); state != job.ExecutionQueued {
			t.Errorf("nobody asked again: written as %s", state)
		}
	})
}
