package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// dispatch gives queued shards to sessions that have asked for work, pool by pool, where anything
// changed that may allow it.
func (e *Engine) dispatch() {
	for i := 0; i < len(e.step.pools); i++ {
		p := e.step.pools[i]
		e.dispatchPool(p)
		p.dirty = false
	}
	e.step.pools = nil
}

func (e *Engine) dispatchPool(p *pool) {
	for {
		s, to := e.nextShard(p)
		if s == nil {
			return
		}
		e.grant(s, to)
	}
}

// nextShard is the first shard, in the order of work, whose handler some session can take now, and that
// session; nil when there is none.
func (e *Engine) nextShard(p *pool) (best *shard, to *session) {
	for _, handler := range slices.Sorted(maps.Keys(p.lines)) {
		l := p.lines[handler]
		if len(l.shards) == 0 || l.offers == 0 || best != nil && !before(l.shards[0], best) {
			continue
		}
		if r := e.route(p, handler); r != nil {
			best, to = l.shards[0], r
		}
	}
	return best, to
}

// route chooses the session for a handler: least_busy, that is the fewest held leases, ties by worker
// name, then by session. nil when none can take it now.
func (e *Engine) route(p *pool, handler string) *session {
	var best *session
	for _, s := range p.sessions {
		if !e.canTake(s) || !slices.Contains(s.Handlers, handler) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(len(s.held), len(best.held)), cmp.Compare(s.Worker, best.Worker),
			cmp.Compare(s.ID, best.ID)) < 0 {
			best = s
		}
	}
	return best
}

// canTake tells whether a lease may be granted to s now: it waits for work, has a slot, was heard
// recently enough that the holder would have at least one beat of its lease before it, and what it is
// answered with has not grown too large for one answer.
func (e *Engine) canTake(s *session) bool {
	return s.waiting != nil && s.free() > 0 && e.heardLately(s) && s.offered < e.cfg.AnswerMax
}

func (e *Engine) heardLately(s *session) bool { return s.heardAt+s.TTL-s.Margin > e.now.Mono+s.Beat }

// grant leases a shard to a session. Both deadlines hang on the newest call that the session was heard
// with: the judge's counts from taking it in, the holder's from the instant before it was sent (R7).
func (e *Engine) grant(s *shard, to *session) {
	x := s.exec
	e.at(s.Execution)
	e.token++
	s.Token, s.sess, s.Session, s.Worker = e.token, to, to.ID, to.Worker
	s.Closed, s.Confirmed, s.told = false, false, false
	s.Attempt++
	s.LeasedAt, s.StartedAt, s.ReportSeq, s.Progress = e.now.Wall, 0, 0, job.Progress{}
	s.deadline, s.leaseCall = to.heardAt+to.TTL, to.heardCall
	if e.cfg.Switches.DeadlineFromReceipt {
		s.deadline = to.waiting.at + to.TTL // the mutant: set by one call, while the answer names another
	}
	to.held[s.Token] = s
	s.timeoutAt, s.TimeoutAt, s.stallAt = 0, 0, 0
	if d := x.def.Spec.Timeout.Attempt; d > 0 {
		s.timeoutAt, s.TimeoutAt = e.now.Mono+d, e.now.Wall.Add(d)
	}
	e.progressed(s)
	s.Attempts = append(s.Attempts, job.Attempt{Number: s.Attempt, Token: s.Token, Worker: to.Worker,
		State: job.AttemptRunning, ResumedFrom: s.CheckpointSeq, StartedAt: e.now.Wall})
	if n := len(s.Attempts) - job.MaxAttempts; n > 0 {
		s.Attempts = slices.Delete(s.Attempts, 0, n)
	}
	e.setShard(s, job.ShardLeased, job.RouteLeastBusy)
	if x.row.State == job.ExecutionQueued {
		if x.row.StartedAt == 0 {
			x.row.StartedAt = e.now.Wall
		}
		e.setExecution(x, job.ExecutionRunning, job.ReasonNone)
	}
	e.fact(Fact{Kind: FactLeaseGranted, Job: x.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token, Attempt: s.Attempt,
		Session: to.ID, Worker: to.Worker, Reason: job.RouteLeastBusy, PlannedAt: x.row.PlannedAt, Checkpoint: s.CheckpointSeq,
		Call: s.leaseCall, Until: e.now.Wall.Add(s.deadline - e.now.Mono)})
	e.counters.Granted++
	to.put(s)
	e.wantAnswer(to)
	e.arm(s)
}

// assignment is what a session is told about a shard.
func (e *Engine) assignment(s *shard) Assignment {
	e.at(s.Execution)
	a := Assignment{Execution: s.exec.row, Shard: s.Index, Attempt: s.Attempt, Token: s.Token, LeaseCall: s.leaseCall,
		Checkpoint: s.Checkpoint, CheckpointSeq: s.CheckpointSeq, Key: job.Key(&s.exec.row, s.Index), RunsAfter: s.exec.runsAfter()}
	if s.timeoutAt > 0 {
		a.TimeoutIn = max(s.timeoutAt-e.now.Mono, time.Millisecond)
	}
	return a
}
