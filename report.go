package takt

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// startsPause is how long a report that tells of starts alone waits for what follows: the end of a short handler goes
// along with its start then, which saves the server a call and a commit.
const startsPause = 2 * time.Millisecond

// maxBatch is how many bytes of values go into one report; a single item may be larger.
const maxBatch = 1 << 20

// outgoing is a report item on its way. It stays in the queue until it is settled.
type outgoing struct {
	a       *attempt
	item    ReportItem
	answer  chan error // gets its fate, once; buffered
	settled bool
}

// settle decides the item's fate: nil, or why it does not count. Under the lock.
func (o *outgoing) settle(err error) {
	if !o.settled {
		o.settled = true
		o.answer <- err
	}
}

// put queues an item with the attempt's next number. Under the lock.
func (s *session) put(a *attempt, item ReportItem) *outgoing {
	a.seq++
	item.Execution, item.Shard, item.Token, item.Seq = a.as.Execution, a.as.Shard, a.as.Token, a.seq
	o := &outgoing{a: a, item: item, answer: make(chan error, 1)}
	if s.mute {
		o.settle(ErrLeaseLost)
		if item.Kind == "done" {
			s.forget(a)
		}
		return o
	}
	s.queue = append(s.queue, o)
	s.pressing = s.pressing || item.Kind != "started"
	s.poke()
	return o
}

// poke wakes the report loop.
func (s *session) poke() {
	select {
	case s.wake <- struct{}{}:
	default: // it will wake
	}
}

// silence drops what is queued and all that comes later. Under the lock.
func (s *session) silence() {
	s.mute = true
	if len(s.queue) > 0 {
		s.w.log.Warn("reports are dropped; their shards run again elsewhere", "session", s.id, "items", len(s.queue))
	}
	for _, o := range s.queue {
		o.settle(ErrLeaseLost)
	}
	s.prune()
	s.w.notify()
}

// reportLoop sends what is queued, one report at a time and in order, until ctx ends or the session is
// over and nothing can follow. What is not answered is sent again.
func (s *session) reportLoop(ctx context.Context) {
	w := s.w
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.silence()
	}()
	b := backoff{max: s.callTimeout, jitter: w.cfg.Jitter}
	most := s.mostItems()
	for {
		s.awaitMore(ctx)
		sent, err := s.reportOnce(ctx, most)
		switch {
		case ctx.Err() != nil, codeOf(err) == "session_unknown", err == nil && sent == 0 && s.finished():
			return
		case err == nil && sent == 0:
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
		case err == nil:
			b.reset()
			most = s.mostItems()
		case refusesItems(err) && sent > 1:
			w.log.Warn("the server refused a report; sending its items one by one", "error", err, "items", sent)
			most = 1
		case refusesItems(err): // this one item: reportOnce has put it aside
		default:
			level, wait := b.level(), b.after(err)
			w.log.Log(ctx, level, "a report was not answered; sending it again", "error", err, "items", sent, "after", wait)
			pause(ctx, wait)
		}
	}
}

// awaitMore waits while nothing but starts is queued, for startsPause at most.
func (s *session) awaitMore(ctx context.Context) {
	w := s.w
	patient := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(s.queue) > 0 && !s.pressing && !s.mute
	}
	if !patient() {
		return
	}
	timer := time.NewTimer(startsPause + w.cfg.Jitter(time.Microsecond))
	defer timer.Stop()
	for patient() {
		select {
		case <-s.wake:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// finished tells whether nothing is left to report and nothing can follow.
func (s *session) finished() bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.over && len(s.held) == 0
}

func (s *session) mostItems() int {
	if s.limits.Items > 0 {
		return s.limits.Items
	}
	return 100
}

// refusesItems tells whether the server took offence at what a report says, so that sending the same
// again is of no use.
func refusesItems(err error) bool {
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrConflict) || kindOf(err) == "rejected"
}

// reportOnce sends the head of the queue, at most most items, and settles what was answered. sent is
// how many items it took.
func (s *session) reportOnce(ctx context.Context, most int) (sent int, err error) {
	w := s.w
	w.mu.Lock()
	s.sweep(w.now())
	s.prune()
	empty := len(s.queue) == 0
	w.mu.Unlock()
	if empty {
		return 0, nil
	}
	var batch []*outgoing
	build := func(call, epoch int64) any {
		s.prune() // the sweep before this may have dropped some
		req := ReportRequest{Session: s.id, Epoch: epoch, Call: call, Items: []ReportItem{}}
		batch = s.head(most)
		s.pressing = len(batch) < len(s.queue)
		for _, o := range batch {
			req.Items = append(req.Items, o.item)
		}
		return req
	}
	var answer ReportResponse
	err = s.call(ctx, w.calls, "report", s.callTimeout, build, &answer)
	if err == nil && len(answer.Items) != len(batch) {
		err = unreachable("worker call report", fmt.Errorf("%d items were answered of %d", len(answer.Items), len(batch)))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		for i, o := range batch {
			s.answered(o, answer.Items[i])
		}
	case refusesItems(err) && len(batch) == 1:
		s.setAside(batch[0], err)
	default:
		return len(batch), err
	}
	s.prune()
	w.notify()
	return len(batch), err
}

// head is the part of the queue that fits into one report. Under the lock.
func (s *session) head(most int) []*outgoing {
	size := 0
	for i, o := range s.queue {
		size += len(o.item.Checkpoint) + len(o.item.Result)
		if o.item.Error != nil {
			size += len(o.item.Error.Message)
		}
		if i == most || i > 0 && size > maxBatch {
			return append([]*outgoing(nil), s.queue[:i]...)
		}
	}
	return append([]*outgoing(nil), s.queue...)
}

// answered takes in the fate of an item. Under the lock.
func (s *session) answered(o *outgoing, fate string) {
	a := o.a
	if o.item.Kind == "done" {
		if fate != "accepted" && o.item.Outcome != "lease_lost" && o.item.Outcome != "cancelled" {
			s.w.log.Warn("the end of an attempt came too late and does not count: the shard has gone on without it",
				"execution", a.as.Execution, "shard", a.as.Shard, "token", a.as.Token, "outcome", o.item.Outcome, "fate", fate)
		}
		o.settle(nil)
		s.forget(a)
		return
	}
	switch {
	case fate == "accepted":
		o.settle(nil)
	case a.stop != nil:
		o.settle(a.stop)
	default:
		a.fence() // before the handler learns of it: then its context says the same
		o.settle(ErrLeaseLost)
	}
}

// setAside takes an item out of the queue that the server refuses by itself. The end of an attempt is
// replaced by a failure that says so, once. Under the lock.
func (s *session) setAside(o *outgoing, err error) {
	s.w.log.Error("the server refuses a report item; it is dropped", "error", err, "kind", o.item.Kind,
		"execution", o.a.as.Execution, "shard", o.a.as.Shard)
	o.settle(err)
	if o.item.Kind != "done" {
		return
	}
	if o.item.Error != nil && o.item.Error.Class == "report_refused" {
		s.forget(o.a) // that one too: the server takes nothing from us, and the lease will run out
		return
	}
	s.put(o.a, ReportItem{Kind: "done", Outcome: "error", Error: &Failure{Class: "report_refused",
		Message: clean("the server refused how the attempt ended: "+err.Error(), maxMessage)}})
}

// prune drops settled items. Under the lock.
func (s *session) prune() {
	kept := s.queue[:0]
	for _, o := range s.queue {
		if !o.settled {
			kept = append(kept, o)
		}
	}
	clear(s.queue[len(kept):])
	s.queue = kept
}
