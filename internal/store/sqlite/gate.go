package sqlite

import (
	"context"
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

// gate lets one in at a time, the best rank first, first come first served within a rank. database/sql
// picks a waiter by chance, so its own queue would not do. Waiting is on a channel, which a synctest
// bubble knows as durable.
type gate struct {
	mu     sync.Mutex
	taken  bool
	queues [ranks][]chan struct{}
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
	turn := make(chan struct{})
	g.queues[r] = append(g.queues[r], turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !g.forget(r, turn) {
		g.leave() // the turn came at the same moment: pass it on
	}
	return context.Cause(ctx)
}

// forget takes a waiter out of its queue; false when it has been let in.
func (g *gate) forget(r rank, turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, c := range g.queues[r] {
		if c == turn {
			g.queues[r] = append(g.queues[r][:i], g.queues[r][i+1:]...)
			return true
		}
	}
	return false
}

// leave lets the next one in.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range g.queues {
		if q := g.queues[r]; len(q) > 0 {
			g.queues[r] = q[1:]
			close(q[0])
			return
		}
	}
	g.taken = false
}
