package takt

import (
	"context"
	"errors"
	"time"
)

// pollPause is the least time between two polls that brought nothing, in case they come back at once.
const pollPause = 100 * time.Millisecond

// pollLoop asks for work, one poll at a time, until ctx ends.
func (s *session) pollLoop(ctx context.Context) {
	b := backoff{max: s.callTimeout, jitter: s.w.cfg.Jitter}
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
			switch {
			case news:
				// What came is reported at the instant at which the next poll is due: the jitter keeps the
				// two loops apart.
				pause(ctx, s.w.cfg.Jitter(time.Microsecond))
			case s.w.now()-began < pollPause:
				pause(ctx, pollPause+s.w.cfg.Jitter(pollPause))
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
		s.dropPoll, s.pollEpoch = drop, epoch
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
