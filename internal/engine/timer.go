package engine

import (
	"container/heap"
	"time"
)

// timed is something that wants to be looked at: a shard (lease, time-out, stall, retry, grace) or a
// session (poll, silence). Each has at most one valid entry, the earliest of its deadlines; a deadline
// that moves later costs nothing until the entry comes up and is armed again.
type timed interface {
	look(e *Engine)               // now ≥ the armed instant
	next(e *Engine) time.Duration // earliest deadline; 0: none
	armed() *time.Duration
}

type timerEntry struct {
	at   time.Duration
	what timed
	n    int64 // order of arming: ties are looked at in a fixed order
}

type timerHeap struct {
	entries []timerEntry
	n       int64
}

func (h *timerHeap) Len() int { return len(h.entries) }
func (h *timerHeap) Less(i, j int) bool {
	a, b := &h.entries[i], &h.entries[j]
	return a.at < b.at || a.at == b.at && a.n < b.n
}
func (h *timerHeap) Swap(i, j int) { h.entries[i], h.entries[j] = h.entries[j], h.entries[i] }
func (h *timerHeap) Push(x any)    { h.entries = append(h.entries, x.(timerEntry)) }
func (h *timerHeap) Pop() any {
	last := len(h.entries) - 1
	x := h.entries[last]
	h.entries[last] = timerEntry{}
	h.entries = h.entries[:last]
	return x
}

func (h *timerHeap) next() (time.Duration, bool) {
	for len(h.entries) > 0 {
		top := h.entries[0]
		if *top.what.armed() == top.at {
			return top.at, true
		}
		heap.Pop(h) // armed earlier since
	}
	return 0, false
}

// arm makes sure that t is looked at no later than its earliest deadline.
func (e *Engine) arm(t timed) {
	at, armed := t.next(e), t.armed()
	if at == 0 || *armed != 0 && *armed <= at {
		return
	}
	*armed = at
	e.timers.n++
	heap.Push(&e.timers, timerEntry{at: at, what: t, n: e.timers.n})
}

// runTimers looks at everything whose instant has come. Shards that expire together are taken in the
// order of their keys, so that who gets what does not depend on who was armed first.
func (e *Engine) runTimers() {
	var ripe []timed
	for {
		at, ok := e.timers.next()
		if !ok || at > e.now.Mono {
			break
		}
		entry := heap.Pop(&e.timers).(timerEntry)
		*entry.what.armed() = 0
		ripe = append(ripe, entry.what)
	}
	sortRipe(ripe)
	for _, t := range ripe {
		t.look(e)
		e.arm(t)
	}
}
