package engine

import (
	"time"

	"github.com/taktsched/takt/internal/job"
)

// The life of a lease after its grant: progress, time-outs, stops, expiry. A time-out or a cancel
// closes the token at once (it writes no more) and stops the renewal; it does not end the lease: the
// next lease of the shard waits for the holder's word or for expiry (R7).

func (s *shard) armed() *alarm { return &s.alarm }

// next is the earliest of the shard's deadlines.
func (s *shard) next(*Engine) time.Duration {
	var at time.Duration
	earlier := func(t time.Duration) {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	if s.sess != nil {
		earlier(s.deadline)
		if !s.Closed {
			earlier(s.timeoutAt)
			earlier(s.stallAt)
		}
	} else {
		earlier(s.retryAt)
		earlier(s.stopBy)
	}
	return at
}

// look acts on whatever has come due. Expiry is looked at first: an attempt whose lease ran out was
// lost, whatever else it also was.
func (s *shard) look(e *Engine) {
	now := e.now.Mono
	if s.State.Ended() || e.executions[s.Execution] != s.exec {
		return
	}
	if s.sess != nil && now >= s.deadline {
		e.expire(s)
	}
	switch {
	case s.sess == nil && s.State == job.ShardRetryWait && now >= s.retryAt:
		e.setShard(s, job.ShardQueued, s.Reason)
	case s.sess == nil && s.State == job.ShardStopping && now >= s.stopBy:
		e.stopped(s, job.AttemptAbandoned, job.ReasonGraceOver)
	case s.sess == nil || s.Closed:
	case s.timeoutAt > 0 && now >= s.timeoutAt:
		e.timeOut(s, job.ReasonAttemptTimeout)
	case s.stallAt > 0 && now >= s.stallAt:
		e.timeOut(s, job.ReasonStalled)
	}
}

// progressed restarts the stall timer: a grant, a start, progress or a checkpoint, never a beat.
func (e *Engine) progressed(s *shard) {
	if d := s.exec.def.Spec.Timeout.Stall; d > 0 {
		s.stallAt = e.now.Mono + d
		e.arm(s)
	}
}

// expire ends a lease whose holder fell silent. The token stays the newest one: until the next lease its
// holder's report still counts.
func (e *Engine) expire(s *shard) {
	confirmed := s.Confirmed || s.State == job.ShardRunning
	e.endLease(s, FactLeaseExpired, job.ReasonLeaseExpired)
	e.counters.Expired++
	switch s.State {
	case job.ShardStopping, job.ShardRetryWait:
		e.leaseOver(s)
	case job.ShardLeased, job.ShardRunning:
		if !confirmed {
			e.counters.Undelivered++
			e.setAttempt(s, job.AttemptUndelivered, job.ReasonUndelivered, nil)
			e.setShard(s, job.ShardQueued, job.ReasonUndelivered)
			return
		}
		e.lose(s)
	}
}

// lose books an infrastructure loss: not the handler's fault, bounded by its own counter.
func (e *Engine) lose(s *shard) {
	e.setAttempt(s, job.AttemptLost, job.ReasonLeaseExpired, nil)
	s.Losses++
	switch delay := job.LossDelay(s.Losses); {
	case s.Losses > e.cfg.LossMax:
		s.Error = &job.Failure{Class: string(job.ReasonWorkerLost), Message: job.ReasonWorkerLost.Text()}
		e.setShard(s, job.ShardFailed, job.ReasonWorkerLost)
	case delay == 0:
		e.setShard(s, job.ShardQueued, job.ReasonLeaseExpired)
	default:
		e.await(s, delay, job.ReasonLeaseExpired)
	}
}

// await puts a shard into retry_wait for d.
func (e *Engine) await(s *shard, d time.Duration, why job.Reason) {
	e.setShard(s, job.ShardRetryWait, why)
	s.retryAt, s.RetryAt = max(e.now.Mono+d, 1), e.now.Wall.Add(d)
	e.fact(Fact{Kind: FactRetryPlanned, Job: s.exec.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token, Attempt: s.Attempt,
		Reason: why, Until: s.RetryAt, Count: int64(s.Faults)})
	e.arm(s)
}

// timeOut ends an attempt that took too long or stalled. With a retry left the shard waits for it at
// once, and for the lease's end too; without one it is stopped.
func (e *Engine) timeOut(s *shard, why job.Reason) {
	e.counters.TimedOut++
	e.fact(Fact{Kind: FactTimedOut, Job: s.exec.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token, Attempt: s.Attempt, Reason: why})
	failure := &job.Failure{Class: "timed_out", Message: why.Text()}
	e.setAttempt(s, job.AttemptTimedOut, why, failure)
	s.Closed, s.Error = true, failure
	e.wantAnswer(s.sess)
	s.Faults++
	if e.cfg.Switches.DecisionEndsLease {
		e.endLease(s, FactLeaseEnded, why)
	}
	if s.Faults < s.exec.def.Spec.Retry.Attempts() {
		e.await(s, e.retryDelay(s), why)
		return
	}
	e.setShard(s, job.ShardStopping, why)
	e.setGrace(s)
}

func (e *Engine) setGrace(s *shard) {
	grace := s.exec.def.Spec.StopGrace()
	s.stopBy, s.StopBy = e.now.Mono+grace, e.now.Wall.Add(grace)
	e.arm(s)
}

func (e *Engine) retryDelay(s *shard) time.Duration {
	return s.exec.def.Spec.Retry.Delay(s.Faults, job.Jitter(s.Execution, s.Index, s.Attempt))
}

// cancelShard applies an accepted cancel to one shard.
func (e *Engine) cancelShard(s *shard, why job.Reason) {
	switch s.State {
	case job.ShardQueued:
		e.setShard(s, job.ShardCancelled, why)
	case job.ShardRetryWait:
		if s.sess == nil {
			e.setShard(s, job.ShardCancelled, why)
		} // else: its holder is being stopped already; leaseOver cancels it
	case job.ShardLeased, job.ShardRunning:
		s.Closed = true
		e.wantAnswer(s.sess)
		e.setShard(s, job.ShardStopping, why)
		e.setGrace(s)
		if e.cfg.Switches.DecisionEndsLease {
			e.endLease(s, FactLeaseEnded, why)
			e.stopped(s, job.AttemptCancelled, why)
		}
	}
}

// leaseOver goes on with a shard whose closed token's lease has just ended, by word or by expiry.
func (e *Engine) leaseOver(s *shard) {
	switch {
	case s.State == job.ShardRetryWait && s.exec.row.Cancel != "":
		e.setShard(s, job.ShardCancelled, s.exec.row.Cancel)
	case s.State == job.ShardRetryWait && e.now.Mono >= s.retryAt:
		e.setShard(s, job.ShardQueued, s.Reason)
	default:
		e.arm(s) // the retry instant, or the end of the grace
	}
}

// stopped ends a shard whose stop is over: confirmed by the holder, or abandoned when neither word nor
// lease was left and the grace had passed.
func (e *Engine) stopped(s *shard, how job.AttemptState, why job.Reason) {
	if a := s.attempt(); a != nil && a.State == job.AttemptRunning {
		e.setAttempt(s, how, why, nil)
	}
	to := job.ShardCancelled
	if s.Reason == job.ReasonAttemptTimeout || s.Reason == job.ReasonStalled {
		to = job.ShardTimedOut
	}
	e.setShard(s, to, s.Reason)
}

// givenBack ends a lease by the holder's word without a result: released, closed, or fenced by itself.
func (e *Engine) givenBack(s *shard, how job.AttemptState, why job.Reason) {
	e.endLease(s, FactLeaseEnded, why)
	switch s.State {
	case job.ShardLeased, job.ShardRunning:
		if how == job.AttemptLost {
			e.lose(s)
			return
		}
		e.setAttempt(s, how, why, nil)
		e.setShard(s, job.ShardQueued, why)
	case job.ShardStopping:
		e.stopped(s, job.AttemptCancelled, why)
	case job.ShardRetryWait:
		e.leaseOver(s)
	}
}

// stop is what a holder of a closed token is told.
func (e *Engine) stop(s *shard) Cancel {
	why := s.Reason
	if s.exec.row.Cancel != "" && s.State == job.ShardStopping && why != job.ReasonAttemptTimeout && why != job.ReasonStalled {
		why = s.exec.row.Cancel
	}
	grace := s.exec.def.Spec.StopGrace()
	if s.stopBy > 0 {
		grace = max(s.stopBy-e.now.Mono, 0)
	}
	return Cancel{Execution: s.Execution, Shard: s.Index, Token: s.Token, Reason: why, Grace: grace}
}

// deferVerdicts gives every lease a full TTL, and extra, from now: a judge that was blind (paused, cut
// off, reloaded) has no right to call anyone silent before that.
func (e *Engine) deferVerdicts(extra time.Duration) {
	for _, s := range e.sessions {
		for _, h := range s.held {
			h.deadline = max(h.deadline, e.now.Mono+s.TTL+extra)
			if h.stallAt > 0 {
				h.stallAt = max(h.stallAt, e.now.Mono+s.TTL) // its progress could not be heard either
			}
		}
		s.heardAt = max(s.heardAt, e.now.Mono-s.TTL) // it could not be heard: keep it
		if s.unheardAt > 0 {
			s.unheardAt = max(s.unheardAt, e.now.Mono+s.TTL/2)
		}
	}
}
