package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// worker is a holder as R7 wants it: it numbers its calls, remembers when it sent each, and works on a
// shard until the instant before the named call was sent + TTL − margin.
type worker struct {
	w       *world
	name    string
	life    int // incarnation
	session job.Session
	call    int64
	polls   int64
	sent    map[int64]time.Duration
	held    map[job.Token]*task
	begun   map[job.Token]bool // a session starts a token once
	polling bool
	unknown bool // the server told that it does not know the session
	over    bool // closed or dead: answers reach nobody
}

// task is a shard that the worker runs.
type task struct {
	exec    job.ExecutionID
	shard   int
	token   job.Token
	attempt int
	seq     int64
	until   time.Duration // it fences itself off here
	ends    time.Duration // a living worker's handler ends here
	told    bool          // to stop
	done    bool          // the handler has returned
	last    *engine.ReportItem
}

// request is a call on its way: its event is made when it arrives.
type request struct {
	what   string
	event  func(engine.ReplyID) engine.Event
	answer func(any)
	items  []engine.ReportItem // of a report
}

func newWorker(w *world, name string, life, slots int, handlers ...string) *worker {
	k := &worker{w: w, name: name, life: life, sent: map[int64]time.Duration{}, begun: map[job.Token]bool{}, held: map[job.Token]*task{}}
	k.session = job.Session{ID: job.SessionIDOf(0, "default", "files", name, fmt.Sprint(life)), Namespace: "default", Pool: "files",
		Worker: name, Incarnation: fmt.Sprint(life), Handlers: handlers, Slots: slots}
	return k
}

// number numbers a call and notes the instant before it is sent.
func (k *worker) number() int64 {
	k.call++
	k.sent[k.call] = k.w.mono
	return k.call
}

func (k *worker) what(call string, n int64) string { return fmt.Sprintf("%s %s #%d", k.name, call, n) }

func (k *worker) open() request {
	n := k.number()
	return request{k.what("open", n), func(r engine.ReplyID) engine.Event {
		return engine.SessionOpen{Reply: r, Session: k.session, Call: n}
	}, func(any) {}, nil}
}

// tokens lists what it names, in order.
func (k *worker) tokens() []job.Token {
	var out []job.Token
	for _, t := range slices.Sorted(maps.Keys(k.held)) {
		if !k.held[t].done || k.held[t].last != nil {
			out = append(out, t)
		}
	}
	return out
}

// busy counts handlers that run.
func (k *worker) busy() int {
	n := 0
	for _, t := range k.held {
		if !t.done {
			n++
		}
	}
	return n
}

func (k *worker) poll(free int, wait time.Duration) request {
	n := k.number()
	k.polls++
	ev := engine.Poll{Session: k.session.ID, Call: n, Number: k.polls, Free: free, Held: k.tokens(), Wait: wait}
	k.polling = true
	return request{k.what("poll", n), func(r engine.ReplyID) engine.Event { ev.Reply = r; return ev }, func(v any) {
		if ev.Number != k.polls || !k.polling {
			return // it had given this poll up
		}
		k.polling = false
		k.refused(v)
		p, ok := v.(*engine.Polled)
		if !ok {
			return
		}
		for i := range p.Assignments {
			k.assigned(&p.Assignments[i])
		}
		k.stopTold(p.Cancels)
	}, nil}
}

// assigned begins a shard, once per token; one whose end is over already is not begun.
func (k *worker) assigned(a *engine.Assignment) {
	until := k.sent[a.LeaseCall] + k.w.cfg.LeaseTTL - k.w.cfg.Margin
	if k.over || k.begun[a.Token] || k.w.mono >= until {
		return
	}
	k.begun[a.Token] = true
	k.held[a.Token] = &task{exec: a.Execution.ID, shard: a.Shard, token: a.Token, attempt: a.Attempt, until: until}
	k.w.check.received(a.Token, until)
}

func (k *worker) stopTold(cancels []engine.Cancel) {
	for _, c := range cancels {
		if t := k.held[c.Token]; t != nil {
			t.told = true
		}
	}
}

func (k *worker) refused(v any) {
	if _, is := v.(*job.Error); is {
		k.unknown = true
	}
}

func (k *worker) beat(named []job.Token, progress *job.Progress) request {
	n := k.number()
	ev := engine.Heartbeat{Session: k.session.ID, Call: n}
	for _, t := range named {
		ev.Held = append(ev.Held, engine.Held{Token: t, Progress: progress})
	}
	return request{k.what("beat", n), func(r engine.ReplyID) engine.Event { ev.Reply = r; return ev }, func(v any) {
		k.refused(v)
		b, ok := v.(*engine.Beaten)
		if !ok {
			return
		}
		until := k.sent[b.Call] + k.w.cfg.LeaseTTL - k.w.cfg.Margin
		for _, token := range b.Renewed {
			if t := k.held[token]; t != nil && !t.done && k.w.mono < t.until {
				t.until = max(t.until, until)
				k.w.check.received(token, t.until)
			}
		}
		for _, token := range b.Lost {
			k.drop(token)
		}
		k.stopTold(b.Cancels)
	}, nil}
}

// drop stops a shard without a word.
func (k *worker) drop(token job.Token) {
	k.w.check.stopped(token)
	delete(k.held, token)
}

// item makes the next report item of a task. After done the handler is over.
func (k *worker) item(t *task, kind engine.ItemKind) engine.ReportItem {
	t.seq++
	return engine.ReportItem{Execution: t.exec, Shard: t.shard, Token: t.token, Seq: t.seq, Kind: kind}
}

func (k *worker) done(t *task, outcome engine.Outcome, after time.Duration) engine.ReportItem {
	it := k.item(t, engine.ItemDone)
	it.Outcome, it.RetryAfter = outcome, after
	if outcome == engine.OutcomeSuccess {
		it.Result = json.RawMessage(`"ok"`)
	}
	if outcome == engine.OutcomeError || outcome == engine.OutcomeFatal {
		it.Failure = &job.Failure{Class: string(outcome), Message: "it broke"}
	}
	t.done, t.last = true, &it
	k.w.check.stopped(t.token)
	return it
}

func (k *worker) report(items ...engine.ReportItem) request {
	n := k.number()
	ev := engine.Report{Session: k.session.ID, Call: n, Items: items}
	return request{k.what("report", n), func(r engine.ReplyID) engine.Event { ev.Reply = r; return ev }, func(v any) {
		k.refused(v)
		rep, ok := v.(*engine.Reported)
		if !ok {
			return
		}
		for i, it := range items {
			t := k.held[it.Token]
			switch {
			case t == nil:
			case it.Kind == engine.ItemDone:
				delete(k.held, it.Token)
			case rep.Items[i] != engine.ItemAccepted && !t.done:
				t.told = true
			}
		}
	}, items}
}

func (k *worker) close() request {
	n := k.number()
	for _, t := range k.held {
		k.w.check.stopped(t.token)
	}
	clear(k.held)
	k.over = true
	return request{k.what("close", n), func(r engine.ReplyID) engine.Event {
		return engine.SessionClose{Reply: r, Session: k.session.ID, Call: n}
	}, func(any) {}, nil}
}

// die ends the process: nothing of it works any more.
func (k *worker) die() {
	for _, t := range k.held {
		k.w.check.stopped(t.token)
	}
	clear(k.held)
	k.over = true
}

// fence stops what is past its end by the worker's own clock.
func (k *worker) fence() {
	for token, t := range k.held {
		if !t.done && k.w.mono >= t.until {
			k.drop(token)
		}
	}
}

// deliver takes requests in, all in one step.
func (w *world) deliver(requests ...request) error {
	events := make([]engine.Event, len(requests))
	for i, r := range requests {
		events[i] = r.event(w.ask(r))
	}
	return w.step(events...)
}

// ask registers who waits for a request's answer.
func (w *world) ask(r request) engine.ReplyID {
	id := w.call(r.what, r.answer)
	w.replies[id].items = r.items
	return id
}
