package engine

import (
	"fmt"

	"github.com/taktsched/takt/internal/job"
)

// Everything that changes a row passes through this file, so that each change is written once per step
// and each edge is checked against the table and told to the journal.

func (e *Engine) touch(x *execution) {
	if !x.dirty {
		x.dirty = true
		e.step.executions = append(e.step.executions, x)
	}
}

func (e *Engine) touchShard(s *shard) {
	if s.bare {
		panic(fmt.Sprintf("execution %s shard %d: a write after its end would lose its values", s.Execution, s.Index))
	}
	if !s.dirty {
		s.dirty = true
		e.step.shards = append(e.step.shards, s)
	}
}

// strip drops the values of a shard that has ended: nobody here needs them, and their execution may live on.
func (s *shard) strip() { s.Checkpoint, s.Result, s.bare = nil, nil, true }

func (e *Engine) touchSession(s *session) {
	if !s.dirty {
		s.dirty = true
		e.step.sessions = append(e.step.sessions, s)
	}
}

// setExecution moves an execution along an edge of the table.
func (e *Engine) setExecution(x *execution, to job.ExecutionState, why job.Reason) {
	from := x.row.State
	if !from.CanBecome(to) {
		panic(fmt.Sprintf("execution %s: no edge %q → %q", x.row.ID, from, to))
	}
	x.row.State, x.row.Reason = to, why
	if to.Ended() {
		e.endSeen(x)
		x.row.EndedAt = e.now.Wall
		e.ended(x)
		e.ranPast(x)
	}
	e.touch(x)
	e.fact(Fact{Kind: FactExecutionState, Job: x.name(), Execution: x.row.ID, From: string(from), To: string(to), Reason: why})
	e.mind(x)
}

// setShard moves a shard along an edge of the table and keeps its queue and its execution's count.
func (e *Engine) setShard(s *shard, to job.ShardState, why job.Reason) {
	from := s.State
	if !from.CanBecome(to) {
		panic(fmt.Sprintf("execution %s shard %d: no edge %q → %q", s.Execution, s.Index, from, to))
	}
	s.State, s.Reason = to, why
	e.touchShard(s)
	e.fact(Fact{Kind: FactShardState, Job: s.exec.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token,
		From: string(from), To: string(to), Reason: why})
	e.unqueue(s)
	s.retryAt, s.RetryAt = 0, 0
	if to != job.ShardStopping {
		s.stopBy, s.StopBy = 0, 0
	}
	if from.Ended() { // rerun
		s.EndedAt = 0
		s.exec.open++
	}
	switch {
	case to.Ended():
		s.EndedAt = e.now.Wall
		e.timers.disarm(s)
		if s.exec.open--; s.exec.open == 0 {
			e.step.finishing = append(e.step.finishing, s.exec)
		}
	case to == job.ShardQueued && s.exec.row.State != job.ExecutionScheduled:
		e.enqueue(s)
	}
}

// setAttempt ends the newest attempt of a shard.
func (e *Engine) setAttempt(s *shard, to job.AttemptState, why job.Reason, failure *job.Failure) {
	a := s.attempt()
	if a == nil || a.Token != s.Token {
		return // cut off the bounded history
	}
	if !a.State.CanBecome(to) {
		panic(fmt.Sprintf("execution %s shard %d attempt %d: no edge %q → %q", s.Execution, s.Index, a.Number, a.State, to))
	}
	a.State, a.Reason, a.EndedAt, a.Error = to, why, e.now.Wall, failure
	e.touchShard(s)
}

// attempt is the newest attempt; nil before the first.
func (s *shard) attempt() *job.Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	return &s.Attempts[len(s.Attempts)-1]
}

func (x *execution) name() string { return x.row.Namespace + "/" + x.row.Job }

// endLease ends the right of a shard's holder, by its word or by expiry.
func (e *Engine) endLease(s *shard, kind FactKind, why job.Reason) {
	if s.sess == nil {
		return
	}
	e.fact(Fact{Kind: kind, Job: s.exec.name(), Execution: s.Execution, Shard: s.Index, Token: s.Token,
		Session: s.sess.ID, Worker: s.Worker, Reason: why})
	delete(s.sess.held, s.Token)
	if len(s.sess.held) == 0 {
		e.arm(s.sess) // from now on its silence has an end of its own
	}
	e.wantDispatch(s.sess.pool)
	s.sess, s.Session = nil, ""
	s.timeoutAt, s.stallAt, s.TimeoutAt = 0, 0, 0
	e.touchShard(s)
}

// writeCursor notes the newest position of a schedule; the last one of a step counts.
func (e *Engine) writeCursor(c job.Cursor) {
	k := dueKey{c.Job, c.Schedule}
	delete(e.step.dropped, k)
	if e.step.cursors == nil {
		e.step.cursors = map[dueKey]job.Cursor{}
	}
	e.step.cursors[k] = c
	e.audited(k)
}

// dropCursor deletes the cursor of a schedule that the job does not have any more.
func (e *Engine) dropCursor(c job.Cursor) {
	k := dueKey{c.Job, c.Schedule}
	delete(e.step.cursors, k)
	if e.step.dropped == nil {
		e.step.dropped = map[dueKey]job.Cursor{}
	}
	e.step.dropped[k] = c
}

// insert makes a new execution with queued shards, in no line and not held in memory.
func (e *Engine) insert(row job.Execution, def *job.Definition, state job.ExecutionState, why job.Reason) *execution {
	x := &execution{row: row, def: def, open: row.ShardTotal}
	x.row.State, x.row.Reason = state, why
	x.row.CreatedAt = e.now.Wall
	if e.step.created == nil {
		e.step.created = map[job.ExecutionID]bool{}
	}
	e.step.created[row.ID] = true
	e.touch(x)
	e.fact(Fact{Kind: FactExecutionCreated, Job: x.name(), Execution: row.ID, PlannedAt: row.PlannedAt, Count: int64(row.ShardTotal),
		To: string(x.row.State), Reason: why, Note: string(row.Trigger)})
	x.shards = make([]*shard, row.ShardTotal)
	for i := range x.shards {
		x.shards[i] = &shard{Shard: job.Shard{Execution: row.ID, Index: i, State: job.ShardQueued}, exec: x}
		e.touchShard(x.shards[i])
	}
	e.mind(x)
	return x
}

// lineUp puts the queued shards of an execution in line and holds it in memory, or leaves it in the database when its line is
// full, to be paged in later (R14).
func (e *Engine) lineUp(x *execution) {
	l := e.lineOf(&x.row)
	if !e.holds(l, x.row.ShardTotal) {
		l.backlog.leave(backlogKey{x.row.PlannedAt, x.row.ID}, e.seq+1)
		e.pages.watch(l)
		e.forget(x)
		return
	}
	e.executions[x.row.ID] = x
	for _, s := range x.shards {
		if s.State == job.ShardQueued {
			e.enqueue(s)
		}
	}
}

// forget drops an execution that has ended, or that is not to be held, from memory.
func (e *Engine) forget(x *execution) {
	e.soon.drop(x)
	if e.executions[x.row.ID] == x {
		delete(e.executions, x.row.ID)
	}
}

// finish ends the executions whose last shard has ended, and lets those go on that waited for it. The state is computed,
// never set by hand.
func (e *Engine) finish() {
	for _, x := range e.step.finishing {
		e.at(x.row.ID)
		if x.open > 0 || x.row.State.Ended() {
			continue
		}
		states := make([]job.ShardState, len(x.shards))
		for i, s := range x.shards {
			states[i] = s.State
		}
		to, ended := job.Aggregate(states, x.row.Cancel != "")
		if !ended {
			panic(fmt.Sprintf("execution %s: no open shard, yet not ended", x.row.ID))
		}
		e.setExecution(x, to, x.reason(to))
	}
	e.step.finishing = nil
	e.wakeNext()
}

// reason tells why an execution ended in state to: the reason of the first shard that stands for it.
func (x *execution) reason(to job.ExecutionState) job.Reason {
	switch to {
	case job.ExecutionSucceeded:
		return job.ReasonNone
	case job.ExecutionCancelled:
		if x.row.Cancel != "" {
			return x.row.Cancel
		}
	case job.ExecutionPartiallySucceeded:
		return job.ReasonPartial
	}
	for _, s := range x.shards {
		if string(s.State) == string(to) {
			return s.Reason
		}
	}
	return job.ReasonNone
}
