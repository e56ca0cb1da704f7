package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// BenchmarkExecutions takes 1,000 unsharded executions from trigger to result, in batches of 100 over 10
// workers; rows are committed to nothing. It gives the core's time per execution.
func BenchmarkExecutions(b *testing.B) {
	const executions, batch, workers = 1000, 100, 10
	for b.Loop() {
		f := newFloor(workers, batch/workers)
		for from := 0; from < executions; from += batch {
			f.trigger(from, batch)
			f.report(f.polled(), engine.ItemStarted)
			f.report(f.running, engine.ItemDone)
			f.running = f.running[:0]
		}
		if f.done != executions {
			b.Fatalf("%d of %d executions ended", f.done, executions)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/executions, "µs/execution")
}

// BenchmarkHeldLeases beats for 100,000 held leases: 1,000 workers with 100 each, 100 beats a step.
func BenchmarkHeldLeases(b *testing.B) {
	const workers, slots = 1000, 100
	f := newFloor(workers, slots)
	f.trigger(0, workers*slots)
	f.report(f.polled(), engine.ItemStarted)
	beats := 0
	for b.Loop() {
		f.now.Mono += 300 * time.Millisecond // every worker each 3 s
		f.now.Wall += 300
		events := []engine.Event{engine.Tick{}}
		for i := range 100 {
			k := f.workers[(beats+i)%workers]
			k.call++
			events = append(events, engine.Heartbeat{Session: k.id, Call: k.call, Held: k.held})
		}
		beats += 100
		r := f.e.Step(f.now, events)
		if !r.Batch.Empty() {
			b.Fatalf("beats are written: %+v", r.Batch.Facts[0])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(beats)/slots, "ns/renewal")
}

// floor is many workers at one engine, without a database.
type floor struct {
	e       *engine.Engine
	now     engine.Now
	def     *job.Definition
	workers []*hand
	running []given
	done    int
	entries int64
}

type hand struct {
	id    job.SessionID
	slots int
	call  int64
	polls int64
	held  []engine.Held
}

type given struct {
	to *hand
	a  engine.Assignment
}

func newFloor(workers, slots int) *floor {
	cfg := engine.Default()
	cfg.ReadyMax = 200_000
	f := &floor{e: engine.New(cfg), now: engine.Now{Mono: time.Hour, Wall: wallStart}}
	f.def = &job.Definition{UID: job.UID{1}, Namespace: "default", Name: "files", Revision: 1, Spec: job.Spec{Pool: "files", Handler: "index"}}
	events := []engine.Event{engine.Loaded{}, engine.BacklogPage{}}
	for i := range workers {
		k := &hand{id: job.SessionIDOf(0, "default", "files", fmt.Sprint("w", i), "1"), slots: slots, call: 1}
		f.workers = append(f.workers, k)
		events = append(events, engine.SessionOpen{Call: 1, Session: job.Session{ID: k.id, Namespace: "default", Pool: "files",
			Worker: fmt.Sprint("w", i), Handlers: []string{"index"}, Slots: slots}})
	}
	f.e.Step(f.now, events)
	return f
}

func (f *floor) trigger(from, n int) {
	page := engine.InboxPage{Seq: f.e.Seq()}
	for i := range n {
		f.entries++
		id := job.RequestedID(f.now.Wall, [10]byte{1: byte(from >> 16), 3: byte((from + i) >> 16), 4: byte((from + i) >> 8), 5: byte(from + i)})
		page.Entries = append(page.Entries, engine.Entry{ID: f.entries, Kind: engine.EntryTrigger, Job: f.def.UID, Definition: f.def,
			Execution: id, Request: &engine.Request{At: f.now.Wall}})
	}
	f.e.Step(f.now, []engine.Event{page, engine.Tick{}})
}

// polled lets all workers poll and gives what they got.
func (f *floor) polled() []given {
	var events []engine.Event
	for i, k := range f.workers {
		k.call++
		k.polls++
		k.held = k.held[:0]
		events = append(events, engine.Poll{Reply: engine.ReplyID(i), Session: k.id, Call: k.call, Number: k.polls, Free: k.slots, Wait: time.Minute})
	}
	for _, a := range f.e.Step(f.now, append(events, engine.Tick{})).Answers {
		if p, ok := a.Value.(*engine.Polled); ok {
			k := f.workers[a.Reply]
			for i := range p.Assignments {
				f.running = append(f.running, given{k, p.Assignments[i]})
				k.held = append(k.held, engine.Held{Token: p.Assignments[i].Token})
			}
		}
	}
	return f.running
}

func (f *floor) report(g []given, kind engine.ItemKind) {
	items := map[*hand][]engine.ReportItem{}
	for _, x := range g {
		it := engine.ReportItem{Execution: x.a.Execution.ID, Shard: x.a.Shard, Token: x.a.Token, Seq: 1, Kind: kind}
		if kind == engine.ItemDone {
			it.Seq, it.Outcome = 2, engine.OutcomeSuccess
		}
		items[x.to] = append(items[x.to], it)
	}
	var events []engine.Event
	for _, k := range f.workers {
		k.call++
		events = append(events, engine.Report{Session: k.id, Call: k.call, Items: items[k]})
	}
	r := f.e.Step(f.now, append(events, engine.Tick{}))
	for i := range r.Batch.Executions {
		if r.Batch.Executions[i].Row.State == job.ExecutionSucceeded {
			f.done++
		}
	}
}
