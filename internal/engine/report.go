package engine

import (
	"github.com/taktsched/takt/internal/job"
)

// report takes the items of one call. Items about executions that are not in memory (ended, or left in
// the database) are answered when what settles them has been read: a repeated done must get the same
// answer as the first one.
func (e *Engine) report(ev Report) {
	if s := e.sessions[ev.Session]; s != nil {
		e.heard(s, ev.Call)
	} // else: the session is over, its tokens may still be the newest ones
	missing := e.missing(ev.Items)
	if len(missing) > 0 {
		e.pages.askReport(ev, missing)
		return
	}
	e.answerReport(ev, nil)
}

func (e *Engine) missing(items []ReportItem) []ShardRef {
	var refs []ShardRef
	for _, it := range items {
		if e.executions[it.Execution] == nil {
			refs = append(refs, ShardRef{it.Execution, it.Shard})
		}
	}
	return refs
}

// shardPage goes on with the reports that waited for it.
func (e *Engine) shardPage(ev ShardPage) {
	p := &e.pages
	found := map[ShardRef]Settled{}
	for _, row := range ev.Rows {
		found[row.ShardRef] = row
	}
	for _, ref := range ev.Asked {
		if e.executions[ref.Execution] == nil && (p.tooOld(ev.Seq) || p.changed(ref.Execution, ev.Seq)) {
			p.shards.again(ref) // it changed since the page was read
			continue
		}
		row, is := found[ref]
		p.arrived(ref, row, is)
	}
	for _, w := range p.answeredReports() {
		e.answerReport(w.report, w.found)
	}
	p.read(ev.Seq)
}

// answerReport decides each item. found has what was read about executions not in memory.
func (e *Engine) answerReport(ev Report, found map[ShardRef]Settled) {
	out := &Reported{Items: make([]ItemStatus, len(ev.Items))}
	for i, it := range ev.Items {
		x := e.executions[it.Execution]
		switch {
		case x == nil:
			out.Items[i] = settledItem(it, found)
		case it.Shard < 0 || it.Shard >= len(x.shards):
			out.Items[i] = ItemUnknown
		default:
			out.Items[i] = e.takeItem(ev.Session, x.shards[it.Shard], it)
		}
		if out.Items[i] == ItemStale {
			e.counters.Stale++
			e.traceFact(Fact{Kind: FactRejected, Execution: it.Execution, Shard: it.Shard, Token: it.Token, Session: ev.Session,
				Note: string(it.Kind)})
		}
	}
	e.answer(ev.Reply, out)
}

// settledItem answers an item about an execution that is not in memory: nothing changes any more.
func settledItem(it ReportItem, found map[ShardRef]Settled) ItemStatus {
	s, is := found[ShardRef{it.Execution, it.Shard}]
	if !is {
		return ItemUnknown
	}
	if s.Token == it.Token && it.Seq <= s.ReportSeq && (!s.Closed || it.Outcome == OutcomeCancelled) {
		return ItemAccepted // it was, and this is it again
	}
	return ItemStale
}

// takeItem decides one item against the newest token of its shard (R6).
func (e *Engine) takeItem(from job.SessionID, s *shard, it ReportItem) ItemStatus {
	old := it.Token != s.Token && !(e.cfg.Switches.OldTokenWrites && it.Token > 0 && it.Token < s.Token)
	switch {
	case old, s.sess != nil && s.sess.ID != from && !e.cfg.Switches.OldTokenWrites:
		return ItemStale
	case s.Closed:
		return e.closedItem(s, it)
	case it.Seq <= s.ReportSeq:
		return ItemAccepted // taken in before
	case s.State.Ended():
		return ItemStale // nothing follows done
	case s.sess == nil && !s.lost():
		return ItemStale // its holder had its last word: nothing follows it
	}
	s.ReportSeq = it.Seq
	if s.sess != nil {
		s.Confirmed = true
	}
	switch it.Kind {
	case ItemStarted:
		e.started(s)
	case ItemProgress:
		s.Progress = it.Progress
		e.started(s)
		e.progressed(s)
	case ItemCheckpoint:
		e.started(s)
		e.checkpoint(s, it)
	case ItemDone:
		e.done(s, it)
	}
	return ItemAccepted
}

// lost tells that the newest lease ran out without a word of its holder, so that a late one still counts.
func (s *shard) lost() bool {
	a := s.attempt()
	return a != nil && a.Token == s.Token && (a.State == job.AttemptLost || a.State == job.AttemptUndelivered)
}

// closedItem: a closed token writes nothing more; its holder's done still confirms the stop.
func (e *Engine) closedItem(s *shard, it ReportItem) ItemStatus {
	if it.Kind != ItemDone {
		return ItemStale
	}
	if s.sess == nil && s.State != job.ShardStopping {
		if it.Outcome == OutcomeCancelled && it.Seq <= s.ReportSeq {
			return ItemAccepted
		}
		return ItemStale
	}
	s.ReportSeq = max(s.ReportSeq, it.Seq)
	e.touchShard(s)
	e.endLease(s, FactLeaseEnded, s.Reason)
	if s.State == job.ShardStopping {
		e.stopped(s, job.AttemptCancelled, s.Reason)
	} else {
		e.leaseOver(s)
	}
	if it.Outcome == OutcomeCancelled {
		return ItemAccepted
	}
	return ItemStale
}

func (e *Engine) started(s *shard) {
	if s.sess == nil || s.State != job.ShardLeased {
		return
	}
	s.StartedAt = e.now.Wall
	e.setShard(s, job.ShardRunning, job.ReasonNone)
	e.fact(Fact{Kind: FactStarted, Job: s.exec.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token, Attempt: s.Attempt,
		Session: s.Session, Worker: s.Worker})
	e.progressed(s)
}

// checkpoint keeps the newest value; its number over all attempts only rises.
func (e *Engine) checkpoint(s *shard, it ReportItem) {
	s.Checkpoint = it.Checkpoint
	s.CheckpointSeq++
	e.touchShard(s)
	e.fact(Fact{Kind: FactCheckpoint, Job: s.exec.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token, Checkpoint: s.CheckpointSeq,
		Attempt: s.Attempt})
	if s.sess != nil {
		e.progressed(s)
	}
}

// done ends an attempt by the handler's word. late: its lease had run out and nobody else was granted
// one yet, so the word still counts, as far as it settles the shard.
func (e *Engine) done(s *shard, it ReportItem) {
	late := s.sess == nil
	e.touchShard(s)
	e.fact(Fact{Kind: FactResult, Job: s.exec.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token, Attempt: s.Attempt,
		To: string(it.Outcome), Worker: s.Worker})
	e.endLease(s, FactLeaseEnded, job.ReasonNone)
	switch it.Outcome {
	case OutcomeSuccess:
		s.Result, s.Error = it.Result, nil
		e.setAttempt(s, job.AttemptSucceeded, job.ReasonNone, nil)
		e.setShard(s, job.ShardSucceeded, job.ReasonNone)
	case OutcomeFatal:
		s.Error = failure(it)
		e.setAttempt(s, job.AttemptFailed, job.ReasonHandlerFatal, s.Error)
		e.setShard(s, job.ShardFailed, job.ReasonHandlerFatal)
	case OutcomeSnooze:
		if !late {
			e.setAttempt(s, job.AttemptReleased, job.ReasonSnoozed, nil)
			e.await(s, it.RetryAfter, job.ReasonSnoozed)
		}
	case OutcomeReleased:
		if !late {
			e.setAttempt(s, job.AttemptReleased, job.ReasonReleased, nil)
			e.setShard(s, job.ShardQueued, job.ReasonReleased)
		}
	case OutcomeLeaseLost:
		if !late {
			e.lose(s)
		}
	default: // error, and a cancelled that nobody asked for
		e.failed(s, it, late)
	}
}

func failure(it ReportItem) *job.Failure {
	if it.Failure != nil {
		return it.Failure
	}
	return &job.Failure{Class: string(it.Outcome), Message: "the handler gave no message"}
}

// failed books a fault of the handler and plans the next attempt, if one is left.
func (e *Engine) failed(s *shard, it ReportItem, late bool) {
	s.Faults++
	s.Error = failure(it)
	e.setAttempt(s, job.AttemptFailed, job.ReasonHandlerError, s.Error)
	allowed := s.exec.def.Spec.Retry.Attempts()
	switch {
	case s.Faults >= allowed && allowed == 1:
		e.setShard(s, job.ShardFailed, job.ReasonHandlerError)
	case s.Faults >= allowed:
		e.setShard(s, job.ShardFailed, job.ReasonRetriesExhausted)
	case !late:
		e.await(s, max(e.retryDelay(s), it.RetryAfter), job.ReasonHandlerError)
	} // late, with attempts left: it is queued for the next one already
}
