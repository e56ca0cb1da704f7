package partition

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// flight is a step whose commit is on the way or waits for its turn.
type flight struct {
	items   []item
	batch   engine.Batch
	now     engine.Now
	trace   []engine.Fact
	effects effects
	tail    []effects // of later steps that committed nothing, but rest on this commit
	sent    time.Duration
}

// effects is what a step does to the outside, in this order.
type effects struct {
	kinds   []string // of the step's events
	answers []engine.Answer
	wakes   []int
	items   []item // set-aside events, whose callers are answered by the runner
}

// committed is the outcome of a commit.
type committed struct{ err error }

// dispose commits and performs what a step decided (R1). Renewals go at once; everything else waits for
// the step's own commit and every commit before it.
func (t *tenure) dispose(items []item, now engine.Now, res engine.Result) *ending {
	eff := effects{kinds: kinds(items), wakes: res.Wakes, items: items}
	for _, a := range res.Answers {
		if a.Renewal || t.cfg.Switches.NegativesAtOnce && negative(a.Value) {
			t.deliver(a)
			continue
		}
		eff.answers = append(eff.answers, a)
	}
	f := &flight{items: items, batch: res.Batch, now: now, trace: res.Trace, effects: eff}
	switch {
	case res.Batch.Empty():
		if len(res.Trace) > 0 {
			t.observe(f, t.ahead)
		}
		if t.flight == nil {
			return t.perform(eff)
		}
		t.flight.tail = append(t.flight.tail, eff)
		return nil
	case t.flight == nil:
		t.ahead = f.batch.Seq
		return t.send(f)
	default:
		t.ahead = f.batch.Seq
		t.prepared = f
		return nil
	}
}

// send starts the commit of f. One is on the way at a time.
func (t *tenure) send(f *flight) *ending {
	if e := t.crashPoints("before_commit/", f.effects.kinds); e != nil {
		return e
	}
	f.sent = t.seat.n.mono()
	t.flight = f
	t.sends <- sending{t.fence(), &f.batch}
	return nil
}

// sending is a commit on its way to the database.
type sending struct {
	fence store.Fence
	batch *engine.Batch
}

// commitAll sends commits until the tenure ends. It is one goroutine for all of them: a new one each time would grow its stack anew.
func (t *tenure) commitAll() {
	for s := range t.sends {
		ctx, cancel := context.WithTimeout(t.work, t.cfg.Lease.OwnerTTL)
		err := t.cfg.Store.Commit(ctx, s.fence, s.batch)
		cancel()
		t.committed <- committed{err}
	}
}

// landed takes in the outcome of the commit on the way, performs its effects and sends the next.
func (t *tenure) landed(r committed) *ending {
	f := t.flight
	t.flight = nil
	t.seat.tally.committed(t.seat.n.mono()-f.sent, r.err)
	if r.err != nil {
		if job.KindOf(r.err) == job.KindRejected {
			var about engine.About
			if len(f.items) == 0 { // else it is the event's fault, not the row's
				about = refusedRow(r.err)
			}
			return t.poisoned(f.items, r.err, about)
		}
		return &ending{why: endBroken, err: r.err, about: refusedRow(r.err)}
	}
	t.commits++
	t.seq.Store(f.batch.Seq)
	t.observe(f, f.batch.Seq)
	if e := t.crashPoints("after_commit/", f.effects.kinds); e != nil {
		return e
	}
	t.seat.n.entries.consumed(f.batch.Consumed)
	for _, eff := range append([]effects{f.effects}, f.tail...) {
		if e := t.perform(eff); e != nil {
			return e
		}
	}
	if next := t.prepared; next != nil {
		t.prepared = nil
		return t.send(next)
	}
	return nil
}

// perform sends answers and wakes. Between each two lies a crash point.
func (t *tenure) perform(eff effects) *ending {
	var acts []func()
	for _, a := range eff.answers {
		acts = append(acts, func() { t.deliver(a) })
	}
	for _, p := range eff.wakes {
		acts = append(acts, func() { t.seat.n.Wake(p) })
	}
	for _, it := range eff.items {
		if it.call != nil && isSetAside(it) {
			acts = append(acts, func() { t.deliver(engine.Answer{Reply: it.call.reply, Value: poisonError()}) })
		}
	}
	for i, act := range acts {
		if i > 0 {
			if e := t.crashPoints("between_effects/", eff.kinds); e != nil {
				return e
			}
		}
		act()
	}
	return nil
}

// deliver answers a call, if it still waits.
func (t *tenure) deliver(a engine.Answer) {
	c := t.waiters[a.Reply]
	if c == nil {
		return
	}
	delete(t.waiters, a.Reply)
	if p, is := a.Value.(*engine.Polled); is && len(p.Assignments) > 0 {
		t.polled = t.seat.n.mono()
	}
	if err, ok := a.Value.(*job.Error); ok {
		c.answer <- answered{err: err}
		return
	}
	c.answer <- answered{value: a.Value}
}

// negative tells whether an answer refuses something.
func negative(v any) bool {
	switch v := v.(type) {
	case *job.Error:
		return true
	case *engine.Beaten:
		return len(v.Lost) > 0
	case *engine.Reported:
		for _, s := range v.Items {
			if s != engine.ItemAccepted {
				return true
			}
		}
	}
	return false
}

func (t *tenure) observe(f *flight, seq int64) {
	if t.cfg.Observe == nil {
		return
	}
	t.cfg.Observe(Observation{
		Partition: t.seat.partition, Owner: t.cfg.Incarnation, Epoch: t.epoch, Seq: seq,
		Now: f.now, Facts: f.batch.Facts, Trace: f.trace,
	})
}

// kinds names the kinds of events of a step, each once.
func kinds(items []item) []string {
	var names []string
	seen := map[string]bool{}
	for _, it := range items {
		if !seen[it.kind] {
			seen[it.kind] = true
			names = append(names, it.kind)
		}
	}
	if len(names) == 0 {
		names = []string{kindOf(engine.Tick{})}
	}
	return names
}

// crashPoints calls the tests' hook. When it panics, the node is dead from here on: nothing is sent,
// answered or released any more.
func (t *tenure) crashPoints(at string, kinds []string) (end *ending) {
	if t.cfg.Crash == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			t.seat.n.die(ErrCrashed)
			end = &ending{why: endStopped, err: ErrCrashed}
		}
	}()
	for _, k := range kinds {
		t.cfg.Crash(at + k)
	}
	return nil
}

// handOver ends a tenure so that another server may have the partition.
func (t *tenure) handOver(ctx context.Context) *ending {
	end := t.stop(ctx)
	if !t.seat.n.crashed(ctx) {
		end.why = endGiven
	}
	return end
}

// stop ends a tenure gracefully: the commit on the way is waited for, so that its callers learn of it.
func (t *tenure) stop(ctx context.Context) *ending {
	t.seat.current.CompareAndSwap(t, nil)
	if t.flight != nil && !t.seat.n.crashed(ctx) {
		timer := time.NewTimer(stopWait)
		defer timer.Stop()
		t.prepared = nil // its callers ask again
		select {
		case r := <-t.committed:
			if e := t.landed(r); e != nil && e.why != endStopped {
				t.log.Error("the last commit failed; its callers were told to ask again", "err", e.err)
			}
		case <-timer.C:
			t.log.Warn("the last commit did not end in time; its outcome is left to the next owner")
		}
	}
	return &ending{why: endStopped}
}
