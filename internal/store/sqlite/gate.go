package sqlite

import (
	"context"
	"slices"
	"sync"
)

// rank orders those who wait for the writer: ownership first, for a renewal that comes late costs the
// partition; then the owner's commits; then people; then logs; then
// the deletion of what is old.
type rank int

const (
	rankOwnership rank = iota
	rankCommit
	rankPeople
	rankLogs
	rankSweep
	ranks
)

// passedOver is how often a waiter is passed over by better ranks before its turn comes nevertheless: nobody waits for
// ever behind a load that never ends. Only ownership still goes before it.
const passedOver = 50

// gate lets one in at a time, the best rank first, first come first served within a rank. database/sql
// picks a waiter by chance, so its own queue would not do. Waiting is on a channel, which a synctest
// bubble knows as durable.
type gate struct {
	mu     sync.Mutex
	taken  bool
	queues [ranks][]*waiter
}

type waiter struct {
	turn   chan struct{} // closed when it is let in
	passed int           // how often it was first in its rank and another rank was let in
}

// enter waits for its turn; the error is ctx's and then nothing was taken.
func (g *gate) enter(ctx context.Context, r rank) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	g.mu.Lock()
	if !g.taken {
		g.taken = true
		g.mu.Unlock()
		return nil
	}
	w := &waiter{turn: make(chan struct{})}
	g.queues[r] = append(g.queues[r], w)
	g.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	if !g.forget(r, w) {
		g.leave() // the turn came at the same moment: pass it on
	}
	return context.Cause(ctx)
}

// try enters if nobody is in.
func (g *gate) try() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.taken {
		return false
	}
	g.taken = true
	return true
}

// forget takes a waiter out of its queue; false when it has been let in.
func (g *gate) forget(r rank, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queues[r], w)
	if i < 0 {
		return false
	}
	g.queues[r] = slices.Delete(g.queues[r], i, i+1)
	return true
}

// leave lets the next one in.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.next()
	if next < 0 {
		g.taken = false
		return
	}
	w := g.queues[next][0]
	g.queues[next] = g.queues[next][1:]
	for r := range g.queues {
		if r != next && len(g.queues[r]) > 0 {
			g.queues[r][0].passed++
		}
	}
	close(w.turn)
}

// next is the rank that is let in; -1 when nobody waits.
func (g *gate) next() int {
	best := slices.IndexFunc(g.queues[:], func(q []*waiter) bool { return len(q) > 0 })
	if best <= int(rankOwnership) {
		return best
	}
	for r := best + 1; r < len(g.queues); r++ {
		if q := g.queues[r]; len(q) > 0 && q[0].passed >= passedOver {
			return r
		}
	}
	return best
}
