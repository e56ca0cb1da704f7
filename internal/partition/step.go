package partition

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// load reads the partition; its rows are the first event of the engine.
func (t *tenure) load(ctx context.Context) error {
	// Longer than this the lease does not last without a step; and then this seat must be free to take it anew.
	bounded, cancel := context.WithTimeout(ctx, 2*t.cfg.Lease.OwnerTTL)
	loaded, err := t.cfg.Store.LoadPartition(bounded, t.seat.partition)
	cancel()
	if err != nil {
		return fmt.Errorf("load partition: %w", err)
	}
	if held, err := t.hold(ctx, loaded); err != nil {
		return err
	} else if held { // as remaining times count from the load
		return t.load(ctx)
	}
	loaded.LeftOut = slices.Clone(t.seat.leftOut)
	loaded.Takeover = t.seat.n.mono() < t.seat.takeover
	t.seq.Store(loaded.Seq)
	t.loaded = t.seat.n.mono()
	t.ahead, t.from = loaded.Seq, loaded.Seq
	t.queue, t.unread = []item{{event: loaded, kind: kindOf(loaded)}}, 0
	return nil
}

// begin runs the first step, which takes what was loaded, and queues the events that the engine before
// this one could not digest.
func (t *tenure) begin() *ending {
	if e := t.step(1); e != nil { // not the fault of an event
		return &ending{why: endBroken, err: fmt.Errorf("first step: %w", e.err), about: e.about, carry: t.seat.carried}
	}
	carried := t.seat.carried
	t.seat.carried = nil
	for _, it := range carried {
		if it.call != nil && it.call.ctx.Err() != nil && !isSetAside(it) {
			it.call.answer <- answered{err: noOwner(t.seat.partition)} // nobody waits
			continue
		}
		t.queue = append(t.queue, it)
	}
	return nil
}

// advance reads and steps as far as the rules allow now.
func (t *tenure) advance() *ending {
	for {
		t.read()
		take := t.mayStep()
		if take < 0 {
			return nil
		}
		if e := t.step(take); e != nil {
			return e
		}
	}
}

// mayStep tells how many events the next step may take; -1: no step now.
func (t *tenure) mayStep() int {
	now := t.seat.n.mono()
	switch {
	case t.prepared != nil:
		return -1 // one step is ahead already
	case t.careful(now):
		return t.mayStepAlone(now)
	case t.flight == nil && t.reading.soon(now, t.cfg.Gather):
		return -1 // a page is about to arrive: take it with the rest
	case t.flight == nil && (t.untilHanded(now) > 0 || t.untilPolled(now) > 0):
		return -1 // likewise
	case t.flight != nil:
		// What comes while a commit is on the way forms the next group. A beat is worth a step of its
		// own: its answer may rest on no commit, and a slow database must not cost anybody a lease.
		if t.hasBeat() || len(t.queue) >= t.cfg.MaxEvents {
			return t.cfg.MaxEvents
		}
		return -1
	case len(t.queue) > 0 && t.gathered(now), t.tickDue(now):
		return t.cfg.MaxEvents
	default:
		return -1
	}
}

func (t *tenure) careful(now time.Duration) bool { return now < t.seat.careful }

// mayStepAlone lets one event pass at a time, each behind a step of timers alone, so that a fault of the
// timers is not laid at an event's door.
func (t *tenure) mayStepAlone(now time.Duration) int {
	switch {
	case t.flight != nil:
		return -1
	case len(t.queue) == 0 && !t.tickDue(now):
		return -1
	case t.last.alone || len(t.queue) == 0:
		return 0
	default:
		return 1
	}
}

func (t *tenure) hasBeat() bool {
	for _, it := range t.queue {
		if _, ok := it.event.(engine.Heartbeat); ok {
			return true
		}
	}
	return false
}

// tickDue tells whether a timer of the engine or the idle tick is over.
func (t *tenure) tickDue(now time.Duration) bool { return t.untilTick(now) <= 0 }

func (t *tenure) untilTick(now time.Duration) time.Duration {
	next := t.last.at + min(idleTick, t.cfg.Lease.OwnerTTL/4)
	if wake, ok := t.core.NextWake(); ok {
		if t.last.empty && t.last.calls == 0 {
			wake = max(wake, t.last.at+spinGuard)
		}
		next = min(next, wake)
	}
	return next + t.last.jitter - now
}

// gathered tells whether the queue is worth a step. A lone event goes at once; when the step before had
// several calls, as many are waited for, but not longer than Config.Gather.
func (t *tenure) gathered(now time.Duration) bool { return t.untilGathered(now) <= 0 }

func (t *tenure) untilGathered(now time.Duration) time.Duration {
	calls := 0
	for _, it := range t.queue {
		if it.call != nil {
			calls++
		}
	}
	if calls >= t.last.calls || calls >= t.cfg.MaxEvents || now-t.last.done > burstGap {
		return 0
	}
	return t.queue[0].at + t.cfg.Gather - now
}

// untilPolled is how long what is queued may wait for the next poll of a worker that has just been given work, when no other poll hangs:
// what is created meanwhile is then granted in the same commit. Else it is written as queued, and written anew one commit later.
func (t *tenure) untilPolled(now time.Duration) time.Duration {
	wait := t.polled + t.cfg.Gather - now
	if wait <= 0 || t.polled == 0 || len(t.queue) == 0 || len(t.queue) >= t.cfg.MaxEvents || t.hasBeat() || t.pollHangs() {
		return 0
	}
	return wait
}

// pollHangs tells whether a poll hangs, or waits to be stepped.
func (t *tenure) pollHangs() bool {
	for _, c := range t.waiters {
		if _, is := c.event.(engine.Poll); is {
			return true
		}
	}
	return slices.ContainsFunc(t.queue, func(it item) bool { _, is := it.event.(engine.Poll); return is })
}

// sleepFor is how long the runner may wait for something to happen.
func (t *tenure) sleepFor() time.Duration {
	now := t.seat.n.mono()
	d := t.trust.left()
	d = min(d, t.untilRead(now))
	if t.flight == nil {
		work := t.untilTick(now)
		if len(t.queue) > 0 {
			work = min(work, t.untilGathered(now))
		}
		d = min(d, max(work, t.reading.untilLate(now, t.cfg.Gather), t.untilHanded(now), t.untilPolled(now)))
	}
	return max(d, 0)
}

// trusted compares the own deadline: after reading a request and again before answering (R1).
func (t *tenure) trusted() *ending {
	if t.trust.holds() {
		return nil
	}
	return &ending{why: endLost, err: ownDeadline()}
}

func ownDeadline() error {
	return job.Errorf(job.KindFenced, "own_deadline", "the partition lease was not renewed in time")
}

// step runs one step over at most take events of the queue and the timers.
func (t *tenure) step(take int) *ending {
	if e := t.trusted(); e != nil {
		return e
	}
	items := t.take(take)
	mono := t.seat.n.mono()
	now := engine.Now{Wall: t.wall.now(mono), Mono: mono}
	events := make([]engine.Event, 0, len(items)+2)
	calls := 0
	for _, it := range items {
		events = append(events, it.event)
		if it.call != nil {
			t.waiters[it.call.reply] = it.call
			calls++
		}
	}
	events = append(events, t.wall.take()...)
	if behind := t.seat.n.behind(); behind != t.behind {
		t.behind = behind
		events = append(events, engine.LevelOfAll{Behind: behind})
	}
	res, err := t.stepSafely(now, append(events, engine.Tick{}))
	if err != nil {
		return t.poisoned(items, err, t.panicked())
	}
	t.last = lastStep{at: mono, done: t.seat.n.mono(), calls: calls, empty: res.Batch.Empty(), alone: len(items) == 1, jitter: t.cfg.Jitter()}
	t.stepped.Store(int64(t.last.done))
	t.seat.tally.stepped(res, len(items))
	t.alarms(res)
	t.planned(now)
	t.want(res.Want)
	return t.dispose(items, now, res)
}

// take removes up to n events from the queue; calls that nobody waits for any more are dropped.
func (t *tenure) take(n int) []item {
	var items []item
	i := 0
	for ; i < len(t.queue) && len(items) < n; i++ {
		it := t.queue[i]
		if it.call != nil && it.call.ctx.Err() != nil && !isSetAside(it) {
			continue
		}
		switch kind, page := pageKind(it.event); {
		case it.handed:
			t.unread -= handedIn(it.event)
		case page:
			t.reading.queued[kind]--
		}
		items = append(items, it)
	}
	rest := copy(t.queue, t.queue[i:])
	clear(t.queue[rest:])
	t.queue = t.queue[:rest]
	return items
}

// stepSafely turns a panic of the engine into an error. The engine is of no use after it.
func (t *tenure) stepSafely(now engine.Now, events []engine.Event) (res engine.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = job.Errorf(job.KindRejected, "step_panicked", "step: %v", p)
			t.log.Error("the engine panicked; it is dropped and the events run one by one on a new one", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return t.core.Step(now, events), nil
}
