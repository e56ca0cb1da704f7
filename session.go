package takt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

var (
	errCallTimeout = errors.New("no answer in time")
	errLowerEpoch  = errors.New("takt: the answer came from an owner that has been replaced")
	errRepoll      = errors.New("takt: the poll is asked again")
	errSessionOver = errors.New("takt: the session is over")
)

// session is one connected life of a worker: three loops (poll, beat, report) and the attempts that
// came through it. Its fields below the first group are guarded by the worker's lock.
type session struct {
	w           *Worker
	ctx         context.Context // of open, poll, beat and close; ends when the session is over
	end         context.CancelCauseFunc
	id          string // this and the terms are written by open, before the loops start
	incarnation string
	terms       terms
	beat        time.Duration
	callTimeout time.Duration
	pollWait    time.Duration
	limits      Limits
	opened      time.Duration // the instant before the open call that was answered

	over  bool // the server has forgotten it: only what is queued still goes out
	mute  bool // nothing goes out any more
	sends sends
	held  map[int64]*attempt // by token, until the end is answered
	seen  map[int64]bool     // tokens whose end is answered
	ended []endedToken       // the same, oldest first, so that seen can be kept short
	floor int64              // no token up to this one is begun any more
	queue []*outgoing        // reports in order; see report.go
	wake  chan struct{}      // 1-buffered: the queue has something

	pressing bool // something but starts may be queued

	polls     int64                   // number of the newest poll
	dropPoll  context.CancelCauseFunc // of the poll in flight; nil: none
	pollEpoch int64                   // epoch that it told
	pollAt    uint32                  // exchange.current when it was sent
}

// endedToken is when the end of an attempt was answered.
type endedToken struct {
	token int64
	at    time.Duration
}

// newSession draws a new incarnation, so that the server makes a new session of it. Values of ctx go
// to the handlers, its end does not.
func newSession(ctx context.Context, w *Worker) *session {
	s := &session{w: w, held: map[int64]*attempt{}, seen: map[int64]bool{}, wake: make(chan struct{}, 1),
		callTimeout: 2 * time.Second, sends: sends{keep: time.Minute}}
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	w.mu.Lock()
	w.life++
	s.incarnation = w.cfg.Incarnation
	if w.life > 1 {
		s.incarnation = fmt.Sprintf("%s-%d", w.cfg.Incarnation, w.life)
	}
	w.mu.Unlock()
	return s
}

// epoch is what an answer says of its origin.
func (r *OpenResponse) epoch() int64      { return r.Epoch }
func (r *PollResponse) epoch() int64      { return r.Epoch }
func (r *HeartbeatResponse) epoch() int64 { return r.Epoch }
func (r *ReportResponse) epoch() int64    { return r.Epoch }
func (r *CloseResponse) epoch() int64     { return r.Epoch }

// call numbers a worker call, sends it once and takes its answer if that comes from the newest owner
// known. build is called under the lock, after every attempt's deadline was compared with the instant
// that counts as the one before sending.
func (s *session) call(ctx context.Context, client *http.Client, name string, wait time.Duration,
	build func(call, epoch int64) any, out interface{ epoch() int64 },
) error {
	w := s.w
	w.mu.Lock()
	now := w.now()
	s.sweep(now)
	if name != "poll" && s.pollAt != w.x.current.Load() {
		// It hangs at a server that was left since. One that is frozen takes what an owner answers through it: the worker would be
		// given nothing, while its beats go to the next server and are well.
		s.repoll()
	}
	body := build(s.sends.next(now), w.epoch)
	w.mu.Unlock()

	op := "worker call " + name
	limited, cancel := context.WithTimeoutCause(ctx, wait, errCallTimeout)
	defer cancel()
	err := w.x.do(limited, client, request{op: op, method: http.MethodPost,
		path: "/api/v1/worker/" + name, header: s.whose(), body: body}, out)
	switch {
	case err == nil:
		return s.meet(out.epoch())
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errCallTimeout):
		return unreachable(op, errCallTimeout)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.epoch != 0 {
			if lower := s.meet(e.epoch); lower != nil {
				return lower
			}
		}
		if e.Problem.Code == "session_unknown" {
			s.forgotten(e.epoch != 0)
		}
	}
	return err
}

// whose says in a header which owner a call is for: a server that is not the owner passes it on unread.
func (s *session) whose() http.Header {
	if s.id == "" {
		return http.Header{PoolHeader: {s.w.cfg.Namespace + "/" + s.w.cfg.Pool}}
	}
	return http.Header{SessionHeader: {s.id}}
}

// meet takes in the epoch of an answer: errLowerEpoch when a newer owner is known, so that the answer
// counts as none. A poll that hangs at a former owner is asked again.
func (s *session) meet(epoch int64) error {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch < w.epoch && !w.switches.anyEpoch {
		return errLowerEpoch
	}
	w.epoch = max(w.epoch, epoch)
	if s.dropPoll != nil && s.pollEpoch < w.epoch {
		s.dropPoll(errRepoll)
	}
	return nil
}

// forgotten ends the session because the server does not know it. When the newest owner said so, its
// leases are gone and the attempts end now, else when their deadlines say so. What they report still
// goes out: it counts as long as nobody else was given the shard.
func (s *session) forgotten(newest bool) {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.over {
		return
	}
	w.log.Warn("the server does not know this session; opening a new one", "session", s.id,
		"handlers", len(s.held), "stopped", newest)
	s.over = true
	if newest {
		for _, a := range s.inOrder() {
			a.fence()
		}
	}
	s.end(errSessionOver)
	s.poke()
}

// sweep fences every attempt whose lease is over at now. Under the lock.
func (s *session) sweep(now time.Duration) {
	for _, a := range s.held {
		if a.lease.over(now) { // rare, so that the order is made only then
			for _, b := range s.inOrder() {
				b.check(now)
			}
			break
		}
	}
	// Tokens rise in the order of their grants: what is below one that ended this long ago has ended, too, or came to
	// nobody in time. A database that forgot its tail offers such leases again, however late.
	for len(s.ended) > 0 && s.ended[0].at+2*s.terms.ttl < now {
		s.floor = max(s.floor, s.ended[0].token)
		delete(s.seen, s.ended[0].token)
		s.ended = s.ended[1:]
	}
}

// inOrder lists the held attempts by token, so that a run can be replayed. Under the lock.
func (s *session) inOrder() []*attempt {
	list := make([]*attempt, 0, len(s.held))
	for _, token := range slices.Sorted(maps.Keys(s.held)) {
		list = append(list, s.held[token])
	}
	return list
}

// open asks once for the session.
func (s *session) open(ctx context.Context) error {
	w := s.w
	var sent time.Duration
	var answer OpenResponse
	build := func(call, epoch int64) any {
		sent, _ = s.sends.sent(call)
		return OpenRequest{Namespace: w.cfg.Namespace, Pool: w.cfg.Pool, Worker: w.cfg.Name,
			Incarnation: s.incarnation, Handlers: w.names(), Slots: w.cfg.Slots, Labels: w.cfg.Labels,
			Build: w.cfg.Build, LocalTime: time.Now(), Call: call, Epoch: epoch}
	}
	if err := s.call(ctx, w.calls, "open", s.callTimeout, build, &answer); err != nil {
		return err
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	if answer.Session == "" || answer.TTLMs <= answer.MarginMs || answer.BeatMs <= 0 || answer.CallTimeoutMs <= 0 || answer.PollMs <= 0 {
		return unreachable("worker call open", errors.New("the answer lacks the terms of the session"))
	}
	s.id, s.opened, s.limits = answer.Session, sent, answer.Limits
	s.terms = terms{ttl: ms(answer.TTLMs), margin: ms(answer.MarginMs), switches: w.switches}
	s.beat, s.callTimeout, s.pollWait = ms(answer.BeatMs), ms(answer.CallTimeoutMs), ms(answer.PollMs)
	w.mu.Lock()
	s.sends.keep = s.terms.ttl
	w.mu.Unlock()
	w.spool.on()
	w.log.Info("session opened", "session", s.id, "lease", s.terms.ttl, "beat", s.beat)
	return nil
}

// serve runs the session until it is over (again: open another one) or ctx ends (then it stops
// gracefully).
func (s *session) serve(ctx context.Context) (again bool, err error) {
	polling, stopPolling := context.WithCancelCause(s.ctx)
	defer stopPolling(nil)
	defer context.AfterFunc(ctx, func() { stopPolling(ErrShuttingDown) })()
	var loops sync.WaitGroup
	defer loops.Wait()
	defer s.end(errSessionOver)
	s.w.mu.Lock()
	s.w.session = s
	s.w.sessions = append(slices.DeleteFunc(s.w.sessions, func(old *session) bool { return old.mute }), s)
	s.w.mu.Unlock()
	loops.Go(func() { s.pollLoop(polling) })
	loops.Go(s.beatLoop)
	s.w.reporters.Go(func() { s.reportLoop(s.w.reporting) })
	select {
	case <-ctx.Done():
		return false, s.w.leave(s)
	case <-s.ctx.Done():
		return true, nil
	}
}

// close says goodbye, a few times if need be.
func (s *session) close() {
	b := backoff{max: s.callTimeout, jitter: s.w.cfg.Jitter}
	build := func(call, epoch int64) any { return CloseRequest{Session: s.id, Epoch: epoch, Call: call} }
	for try := 1; ; try++ {
		err := s.call(s.ctx, s.w.calls, "close", s.callTimeout, build, &CloseResponse{})
		if err == nil || s.ctx.Err() != nil {
			return
		}
		if try == 3 || !pause(s.ctx, b.after(err)) {
			s.w.log.Warn("could not close the session; the server drops it when it has been silent", "error", err)
			return
		}
	}
}
