package takt

import "time"

// beatLoop beats until the session is over. A beat that fails is tried again soon, and the poll is
// asked again: the server that it hangs at may be gone.
func (s *session) beatLoop() {
	w := s.w
	b := backoff{max: s.callTimeout, jitter: w.cfg.Jitter}
	for next := s.opened + s.beat; ; {
		// The jitter keeps the loops of one process apart; it is too small to matter otherwise.
		if !pause(s.ctx, next-w.now()+w.cfg.Jitter(time.Microsecond)) {
			return
		}
		err := s.beatOnce()
		now := w.now()
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			level, wait := b.level(), b.after(err)
			w.log.Log(s.ctx, level, "a beat failed; trying again", "error", err, "after", wait)
			w.mu.Lock()
			s.repoll()
			w.mu.Unlock()
			next = now + wait
		default:
			b.reset()
			if next += s.beat; next <= now {
				next = now + s.beat
			}
		}
	}
}

// beatOnce names every held shard and takes in which leases go on.
func (s *session) beatOnce() error {
	w := s.w
	told := map[*attempt]int64{}
	build := func(call, epoch int64) any {
		req := HeartbeatRequest{Session: s.id, Epoch: epoch, Call: call, LocalTime: time.Now()}
		for _, a := range s.inOrder() {
			if a.lost {
				continue
			}
			h := HeldShard{Token: a.as.Token}
			if a.said > a.told && !a.returned {
				p := a.progress
				h.Progress = &p
				told[a] = a.said
			}
			req.Held = append(req.Held, h)
		}
		return req
	}
	var answer HeartbeatResponse
	if err := s.call(s.ctx, w.beats, "heartbeat", s.callTimeout, build, &answer); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, said := range told {
		a.told = max(a.told, said)
	}
	now := w.now()
	if sent, ok := s.sends.sent(answer.Call); ok {
		end := s.terms.holderEnd(sent, now)
		for _, token := range answer.Renewed {
			if a := s.held[token]; a != nil {
				a.renew(end, now)
			}
		}
	}
	for _, token := range answer.Lost {
		if a := s.held[token]; a != nil {
			a.fence()
		}
	}
	s.halt(answer.Cancels)
	return nil
}
