package takt

import (
	"context"
	"encoding/json"
	"time"
)

// attempt is one assignment that was started. Its fields below the first group are guarded by the
// worker's lock.
type attempt struct {
	s      *session
	as     Assignment
	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	log    *attemptLog // guarded by the spool's lock

	lease    lease
	timer    *time.Timer // looks at the deadline when it should have come; every check counts, this one too
	lost     bool        // fenced: the lease is over or was taken away. Not named in beats any more
	stop     error       // ErrCancelled or ErrTimedOut once the server asked for it
	leave    bool        // told to end because the worker stops
	returned bool        // the handler has
	seq      int64       // of the newest report item
	progress Progress    // newest
	said     int64       // times that the handler told progress
	told     int64       // said, when the newest progress that the server has was told
	result   json.RawMessage
}

// start begins an assignment unless it was begun before, came too late or finds no room. Under the
// worker's lock.
func (s *session) start(as Assignment) bool {
	w := s.w
	now := w.now()
	if (s.held[as.Token] != nil || s.seen[as.Token] || as.Token <= s.floor) && !w.switches.startsTwice {
		return false
	}
	sent, known := s.sends.sent(as.LeaseCall)
	l := lease{end: s.terms.holderEnd(sent, now)}
	if !known || l.over(now) || w.stopping || s.over || len(w.running) >= w.cfg.Slots {
		// Not named to the server, so that it goes to somebody else.
		w.log.Debug("an assignment came too late; leaving it", "execution", as.Execution, "shard", as.Shard, "token", as.Token)
		return false
	}
	a := &attempt{s: s, as: as, lease: l, log: w.spool.open(&as)}
	a.ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(s.ctx))
	a.timer = time.AfterFunc(l.end-now, a.alarm)
	s.held[as.Token] = a
	w.running[a] = struct{}{}
	s.put(a, ReportItem{Kind: "started"})
	go a.run()
	return true
}

// run calls the handler and reports how it ended.
func (a *attempt) run() {
	w := a.s.w
	t := newTask(a)
	err := error(&panicError{value: "the handler ended its goroutine"}) // runtime.Goexit passes by all else
	defer func() {
		if p := recover(); p != nil {
			err = recovered(p)
		}
		t.flush()
		a.endLog()
		a.finish(err)
	}()
	h := w.handlers[a.as.Handler]
	if h == nil {
		err = &noHandlerError{a.as.Handler}
		return
	}
	err = h(a.ctx, t)
}

// noHandlerError is the failure of an assignment that no handler here can take.
type noHandlerError struct{ name string }

func (e *noHandlerError) Error() string        { return "takt: this worker has no handler " + e.name }
func (e *noHandlerError) FailureClass() string { return "no_handler" }

// finish puts the end of the attempt into the queue. Nothing of it follows.
func (a *attempt) finish(err error) {
	s, w := a.s, a.s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	a.check(w.now())
	a.returned = true
	a.timer.Stop()
	outcome, failure, after := ending{err: err, lost: a.lost, stop: a.stop, leave: a.leave}.outcome()
	item := ReportItem{Kind: "done", Outcome: outcome, Error: failure, RetryAfterMs: ceilMs(after),
		LogPending: a.log.pending()}
	if outcome == "success" {
		item.Result = a.result
	}
	if a.said > a.told && !a.lost && a.stop == nil {
		p := a.progress
		s.put(a, ReportItem{Kind: "progress", Progress: &p})
	}
	s.put(a, item)
	if outcome == "error" || outcome == "fatal" {
		w.log.Info("the attempt failed; its error goes to the server, which decides about a retry", "job", a.as.Job,
			"execution", a.as.Execution, "shard", a.as.Shard, "attempt", a.as.Attempt, "outcome", outcome, "error", failure.Message)
	}
	a.cancel(nil) // frees what hangs on the context
	delete(w.running, a)
	w.notify()
	if a.lost && w.session != nil {
		// The poll in flight counts this slot as busy. (For a handler that ends while it has its lease the
		// owner sees that by itself: the lease ends with it.)
		w.session.repoll()
	}
}

// ceilMs is d in whole milliseconds, never less than d.
func ceilMs(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// forget drops an attempt whose end is answered; its token is never started again. Under the lock.
func (s *session) forget(a *attempt) {
	delete(s.held, a.as.Token)
	s.seen[a.as.Token] = true
	s.ended = append(s.ended, endedToken{a.as.Token, s.w.now()})
}

// check fences the attempt if its lease is over at now. Under the lock.
func (a *attempt) check(now time.Duration) {
	if !a.lost && a.lease.over(now) && !a.s.terms.timerOnly {
		a.fence()
	}
}

// alarm runs when the deadline should have come.
func (a *attempt) alarm() {
	a.s.w.mu.Lock()
	defer a.s.w.mu.Unlock()
	now := a.s.w.now()
	switch {
	case a.lost || a.returned:
	case a.lease.over(now):
		a.fence()
	default:
		a.timer.Reset(a.lease.end - now)
	}
}

// fence takes the attempt's rights away for good: its context ends, and what it has not got rid of is
// dropped. An end that it reached before is still reported: the server judges it. Under the lock.
func (a *attempt) fence() {
	if a.lost {
		return
	}
	a.lost = true
	a.timer.Stop()
	a.cancel(ErrLeaseLost)
	for _, o := range a.s.queue {
		if o.a == a && o.item.Kind != "done" {
			o.settle(ErrLeaseLost)
		}
	}
	if !a.returned {
		a.s.w.log.Warn("lease lost: the handler is told to stop; the shard runs again elsewhere",
			"job", a.as.Job, "execution", a.as.Execution, "shard", a.as.Shard, "token", a.as.Token)
	}
}

// renew moves the deadline to what a beat's answer says, unless it has passed already. Under the lock.
func (a *attempt) renew(end, now time.Duration) {
	a.check(now)
	if a.lost {
		return
	}
	a.lease.extend(end)
	if !a.returned {
		a.timer.Reset(a.lease.end - now)
	}
}

// halt tells the handler to stop because the server asked for it; false when it was told before.
// Under the lock.
func (a *attempt) halt(c Cancel) bool {
	if a.stop != nil || a.returned {
		return false
	}
	a.stop = ErrCancelled // by a person, or by its job's policy
	if c.Reason == "attempt_timeout" || c.Reason == "stalled" {
		a.stop = ErrTimedOut
	}
	a.cancel(a.stop)
	a.s.w.log.Info("the server asks for the end of an attempt; the handler is told to stop", "job", a.as.Job,
		"execution", a.as.Execution, "shard", a.as.Shard, "reason", c.Reason)
	return true
}

// refusal is why the attempt may write no more; nil: it may. Under the lock.
func (a *attempt) refusal() error {
	a.check(a.s.w.now())
	switch {
	case a.returned:
		return errReturned
	case a.stop != nil:
		return a.stop
	case a.lost || a.s.mute:
		return ErrLeaseLost
	}
	return nil
}

// add queues a report item of the handler's.
func (a *attempt) add(item ReportItem) (*outgoing, error) {
	a.s.w.mu.Lock()
	defer a.s.w.mu.Unlock()
	if err := a.refusal(); err != nil {
		return nil, err
	}
	return a.s.put(a, item), nil
}

// progressed keeps p for the next beat.
func (a *attempt) progressed(p Progress) error {
	a.s.w.mu.Lock()
	defer a.s.w.mu.Unlock()
	if err := a.refusal(); err != nil {
		return err
	}
	a.progress = p
	a.said++
	if a.leave {
		return ErrShuttingDown
	}
	return nil
}

// setResult keeps b for the end.
func (a *attempt) setResult(b json.RawMessage) error {
	a.s.w.mu.Lock()
	defer a.s.w.mu.Unlock()
	if a.returned {
		return errReturned
	}
	a.result = b
	return nil
}
