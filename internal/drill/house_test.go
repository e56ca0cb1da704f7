package drill_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// house is one database with nodes on it and workers made by hand, in a bubble. Several nodes on one
// SQLite file stand for servers on a shared database: the partition code is the same.
type house struct {
	t  *testing.T
	st *sqlite.Store

	mu     sync.Mutex
	traces []drill.Event
	seen   map[[2]int64]time.Time
	hist   drill.History
	calls  map[job.SessionID]int64
	polls  map[job.SessionID]int64
	wg     sync.WaitGroup
	ctx    context.Context
	stop   context.CancelFunc
	execs  []job.ExecutionID
}

// inHouse plays a scenario and returns its history.
func inHouse(t *testing.T, play func(h *house)) *drill.History {
	var out *drill.History
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		h := &house{t: t, st: st, seen: map[[2]int64]time.Time{}, calls: map[job.SessionID]int64{}, polls: map[job.SessionID]int64{}}
		h.ctx, h.stop = context.WithCancel(context.Background())
		l := partition.Lease{}.Filled()
		h.hist = drill.History{TTL: l.TTL, Margin: l.Margin, OwnerTTL: l.OwnerTTL, Slack: 2 * time.Second}
		defer func() {
			h.stop()
			h.wg.Wait()
			out = h.history()
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}()
		play(h)
	})
	return out
}

// node starts a node over its own view of the store.
func (h *house) node(name string, st store.Store, change func(*partition.Config)) *partition.Node {
	h.t.Helper()
	cfg := partition.Config{Store: st, Server: name, Incarnation: name, Engine: engine.Default(), Observe: h.observe,
		Live: func() []string { return []string{name} }} // nobody steps back for another by himself
	if change != nil {
		change(&cfg)
	}
	n, err := partition.NewNode(h.ctx, cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.wg.Go(func() {
		if err := n.Run(h.ctx); err != nil && !errors.Is(err, partition.ErrCrashed) {
			h.t.Errorf("node %s: %v", name, err)
		}
	})
	return n
}

func (h *house) observe(o partition.Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(o.Facts) > 0 {
		h.seen[[2]int64{int64(o.Partition), o.Seq}] = time.Now()
	}
	for _, f := range o.Trace {
		h.traces = append(h.traces, drill.Event{Partition: o.Partition, Seq: o.Seq, Epoch: o.Epoch, At: o.Now.Wall, When: time.Now(),
			Trace: true, After: len(o.Facts) == 0, Fact: f})
	}
}

func (h *house) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// waitFor lets time pass until ok.
func (h *house) waitFor(what string, limit time.Duration, ok func() bool) {
	h.t.Helper()
	for end := time.Now().Add(limit); !ok(); h.wait(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func (h *house) owned(n *partition.Node) {
	h.t.Helper()
	h.waitFor("the node owns the partition", time.Minute, func() bool { return len(n.Stats()) == 1 })
}

// job puts a job of one shard.
func (h *house) job(change func(*job.Spec)) {
	h.t.Helper()
	def := job.Definition{UID: job.UID{7}, Namespace: "default", Name: "j",
		Spec: job.Spec{Pool: "p", Handler: "h", Retry: job.Retry{MaxAttempts: 3, Initial: time.Second, Jitter: "none"}}}
	if change != nil {
		change(&def.Spec)
	}
	if _, _, err := h.st.PutJob(h.ctx, store.PutJob{Definition: def, At: job.InstantOf(time.Now())}); err != nil {
		h.t.Fatal(err)
	}
}

// trigger asks for an execution and waits until the owner has taken it in.
func (h *house) trigger(n *partition.Node) job.ExecutionID {
	h.t.Helper()
	now := job.InstantOf(time.Now())
	id := job.RequestedID(now, [10]byte{byte(len(h.execs)), 1})
	r, err := h.st.Trigger(h.ctx, store.Trigger{Namespace: "default", Job: "j", Execution: id, Request: engine.Request{At: now}},
		func(job.Definition) int { return 0 })
	if err != nil {
		h.t.Fatal(err)
	}
	n.Wake(0)
	h.execs = append(h.execs, id)
	if !n.AwaitEntry(h.ctx, 0, r.Entry) {
		h.t.Fatal("the trigger was not taken in")
	}
	return id
}

func (h *house) history() *drill.History {
	rows, err := h.st.Journal(context.Background(), 0, 0, 1<<20)
	if err != nil {
		h.t.Fatal(err)
	}
	journal, err := drill.ReadJournal(rows)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, id := range h.execs {
		x, err := h.st.Execution(context.Background(), "default", id)
		if err != nil {
			h.t.Fatal(err)
		}
		h.hist.Executions = append(h.hist.Executions, x)
	}
	drill.Seen(journal, h.seen)
	h.hist.Events, h.hist.End = drill.Merge(journal, h.traces), time.Now()
	return &h.hist
}

// hand is a worker made by hand: it says what the test tells it to say.
type hand struct {
	h    *house
	name string
	id   job.SessionID
	seen job.Epoch
	poll chan polled
}

type polled struct {
	reply partition.Reply
	err   error
}

func (h *house) hand(n *partition.Node, name string) *hand {
	h.t.Helper()
	w := &hand{h: h, name: name, id: job.SessionIDOf(0, "default", "p", name, "1")}
	if _, err := w.call(n, engine.SessionOpen{Call: w.next(), Session: job.Session{ID: w.id, Namespace: "default", Pool: "p", Worker: name,
		Incarnation: "1", Handlers: []string{"h"}, Slots: 1}}); err != nil {
		h.t.Fatalf("%s opens: %v", name, err)
	}
	return w
}

func (w *hand) next() int64 {
	w.h.calls[w.id]++
	n := w.h.calls[w.id]
	w.note(drill.WireNote{Kind: drill.WireSent, Call: n})
	return n
}

func (w *hand) note(n drill.WireNote) {
	n.At, n.Worker, n.Session = time.Now(), w.name, string(w.id)
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	w.h.hist.Wire = append(w.h.hist.Wire, n)
}

func (w *hand) call(n *partition.Node, ev engine.Event) (any, error) {
	ctx, cancel := context.WithTimeout(w.h.ctx, 2*time.Second)
	defer cancel()
	r, err := n.Call(ctx, 0, w.seen, ev)
	return r.Value, err
}

// ask hangs a poll.
func (w *hand) ask(n *partition.Node) {
	w.h.polls[w.id]++
	ev := engine.Poll{Session: w.id, Call: w.next(), Number: w.h.polls[w.id], Free: 1, Wait: time.Hour}
	answer := make(chan polled, 1)
	w.poll = answer
	w.h.wg.Go(func() {
		r, err := n.Call(w.h.ctx, 0, w.seen, ev)
		answer <- polled{r, err}
	})
	synctest.Wait()
}

// takes waits for the answer of the hanging poll and returns its one assignment.
func (w *hand) takes(limit time.Duration) engine.Assignment {
	w.h.t.Helper()
	select {
	case a := <-w.poll:
		p, ok := a.reply.Value.(*engine.Polled)
		if a.err != nil || !ok || len(p.Assignments) != 1 {
			w.h.t.Fatalf("%s: the poll was answered %+v, %v", w.name, a.reply.Value, a.err)
		}
		as := p.Assignments[0]
		w.note(drill.WireNote{Kind: drill.WireNamed, Call: as.LeaseCall, Token: as.Token})
		return as
	case <-time.After(limit):
		w.h.t.Fatalf("%s: no assignment within %s", w.name, limit)
		return engine.Assignment{}
	}
}

// beat renews and tells whether the lease goes on.
func (w *hand) beat(n *partition.Node, token job.Token) (bool, error) {
	v, err := w.call(n, engine.Heartbeat{Session: w.id, Call: w.next(), Held: []engine.Held{{Token: token}}})
	if err != nil {
		return false, err
	}
	b := v.(*engine.Beaten)
	for _, t := range b.Renewed {
		w.note(drill.WireNote{Kind: drill.WireNamed, Call: b.Call, Token: t})
	}
	for _, t := range b.Lost {
		w.note(drill.WireNote{Kind: drill.WireRefused, Token: t})
	}
	return len(b.Renewed) == 1, nil
}

func (w *hand) report(n *partition.Node, a engine.Assignment, seq int64, kind engine.ItemKind, outcome engine.Outcome) (engine.ItemStatus, error) {
	first := time.Now()
	v, err := w.call(n, engine.Report{Session: w.id, Call: w.next(), Items: []engine.ReportItem{{Execution: a.Execution.ID, Shard: a.Shard,
		Token: a.Token, Seq: seq, Kind: kind, Outcome: outcome}}})
	if err != nil {
		return "", err
	}
	got := v.(*engine.Reported).Items[0]
	note := drill.WireNote{Kind: drill.WireRefused, Token: a.Token, First: first}
	if got == engine.ItemAccepted {
		note.Kind = drill.WireAccepted
	}
	w.note(note)
	return got, nil
}

func (w *hand) effect(a engine.Assignment) {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	w.h.hist.Effects = append(w.h.hist.Effects, drill.Effect{At: time.Now(), Worker: w.name, Execution: a.Execution.ID.String(),
		Shard: a.Shard, Token: a.Token, Attempt: a.Attempt, Key: a.Key})
}
