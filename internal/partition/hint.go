package partition

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/store"
)

// hinter wakes other servers, if the store can. Nobody waits for it, and hints may be lost: each server looks
// for itself every half second (R11).
type hinter struct {
	store store.Hints // nil: it cannot
	some  chan struct{}

	mu  sync.Mutex
	due map[int]bool // partitions to be hinted at
}

func newHinter(st Store) *hinter {
	h, _ := st.(store.Hints)
	return &hinter{store: h, some: make(chan struct{}, 1), due: map[int]bool{}}
}

// hint notes that others should look at a partition.
func (h *hinter) hint(partition int) {
	if h.store == nil {
		return
	}
	h.mu.Lock()
	h.due[partition] = true
	h.mu.Unlock()
	select {
	case h.some <- struct{}{}:
	default:
	}
}

func (h *hinter) take() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Sorted(maps.Keys(h.due))
	clear(h.due)
	return all
}

// send hands hints to the store until ctx ends, then those that are left.
func (n *Node) sendHints(ctx context.Context) {
	failing := false
	for over := false; !over && !n.dead.Load(); {
		select {
		case <-ctx.Done():
			over = true
		case <-n.hinter.some:
		}
		for _, p := range n.hinter.take() {
			cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWait)
			err := n.hinter.store.Hint(cctx, p)
			cancel()
			if err != nil && !failing {
				n.cfg.Logger.Warn("other servers could not be woken; they find what is new by themselves within half a second", "err", err)
			}
			failing = err != nil
			if failing && over {
				return
			}
		}
	}
}

// hear takes in hints until ctx ends: an inbox that has something, or a partition that was released.
func (n *Node) hear(ctx context.Context) {
	err := n.hinter.store.Hear(ctx, func(partition int) {
		if partition < 0 || partition >= len(n.seats) {
			return
		}
		if t := n.seats[partition].serving(); t != nil {
			t.wakeUp()
			return
		}
		select {
		case n.hinted <- struct{}{}:
		default:
		}
	})
	if err != nil && ctx.Err() == nil {
		n.cfg.Logger.Error("hints of other servers are heard no more; what they say is found by looking each half second", "err", err)
	}
}

// hintGap is the least time between a look and one that a hint asks for: hints come with every request for partitions of
// other servers, and looks take the connections by which leases are renewed.
const hintGap = 50 * time.Millisecond

// rest waits until the watcher is to look again; false when ctx ended.
func (n *Node) rest(ctx context.Context) bool {
	next := time.NewTimer(n.cfg.Lease.Look + n.cfg.Jitter())
	defer next.Stop()
	var soon <-chan time.Time
	if n.hinter.store != nil {
		gap := time.NewTimer(hintGap + n.cfg.Jitter())
		defer gap.Stop()
		soon = gap.C
	}
	var hinted <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-n.look:
			return true
		case <-next.C:
			return true
		case <-soon:
			hinted = n.hinted
		case <-hinted:
			return true
		}
	}
}
