package takt

import (
	"context"
	"errors"
	"time"
)

// pollPause is the longest pause between polls that come back at once and bring nothing.
const pollPause = 100 * time.Millisecond

// emptyPause is how long to wait before the next poll, when so many in a row have come back at once and brought nothing. The first
// is part of the protocol: the server answers so a poll that a report overtook, to hear how many slots are free now. A pause
// there would leave free slots idle several times a second. What goes on like that is somebody's fault and must not spin.
func emptyPause(inRow int) time.Duration {
	if inRow < 2 {
		return 0
	}
	return min(5*time.Millisecond<<min(inRow-2, 10), pollPause)
}

// pollLoop asks for work, one poll at a time, until ctx ends.
func (s *session) pollLoop(ctx context.Context) {
	b := backoff{max: s.callTimeout, jitter: s.w.cfg.Jitter}
	empty := 0
	for ctx.Err() == nil {
		began := s.w.now()
		news, err := s.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errRepoll):
		case err != nil:
			level, wait := b.level(), b.after(err)
			s.w.log.Log(s.ctx, level, "the poll for work failed; trying again", "error", err, "after", wait)
			pause(ctx, wait)
		default:
			b.reset()
			if news || s.w.now()-began >= pollPause {
				empty = 0
			} else {
				empty++
			}
			switch wait := emptyPause(empty); {
			case news:
				// What came is reported at the instant at which the next poll is due: the jitter keeps the
				// two loops apart.
				pause(ctx, s.w.cfg.Jitter(time.Microsecond))
			case wait > 0:
				pause(ctx, wait+s.w.cfg.Jitter(wait))
			}
		}
	}
}

// poll asks once; news tells whether the answer brought anything that was not known.
func (s *session) poll(ctx context.Context) (news bool, err error) {
	w := s.w
	ctx, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	build := func(call, epoch int64) any {
		s.polls++
		s.dropPoll, s.pollEpoch, s.pollAt = drop, epoch, w.x.current.Load()
		return PollRequest{Session: s.id, Epoch: epoch, Call: call, Number: s.polls, Held: s.named(),
			Free: max(w.cfg.Slots-len(w.running), 0), WaitMs: s.pollWait.Milliseconds()}
	}
	var answer PollResponse
	err = s.call(ctx, w.calls, "poll", s.pollWait+s.callTimeout, build, &answer)
	w.mu.Lock()
	defer w.mu.Unlock()
	s.dropPoll = nil
	if err != nil {
		return false, err
	}
	for _, as := range answer.Assignments {
		news = s.start(as) || news
	}
	return s.halt(answer.Cancels) || news, nil
}

// named lists the tokens that the worker holds. Under the lock.
func (s *session) named() []int64 {
	var tokens []int64
	for _, a := range s.inOrder() {
		if !a.lost {
			tokens = append(tokens, a.as.Token)
		}
	}
	return tokens
}

// halt tells the attempts to stop that the server wants stopped; true when one had not been told.
// Under the lock.
func (s *session) halt(cancels []Cancel) bool {
	news := false
	for _, c := range cancels {
		if a := s.held[c.Token]; a != nil && a.halt(c) {
			news = true
		}
	}
	return news
}

// repoll drops the poll in flight, so that a new one goes out. Under the lock.
func (s *session) repoll() {
	if s.dropPoll != nil {
		s.dropPoll(errRepoll)
	}
}
