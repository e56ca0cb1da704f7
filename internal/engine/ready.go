package engine

import (
	"bytes"
	"container/heap"
	"slices"

	"github.com/taktsched/takt/internal/job"
)

type poolKey struct{ namespace, name string }

// pool is a group of workers and what waits for them.
type pool struct {
	key      poolKey
	sessions map[job.SessionID]*session
	queues   map[string]*readyQueue // by handler
	queued   int                    // entries of queues
	dirty    bool
	backlog  backlog
}

func (e *Engine) pool(namespace, name string) *pool {
	k := poolKey{namespace, name}
	p := e.pools[k]
	if p == nil {
		p = &pool{key: k, sessions: map[job.SessionID]*session{}, queues: map[string]*readyQueue{}}
		p.backlog = e.pages.others
		e.pools[k] = p
	}
	return p
}

// wantDispatch remembers that a grant may be possible in p now.
func (e *Engine) wantDispatch(p *pool) {
	if !p.dirty {
		p.dirty = true
		e.step.pools = append(e.step.pools, p)
	}
}

// readyQueue holds queued shards in the order in which they are to be given out. Entries of shards
// that ended meanwhile stay until they come up.
type readyQueue struct{ shards []*shard }

func (q *readyQueue) Len() int           { return len(q.shards) }
func (q *readyQueue) Less(i, j int) bool { return before(q.shards[i], q.shards[j]) }
func (q *readyQueue) Swap(i, j int)      { q.shards[i], q.shards[j] = q.shards[j], q.shards[i] }
func (q *readyQueue) Push(x any)         { q.shards = append(q.shards, x.(*shard)) }
func (q *readyQueue) Pop() any {
	last := len(q.shards) - 1
	s := q.shards[last]
	q.shards[last] = nil
	q.shards = q.shards[:last]
	return s
}

// before is the order of work: planned time, then execution, then shard.
func before(a, b *shard) bool {
	if a.exec.row.PlannedAt != b.exec.row.PlannedAt {
		return a.exec.row.PlannedAt < b.exec.row.PlannedAt
	}
	if c := bytes.Compare(a.Execution[:], b.Execution[:]); c != 0 {
		return c < 0
	}
	return a.Index < b.Index
}

// enqueue makes a queued shard available.
func (e *Engine) enqueue(s *shard) {
	p := e.pool(s.exec.row.Namespace, s.exec.row.Pool)
	e.wantDispatch(p)
	if s.inReady {
		return
	}
	q := p.queues[s.exec.row.Handler]
	if q == nil {
		q = &readyQueue{}
		p.queues[s.exec.row.Handler] = q
	}
	s.inReady = true
	p.queued++
	heap.Push(q, s)
}

// head is the first shard of a handler's queue that still waits; nil when there is none.
func (e *Engine) head(p *pool, handler string) *shard {
	q := p.queues[handler]
	for q != nil && len(q.shards) > 0 {
		s := q.shards[0]
		if s.State == job.ShardQueued && s.inReady && e.executions[s.Execution] == s.exec {
			return s
		}
		p.unready(q)
	}
	delete(p.queues, handler)
	return nil
}

func (p *pool) unready(q *readyQueue) {
	heap.Pop(q).(*shard).inReady = false
	p.queued--
}

// sortRipe puts what a step looks at into a fixed order: sessions by id, then shards by their keys.
func sortRipe(ripe []timed) {
	slices.SortStableFunc(ripe, func(a, b timed) int {
		x, xs := a.(*shard)
		y, ys := b.(*shard)
		switch {
		case xs && ys && before(x, y), !xs && ys:
			return -1
		case xs && ys && before(y, x), xs && !ys:
			return 1
		default:
			return 0
		}
	})
}
