package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// inspect answers what only memory knows. Its answer waits for the commits before it, so readers see
// memory as of the last commit (DESIGN §10.16).
func (e *Engine) inspect(q InspectQuery) *Inspected {
	out := &Inspected{Counters: e.counters, Waiting: e.turns.waits, Turn: e.turnView(q.Job)}
	if !q.Execution.IsZero() {
		if x := e.executions[q.Execution]; x != nil && (q.Namespace == "" || x.row.Namespace == q.Namespace) {
			out.Execution = e.view(x)
		}
	}
	if !q.Execution.IsZero() || !q.Job.IsZero() {
		return out
	}
	selected := func(namespace, pool string) bool {
		return (q.Namespace == "" || q.Namespace == namespace) && (q.Pool == "" || q.Pool == pool)
	}
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		if s := e.sessions[id]; selected(s.Namespace, s.Pool) {
			out.Sessions = append(out.Sessions, e.sessionView(s))
		}
	}
	for k, p := range e.pools {
		if v := e.poolView(p); selected(k.namespace, k.name) && v.Workers+v.Queued > 0 {
			out.Pools = append(out.Pools, v)
		}
	}
	slices.SortFunc(out.Pools, func(a, b PoolView) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pool, b.Pool))
	})
	return out
}

func (e *Engine) sessionView(s *session) SessionView {
	v := SessionView{Session: s.Session, Free: max(s.free(), 0), LastBeat: e.now.Mono - s.heardAt, Polling: s.waiting != nil, Clock: s.clock}
	for _, token := range sortedTokens(s.held) {
		h := s.held[token]
		v.Held = append(v.Held, HeldView{Execution: h.Execution, Shard: h.Index, Token: token, Left: max(h.deadline-e.now.Mono, 0),
			State: h.State, Progress: h.Progress})
	}
	return v
}

func (e *Engine) poolView(p *pool) PoolView {
	v := PoolView{Namespace: p.key.namespace, Pool: p.key.name}
	for _, s := range p.sessions {
		v.Busy += len(s.held)
		if e.heardLately(s) { // a silent one offers nothing
			v.Workers++
			v.Slots += s.Slots
		}
	}
	for _, l := range p.lines {
		v.Queued += len(l.shards)
	}
	return v
}

func (e *Engine) view(x *execution) *ExecutionView {
	v := &ExecutionView{Row: Row{Execution: x.row, Definition: x.def}}
	for _, s := range x.shards {
		row := s.Shard
		row.Attempts = slices.Clone(s.Attempts)
		v.Row.Shards = append(v.Row.Shards, row)
		v.Waits = append(v.Waits, e.waits(s))
		left := max(s.deadline-e.now.Mono, 0)
		if s.sess == nil {
			left = 0
		}
		v.Left = append(v.Left, left)
	}
	return v
}

// waits says why a shard is not running.
func (e *Engine) waits(s *shard) job.Reason {
	switch {
	case s.exec.row.State == job.ExecutionScheduled:
		return s.exec.row.Reason
	case s.State == job.ShardRetryWait && s.sess != nil && e.now.Mono >= s.retryAt:
		return job.WaitLease
	case s.State == job.ShardRetryWait:
		return job.WaitRetry
	case s.State != job.ShardQueued:
		return job.ReasonNone
	}
	p := e.pools[poolKey{s.exec.row.Namespace, s.exec.row.Pool}]
	if p == nil || len(p.sessions) == 0 {
		return job.WaitNoWorker
	}
	why := job.WaitSilent
	for _, sess := range p.sessions {
		offers := slices.Contains(sess.Handlers, s.exec.row.Handler)
		switch {
		case !e.heardLately(sess):
		case offers && sess.free() > 0:
			return job.WaitNoPoll
		case offers:
			why = job.WaitNoSlot
		case why == job.WaitSilent:
			why = job.WaitNoHandler
		}
	}
	return why
}
