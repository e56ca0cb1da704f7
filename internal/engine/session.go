package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// session is one connected life of a worker, as its owner knows it.
type session struct {
	job.Session
	pool  *pool
	dirty bool

	heardCall int64         // newest call taken in …
	heardAt   time.Duration // … and when: every deadline of its leases hangs on such a pair (R7)
	held      map[job.Token]*shard
	waiting   *waiting      // the hanging poll; nil while there is none
	polls     int64         // highest poll number seen
	unknown   int           // slots that the worker calls busy and that no lease of ours explains
	offer     []*shard      // granted in this step, or to be offered again with the next answer
	offered   int           // bytes of offer
	unheardAt time.Duration // when this owner counts as one that heard nothing; 0: it heard, or was counted
	telling   bool          // it is in stepState.polls
	alarm     alarm
	clock     *time.Duration // how far its clock is ahead; nil: it has not said. For people, nothing hangs on it

	clockWrong bool // somebody was told that it is off by more than ClockAlarm
}

type waiting struct {
	reply ReplyID
	at    time.Duration
	until time.Duration
}

// free is what may still be granted: slots − open leases − handlers that only the worker knows of.
// Leases of handlers that are still stopping are open.
func (s *session) free() int { return s.Slots - len(s.held) - s.unknown }

func (s *session) armed() *alarm { return &s.alarm }

// next: the end of the hanging poll, and the end of silence when nothing is held.
func (s *session) next(e *Engine) time.Duration {
	if e.sessions[s.ID] != s {
		return 0
	}
	at := s.heardAt + e.cfg.SessionKeep
	if len(s.held) > 0 {
		at = 0 // its leases have timers of their own
	}
	for _, t := range []time.Duration{s.unheardAt, s.waitsUntil()} {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at
}

func (s *session) waitsUntil() time.Duration {
	if s.waiting == nil || s.telling {
		return 0 // answerPolls arms what goes on waiting
	}
	return s.waiting.until
}

func (s *session) look(e *Engine) {
	if e.sessions[s.ID] != s {
		return
	}
	if s.waiting != nil && e.now.Mono >= s.waiting.until {
		e.wantAnswer(s) // after dispatch: a poll that waits for nothing may still be given work
	}
	if s.unheardAt > 0 && e.now.Mono >= s.unheardAt {
		s.unheardAt = 0
		s.Unheard++
		e.touchSession(s)
	}
	if len(s.held) == 0 && e.now.Mono >= s.heardAt+e.cfg.SessionKeep {
		e.endSession(s, job.ReasonLeaseExpired)
	}
}

// heard notes that a call of the session was taken in now. One that was overtaken or doubled on its way
// tells nothing about its sender's life now.
func (e *Engine) heard(s *session, call int64) {
	if call <= s.heardCall {
		return
	}
	s.heardCall, s.heardAt = call, e.now.Mono
	s.unheardAt = 0
	if s.Unheard > 0 {
		s.Unheard = 0
		e.touchSession(s)
	}
	e.wantDispatch(s.pool) // a session that was silent may be given work again
}

func unknownSession(id job.SessionID) *job.Error {
	return job.Errorf(job.KindNotFound, "session_unknown", "session %.64s is not known here: it was closed, or silent for too long", string(id)).
		WithHint("stop what it holds and open a new session with a new incarnation")
}

func (e *Engine) open(ev SessionOpen) {
	s := e.sessions[ev.Session.ID]
	if s == nil {
		row := ev.Session
		row.Partition, row.TTL, row.Beat, row.Margin = e.cfg.Partition, e.cfg.LeaseTTL, e.cfg.Beat, e.cfg.Margin
		row.OpenedAt, row.Unheard = e.now.Wall, 0
		s = e.addSession(row)
		e.touchSession(s)
		e.fact(Fact{Kind: FactSessionOpened, Session: s.ID, Worker: s.Worker, Note: s.Namespace + "/" + s.Pool})
	}
	e.heard(s, ev.Call)
	e.clockOf(s, ev.Clock)
	e.arm(s)
	e.answer(ev.Reply, &Opened{Session: s.Session, Call: ev.Call})
}

// ClockAlarm is how far a worker's wall clock may be off before somebody is told.
const ClockAlarm = 5 * time.Second

// clockOf takes in what a worker's call said of its clock; nil: nothing.
func (e *Engine) clockOf(s *session, ahead *time.Duration) {
	if ahead == nil {
		return
	}
	behind := func(d *time.Duration) bool { return d != nil && *d < -ClockAlarm }
	switch {
	case ahead.Abs() <= ClockAlarm:
		s.clockWrong = false
	case s.clockWrong, behind(ahead) && !behind(s.clock): // a call that lay at a frozen server looks like that, once
	default:
		s.clockWrong = true
		e.traceFact(Fact{Kind: FactWorkerClock, Session: s.ID, Worker: s.Worker, Note: ahead.String()})
	}
	s.clock = ahead
}

func (e *Engine) addSession(row job.Session) *session {
	s := &session{Session: row, held: map[job.Token]*shard{}, heardAt: e.now.Mono}
	e.join(s)
	e.sessions[s.ID] = s
	return s
}

// endSession removes a session that holds nothing any more.
func (e *Engine) endSession(s *session, why job.Reason) {
	if s.waiting != nil {
		e.answer(s.waiting.reply, unknownSession(s.ID))
	}
	e.wait(s, nil)
	e.timers.disarm(s)
	delete(e.sessions, s.ID)
	e.leave(s)
	e.wantDispatch(s.pool)
	e.step.batch.EndSessions = append(e.step.batch.EndSessions, s.ID)
	e.fact(Fact{Kind: FactSessionEnded, Session: s.ID, Worker: s.Worker, Reason: why})
}

func (e *Engine) poll(ev Poll) {
	s := e.sessions[ev.Session]
	if s == nil {
		e.answer(ev.Reply, unknownSession(ev.Session))
		return
	}
	overtaken := ev.Call < s.heardCall
	e.heard(s, ev.Call)
	if ev.Number <= s.polls {
		e.answer(ev.Reply, &Polled{Superseded: true})
		return
	}
	if s.waiting != nil {
		e.answer(s.waiting.reply, &Polled{Superseded: true})
	}
	s.polls = ev.Number
	e.wait(s, &waiting{reply: ev.Reply, at: e.now.Mono, until: e.now.Mono + ev.Wait})
	for _, token := range ev.Held {
		if h := s.held[token]; h != nil {
			h.Confirmed = true
		}
	}
	s.unknown = max(0, s.Slots-s.delivered()-ev.Free)
	if overtaken && s.unknown > 0 {
		// A later call came before it, perhaps with the end of what it counts as running. It is answered at
		// once, so that the worker asks again and says how many slots are free now.
		s.waiting.until = e.now.Mono
	}
	s.offer, s.offered = s.offer[:0], 0
	for _, token := range sortedTokens(s.held) {
		if h := s.held[token]; h.State == job.ShardLeased && !h.Confirmed && s.offered < e.cfg.AnswerMax {
			e.offerAgain(s, h) // the rest with the next poll, which names these
		}
	}
	e.wantDispatch(s.pool)
	e.wantAnswer(s)
	e.arm(s)
}

// delivered counts the leases that the worker knows of: only those can explain its busy slots.
func (s *session) delivered() int {
	n := 0
	for _, h := range s.held {
		if h.Confirmed || h.State != job.ShardLeased {
			n++
		}
	}
	return n
}

// offerAgain puts an assignment that the worker has not confirmed into the next answer: same token, and
// neither deadline moves. After a load the call that set the deadline is not known any more: then this
// poll sets both deadlines, once.
func (e *Engine) offerAgain(s *session, h *shard) {
	if h.leaseCall == 0 {
		h.leaseCall = s.heardCall
		h.deadline = max(h.deadline, e.now.Mono+s.TTL)
	}
	s.put(h)
}

// put adds an assignment to the answer of the hanging poll.
func (s *session) put(h *shard) {
	s.offer = append(s.offer, h)
	s.offered += len(h.exec.row.Params) + len(h.Checkpoint)
	if h.exec.runsAfter() {
		s.offered += len(h.exec.def.Spec.After) * parentBytes
	}
}

// wait puts a poll of s in the place of the one that hangs; nil: none hangs any more.
func (e *Engine) wait(s *session, w *waiting) {
	if s.waiting != nil {
		delete(e.waiting, s.waiting.reply)
	}
	if s.waiting = w; w != nil {
		e.waiting[w.reply] = s
	}
}

func (e *Engine) pollGone(ev PollGone) {
	if s := e.waiting[ev.Reply]; s != nil {
		e.wait(s, nil)
	}
}

// wantAnswer remembers that there may be something to tell s when this step ends.
func (e *Engine) wantAnswer(s *session) {
	if s != nil && !s.telling {
		s.telling = true
		e.step.polls = append(e.step.polls, s)
	}
}

// answerPolls sends what this step has for the sessions that wait: new assignments, unconfirmed ones
// again, and stops that were not told yet.
func (e *Engine) answerPolls() {
	slices.SortFunc(e.step.polls, func(a, b *session) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range e.step.polls {
		s.telling = false
		offer := s.offer
		s.offer, s.offered = nil, 0
		if s.waiting == nil {
			continue // the next poll is offered again what is not confirmed by then
		}
		p := &Polled{Assignments: slices.Grow([]Assignment(nil), len(offer))}
		for _, h := range offer {
			if h.sess == s && h.State == job.ShardLeased && !h.Closed {
				p.Assignments = append(p.Assignments, e.assignment(h))
			}
		}
		for _, token := range sortedTokens(s.held) {
			if h := s.held[token]; h.Closed && !h.told {
				h.told = true
				p.Cancels = append(p.Cancels, e.stop(h))
			}
		}
		if len(p.Assignments)+len(p.Cancels) > 0 || e.now.Mono >= s.waiting.until {
			e.answer(s.waiting.reply, p)
			e.wait(s, nil)
		}
		e.arm(s)
	}
}

func (e *Engine) heartbeat(ev Heartbeat) {
	s := e.sessions[ev.Session]
	if s == nil {
		e.answer(ev.Reply, unknownSession(ev.Session))
		return
	}
	e.heard(s, ev.Call)
	e.clockOf(s, ev.Clock)
	b := &Beaten{Call: ev.Call}
	for _, held := range ev.Held {
		h := s.held[held.Token]
		switch {
		case h == nil:
			b.Lost = append(b.Lost, held.Token)
			e.traceFact(Fact{Kind: FactRejected, Token: held.Token, Session: s.ID, Worker: s.Worker, Note: "heartbeat"})
			continue
		case h.Closed:
			h.Confirmed = true
			continue // told below; its renewal has stopped
		}
		h.Confirmed = true
		if held.Progress != nil && *held.Progress != h.Progress {
			h.Progress = *held.Progress
			e.progressed(h)
		}
		if ev.Call > h.leaseCall { // else it was said before: a captured call keeps nothing alive
			e.renew(h, ev.Call)
			b.Renewed = append(b.Renewed, held.Token)
		}
	}
	for _, token := range sortedTokens(s.held) {
		if h := s.held[token]; h.Closed {
			b.Cancels = append(b.Cancels, e.stop(h))
		}
	}
	e.step.answers = append(e.step.answers, Answer{Reply: ev.Reply, Value: b, Renewal: len(b.Lost)+len(b.Cancels) == 0})
}

// renew moves the judge's deadline; the answer names the call that did it.
func (e *Engine) renew(h *shard, call int64) {
	if e.now.Mono+h.sess.TTL > h.deadline {
		h.deadline, h.leaseCall = e.now.Mono+h.sess.TTL, call
	}
	e.counters.Renewed++
	e.traceFact(Fact{Kind: FactLeaseRenewed, Job: h.exec.name(), Execution: h.Execution, Shard: h.Index, Token: h.Token,
		Session: h.sess.ID, Worker: h.Worker, Call: call, Until: e.now.Wall.Add(h.deadline - e.now.Mono)})
}

// close ends a session by its own word: what it holds goes back at once, and no attempt is burnt.
func (e *Engine) close(ev SessionClose) {
	if s := e.sessions[ev.Session]; s != nil {
		e.heard(s, ev.Call)
		for _, token := range sortedTokens(s.held) {
			e.givenBack(s.held[token], job.AttemptReleased, job.ReasonReleased)
		}
		e.endSession(s, job.ReasonReleased)
	}
	e.answer(ev.Reply, &Closed{})
}

func sortedTokens(held map[job.Token]*shard) []job.Token {
	tokens := make([]job.Token, 0, len(held))
	for t := range held {
		tokens = append(tokens, t)
	}
	slices.Sort(tokens)
	return tokens
}
