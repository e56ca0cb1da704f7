package partition

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/store"
)

// readAfter is how many looks pass before a runner reads its inbox although nobody told it to, where the node looks for all of them.
const readAfter = 20

// inboxes is the store's way to look at all inboxes at once; nil: each runner reads its own at each look.
func (n *Node) inboxes() store.Inboxes {
	all, _ := n.cfg.Store.(store.Inboxes)
	return all
}

// inboxEach is how often a runner reads its inbox unasked.
func (n *Node) inboxEach() time.Duration {
	if n.inboxes() == nil {
		return n.cfg.Lease.Look
	}
	return readAfter * n.cfg.Lease.Look
}

// lookAtInboxes finds, each Lease.Look until ctx ends, what no hint told of (R11): one question in place of a page of each inbox,
// nearly all of which are empty nearly always.
func (n *Node) lookAtInboxes(ctx context.Context) {
	timer := time.NewTimer(n.cfg.Lease.Look + n.cfg.Jitter())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		for _, p := range n.filled(ctx) {
			if t := n.seats[p].serving(); t != nil {
				t.lookUp()
			}
		}
		timer.Reset(n.cfg.Lease.Look + n.cfg.Jitter())
	}
}

// filled are the partitions owned here whose inbox has something; all of them when that cannot be told: each runner then reads its own, and
// says what is wrong.
func (n *Node) filled(ctx context.Context) []int {
	var owned []int
	for p, s := range n.seats {
		if s.serving() != nil {
			owned = append(owned, p)
		}
	}
	if len(owned) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Lease.OwnerTTL/2)
	defer cancel()
	filled, err := n.inboxes().InboxesFilled(ctx, owned)
	if err != nil {
		return owned
	}
	return filled
}
