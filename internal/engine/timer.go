package engine

import (
	"container/heap"
	"slices"
	"time"
)

// timed is something that wants to be looked at: a shard (lease, time-out, stall, retry, grace) or a
// session (poll, silence). Each has at most one valid entry, the earliest of its deadlines; a deadline
// that moves later costs nothing until the entry comes up and is armed again.
type timed interface {
	look(e *Engine)               // now ≥ the armed instant
	next(e *Engine) time.Duration // earliest deadline; 0: none
	armed() *alarm
}

// alarm is the valid entry of something timed; at 0: there is none.
type alarm struct {
	at time.Duration
	n  int64
}

type timerEntry struct {
	at   time.Duration
	what timed
	n    int64 // order of arming: ties are looked at in a fixed order
}

type timerHeap struct {
	entries []timerEntry
	n       int64
	armed   int // valid entries; the others stay until they come up, or until they are the most
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
		if top := &h.entries[0]; top.valid() {
			return top.at, true
		}
		heap.Pop(h) // armed earlier since, or disarmed
	}
	return 0, false
}

func (t *timerEntry) valid() bool { return t.what.armed().n == t.n }

// arm makes sure that t is looked at no later than its earliest deadline.
func (e *Engine) arm(t timed) {
	at, a := t.next(e), t.armed()
	if at == 0 || a.at != 0 && a.at <= at {
		return
	}
	h := &e.timers
	h.disarm(t)
	h.n++
	h.armed++
	*a = alarm{at, h.n}
	heap.Push(h, timerEntry{at: at, what: t, n: h.n})
}

// disarm makes the entry of t invalid. What is timed no more (it ended) must not be kept in memory by an
// entry for an instant that may be days ahead.
func (h *timerHeap) disarm(t timed) {
	if t.armed().n == 0 {
		return
	}
	*t.armed() = alarm{}
	h.armed--
	const few = 64
	if len(h.entries) > 2*h.armed+few {
		h.entries = slices.DeleteFunc(h.entries, func(x timerEntry) bool { return !x.valid() })
		heap.Init(h)
	}
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
		e.timers.disarm(entry.what)
		ripe = append(ripe, entry.what)
	}
	sortRipe(ripe)
	for _, t := range ripe {
		if s, is := t.(*shard); is {
			e.at(s.Execution)
		} else {
			e.about = About{}
		}
		t.look(e)
		e.arm(t)
	}
}
