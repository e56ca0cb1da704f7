package drill_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// desk drives an engine by hand: no database, no runner, no clock but its own. What the engine commits
// is kept as rows, pages are answered at once unless a test holds them back, and everything becomes a
// history for the checker.
type desk struct {
	t    *testing.T
	cfg  engine.Config
	core *engine.Engine
	mono time.Duration

	def      *job.Definition
	rows     map[job.ExecutionID]*engine.Row
	sessions map[job.SessionID]job.Session
	seq      int64
	token    job.Token
	entry    int64

	reply   engine.ReplyID
	answers map[engine.ReplyID]any
	calls   map[job.SessionID]int64
	polls   map[job.SessionID]int64
	hist    drill.History
}

func newDesk(t *testing.T, sw engine.Switches) *desk {
	cfg := engine.Default()
	cfg.Switches = sw
	cfg.Epoch = 1000
	d := &desk{t: t, cfg: cfg, def: testJob(), rows: map[job.ExecutionID]*engine.Row{}, sessions: map[job.SessionID]job.Session{},
		answers: map[engine.ReplyID]any{}, calls: map[job.SessionID]int64{}, polls: map[job.SessionID]int64{}}
	d.hist.TTL, d.hist.Margin, d.hist.OwnerTTL, d.hist.Slack = cfg.LeaseTTL, cfg.Margin, cfg.OwnerTTL, 100*time.Millisecond
	d.load(false)
	return d
}

// load makes a new engine from the rows, under a higher epoch.
func (d *desk) load(takeover bool) {
	d.cfg.Epoch = max(d.cfg.Epoch+1, job.Epoch(d.token)+1)
	d.core = engine.New(d.cfg)
	l := engine.Loaded{Seq: d.seq, LastToken: d.token, Takeover: takeover}
	for _, s := range d.sessions {
		l.Sessions = append(l.Sessions, s)
	}
	for _, r := range d.rows {
		if !r.Execution.State.Ended() && r.Execution.State != job.ExecutionQueued {
			l.Executions = append(l.Executions, d.copy(r))
		}
	}
	d.step(l)
}

func (d *desk) copy(r *engine.Row) engine.Row {
	c := *r
	c.Shards = slices.Clone(r.Shards)
	return c
}

func (d *desk) wall() job.Instant { return origin.Add(d.mono) }

// step runs one step, keeps what it writes and answers the pages that it wants.
func (d *desk) step(events ...engine.Event) {
	for range 10 {
		w := d.bare(events...)
		events = events[:0]
		if w.Due != nil {
			events = append(events, engine.DuePage{Seq: d.seq, Until: w.Due.Until})
		}
		if w.Backlog != nil {
			events = append(events, d.backlog(*w.Backlog))
		}
		if len(w.Executions) > 0 {
			events = append(events, d.page(w.Executions))
		}
		if len(w.Shards) > 0 {
			events = append(events, d.shards(w.Shards))
		}
		if len(events) == 0 {
			return
		}
	}
	d.t.Fatal("the engine asks for pages without end")
}

// bare runs one step and leaves its wishes to the caller.
func (d *desk) bare(events ...engine.Event) engine.Want {
	d.t.Helper()
	before := d.core.Seq()
	r := d.core.Step(engine.Now{Wall: d.wall(), Mono: d.mono}, append(slices.Clone(events), engine.Tick{}))
	seq, after := d.core.Seq(), d.core.Seq() == before
	note := func(f engine.Fact, trace bool) {
		d.hist.Events = append(d.hist.Events, drill.Event{Seq: seq, At: d.wall(), Trace: trace, After: trace && after, Fact: f})
	}
	for _, f := range r.Trace {
		note(f, true)
	}
	for _, f := range r.Batch.Facts {
		note(f, false)
	}
	if !r.Batch.Empty() {
		d.apply(&r.Batch)
	}
	for _, a := range r.Answers {
		d.answers[a.Reply] = a.Value
	}
	return r.Want
}

func (d *desk) apply(b *engine.Batch) {
	d.seq, d.token = b.Seq, b.LastToken
	for _, w := range b.Executions {
		r := d.rows[w.Row.ID]
		if r == nil {
			r = &engine.Row{Definition: d.def, Shards: make([]job.Shard, w.Row.ShardTotal)}
			d.rows[w.Row.ID] = r
		}
		r.Execution = w.Row
	}
	for _, w := range b.Shards {
		d.rows[w.Row.Execution].Shards[w.Row.Index] = w.Row
	}
	for _, s := range b.Sessions {
		d.sessions[s.ID] = s
	}
	for _, id := range b.EndSessions {
		delete(d.sessions, id)
	}
}

func (d *desk) backlog(w engine.WantBacklog) engine.BacklogPage {
	p := engine.BacklogPage{Seq: d.seq, After: w.Place()}
	for _, r := range d.rows {
		if r.Execution.State == job.ExecutionQueued {
			p.Rows = append(p.Rows, d.copy(r))
		}
	}
	return p
}

func (d *desk) page(ids []job.ExecutionID) engine.ExecutionPage {
	p := engine.ExecutionPage{Seq: d.seq, Asked: ids}
	for _, id := range ids {
		if r := d.rows[id]; r != nil {
			p.Rows = append(p.Rows, d.copy(r))
		}
	}
	return p
}

func (d *desk) shards(refs []engine.ShardRef) engine.ShardPage {
	p := engine.ShardPage{Seq: d.seq, Asked: refs}
	for _, ref := range refs {
		if r := d.rows[ref.Execution]; r != nil && ref.Index < len(r.Shards) {
			s := &r.Shards[ref.Index]
			p.Rows = append(p.Rows, engine.Settled{ShardRef: ref, Token: s.Token, ReportSeq: s.ReportSeq, Closed: s.Closed})
		}
	}
	return p
}

// until lets time pass to the given instant, with a tick wherever the engine wants one.
func (d *desk) until(at time.Duration) {
	for {
		next, ok := d.core.NextWake()
		if !ok || next > at {
			break
		}
		d.mono = max(d.mono, next)
		if next < d.mono || next == 0 {
			d.mono += time.Millisecond // a wish of the past: what it waits for comes later
			if d.mono > at {
				break
			}
		}
		d.step()
	}
	d.mono = at
	d.step()
	d.hist.End = d.wall().Time()
}

func testJob() *job.Definition {
	return &job.Definition{UID: job.UID{7}, Namespace: "default", Name: "j", Revision: 1, CreatedAt: origin,
		Spec: job.Spec{Pool: "p", Handler: "h", Retry: job.Retry{MaxAttempts: 3, Initial: time.Millisecond, Jitter: "none"}}}
}

// request puts a trigger, a cancel or a rerun into the engine.
func (d *desk) request(kind engine.EntryKind, id job.ExecutionID) {
	d.entry++
	d.step(engine.InboxPage{Seq: d.seq, Entries: []engine.Entry{{ID: d.entry, Kind: kind, Job: job.UID{7}, Execution: id,
		Request: &engine.Request{At: d.wall()}, Definition: d.def}}})
}

func (d *desk) trigger() job.ExecutionID {
	id := job.RequestedID(d.wall(), [10]byte{byte(d.entry), 1})
	d.request(engine.EntryTrigger, id)
	return id
}

// worker is a hand-made worker at a desk; it writes wire notes as a link does.
type worker struct {
	d    *desk
	name string
	id   job.SessionID
	poll engine.ReplyID
}

func (d *desk) worker(name string) *worker {
	w := &worker{d: d, name: name, id: job.SessionIDOf(0, "default", "p", name, "1")}
	d.reply++
	d.step(engine.SessionOpen{Reply: d.reply, Call: w.call(), Session: job.Session{ID: w.id, Namespace: "default", Pool: "p",
		Worker: name, Incarnation: "1", Handlers: []string{"h"}, Slots: 1}})
	return w
}

func (w *worker) call() int64 {
	w.d.calls[w.id]++
	n := w.d.calls[w.id]
	w.d.hist.Wire = append(w.d.hist.Wire, drill.WireNote{At: w.d.wall().Time(), Kind: drill.WireSent, Worker: w.name, Session: string(w.id), Call: n})
	return n
}

func (w *worker) named(call int64, token job.Token) {
	w.d.hist.Wire = append(w.d.hist.Wire, drill.WireNote{At: w.d.wall().Time(), Kind: drill.WireNamed, Worker: w.name, Session: string(w.id), Call: call, Token: token})
}

// ask hangs a poll.
func (w *worker) ask() {
	w.d.reply++
	w.d.polls[w.id]++
	w.poll = w.d.reply
	w.d.step(engine.Poll{Reply: w.poll, Session: w.id, Call: w.call(), Number: w.d.polls[w.id], Free: 1, Wait: time.Hour})
}

// takes receives the answer to the hanging poll and returns its one assignment.
func (w *worker) takes() engine.Assignment {
	w.d.t.Helper()
	p, ok := w.d.answers[w.poll].(*engine.Polled)
	if !ok || len(p.Assignments) != 1 {
		w.d.t.Fatalf("%s at %s: the poll was answered %+v, want one assignment", w.name, w.d.mono, w.d.answers[w.poll])
	}
	a := p.Assignments[0]
	w.named(a.LeaseCall, a.Token)
	return a
}

func (w *worker) beat(tokens ...job.Token) *engine.Beaten {
	w.d.reply++
	h := engine.Heartbeat{Reply: w.d.reply, Session: w.id, Call: w.call()}
	for _, t := range tokens {
		h.Held = append(h.Held, engine.Held{Token: t})
	}
	r := w.d.reply
	w.d.step(h)
	b, ok := w.d.answers[r].(*engine.Beaten)
	if !ok {
		w.d.t.Fatalf("%s at %s: the beat was answered %+v", w.name, w.d.mono, w.d.answers[r])
	}
	for _, t := range b.Renewed {
		w.named(b.Call, t)
	}
	return b
}

func (w *worker) report(a engine.Assignment, seq int64, kind engine.ItemKind, outcome engine.Outcome) engine.ItemStatus {
	w.d.reply++
	r, sent := w.d.reply, w.d.wall().Time()
	w.d.step(engine.Report{Reply: r, Session: w.id, Call: w.call(), Items: []engine.ReportItem{{Execution: a.Execution.ID, Shard: a.Shard,
		Token: a.Token, Seq: seq, Kind: kind, Outcome: outcome, Checkpoint: []byte("1")}}})
	got, ok := w.d.answers[r].(*engine.Reported)
	if !ok {
		w.d.t.Fatalf("%s at %s: the report was answered %+v", w.name, w.d.mono, w.d.answers[r])
	}
	note := drill.WireNote{At: w.d.wall().Time(), Kind: drill.WireRefused, Worker: w.name, Session: string(w.id), Token: a.Token, First: sent}
	if got.Items[0] == engine.ItemAccepted {
		note.Kind = drill.WireAccepted
	}
	w.d.hist.Wire = append(w.d.hist.Wire, note)
	return got.Items[0]
}

func (w *worker) effect(a engine.Assignment) {
	w.d.hist.Effects = append(w.d.hist.Effects, drill.Effect{At: w.d.wall().Time(), Worker: w.name, Execution: a.Execution.ID.String(),
		Shard: a.Shard, Token: a.Token, Attempt: a.Attempt, Key: a.Key})
}

func (d *desk) history() *drill.History {
	for _, r := range d.rows {
		d.hist.Executions = append(d.hist.Executions, r.Execution)
	}
	return &d.hist
}

func violations(h *drill.History) string {
	s := ""
	for _, v := range drill.Check(h) {
		s += fmt.Sprintln(v)
	}
	return s
}
