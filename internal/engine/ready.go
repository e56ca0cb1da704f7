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
	lines    map[string]*line // by handler
	dirty    bool
}

// line is what waits in a pool for one handler: the shards in memory, in the order in which they are to be
// given out, and what is left in the database. A handler that nobody offers holds up its own line only.
type line struct {
	pool    *pool
	handler string
	shards  []*shard // a heap; each shard knows its place in it
	bytes   int      // of their parameters and checkpoints
	offers  int      // live sessions that offer the handler
	backlog backlog
}

func (e *Engine) pool(namespace, name string) *pool {
	k := poolKey{namespace, name}
	p := e.pools[k]
	if p == nil {
		p = &pool{key: k, sessions: map[job.SessionID]*session{}, lines: map[string]*line{}}
		e.pools[k] = p
	}
	return p
}

func (e *Engine) line(p *pool, handler string) *line {
	l := p.lines[handler]
	if l == nil {
		l = &line{pool: p, handler: handler, backlog: e.pages.others}
		p.lines[handler] = l
	}
	return l
}

func (e *Engine) lineOf(x *job.Execution) *line {
	return e.line(e.pool(x.Namespace, x.Pool), x.Handler)
}

// tidy forgets a line in which nothing waits and for which nobody works, and its pool when that was the
// last; what the line knows of the database goes on in others.
func (e *Engine) tidy(l *line) {
	if len(l.shards)+l.offers > 0 || l.pool.lines[l.handler] != l {
		return
	}
	e.pages.others.join(l.backlog)
	delete(l.pool.lines, l.handler)
	e.pages.watch(l)
	if len(l.pool.lines)+len(l.pool.sessions) == 0 {
		delete(e.pools, l.pool.key)
	}
}

// join takes a session into its pool, leave takes it out.
func (e *Engine) join(s *session) {
	s.pool = e.pool(s.Namespace, s.Pool)
	s.pool.sessions[s.ID] = s
	for _, handler := range s.Handlers {
		l := e.line(s.pool, handler)
		l.offers++
		e.pages.watch(l)
	}
}

func (e *Engine) leave(s *session) {
	delete(s.pool.sessions, s.ID)
	for _, handler := range s.Handlers {
		l := e.line(s.pool, handler)
		l.offers--
		e.pages.watch(l)
		e.tidy(l)
	}
	if len(s.pool.lines)+len(s.pool.sessions) == 0 {
		delete(e.pools, s.pool.key) // it offered nothing
	}
}

// wantDispatch remembers that a grant may be possible in p now.
func (e *Engine) wantDispatch(p *pool) {
	if !p.dirty {
		p.dirty = true
		e.step.pools = append(e.step.pools, p)
	}
}

func (l *line) Len() int           { return len(l.shards) }
func (l *line) Less(i, j int) bool { return before(l.shards[i], l.shards[j]) }
func (l *line) Swap(i, j int) {
	l.shards[i], l.shards[j] = l.shards[j], l.shards[i]
	l.shards[i].place, l.shards[j].place = i+1, j+1
}
func (l *line) Push(x any) {
	s := x.(*shard)
	l.shards = append(l.shards, s)
	s.place = len(l.shards)
}
func (l *line) Pop() any {
	last := len(l.shards) - 1
	s := l.shards[last]
	l.shards[last] = nil
	l.shards = l.shards[:last]
	s.place = 0
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
	l := e.lineOf(&s.exec.row)
	e.wantDispatch(l.pool)
	if s.place == 0 {
		s.bytes = len(s.exec.row.Params)/max(len(s.exec.shards), 1) + len(s.Checkpoint)
		l.bytes, e.ready = l.bytes+s.bytes, e.ready+s.bytes
		heap.Push(l, s)
	}
}

// unqueue takes a shard that waits no more out of its line; one that was not held there is in none.
func (e *Engine) unqueue(s *shard) {
	if s.place == 0 {
		return
	}
	l := e.lineOf(&s.exec.row)
	heap.Remove(l, s.place-1)
	l.bytes, e.ready = l.bytes-s.bytes, e.ready-s.bytes
	e.tidy(l)
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
