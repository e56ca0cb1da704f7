package partition

import (
	"context"
	"sync"
	"time"
)

const (
	entriesKept = 4096                   // newest consumed entries that are remembered
	entryPoll   = 200 * time.Millisecond // for entries that another server consumes
)

// entries connects those who wait for an inbox entry with the commits that consume them.
type entries struct {
	mu      sync.Mutex
	waiting map[int64][]chan struct{} // written by await, emptied by consumed
	recent  map[int64]bool
	order   []int64 // ring over recent
	next    int
}

func newEntries() *entries {
	return &entries{waiting: map[int64][]chan struct{}{}, recent: map[int64]bool{}, order: make([]int64, entriesKept)}
}

// consumed tells that a commit has consumed these entries.
func (e *entries) consumed(ids []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		delete(e.recent, e.order[e.next])
		e.order[e.next], e.recent[id] = id, true
		e.next = (e.next + 1) % len(e.order)
		for _, ch := range e.waiting[id] {
			close(ch)
		}
		delete(e.waiting, id)
	}
}

// await waits until an entry is consumed, here or (asking the store by pending) elsewhere.
func (e *entries) await(ctx context.Context, entry int64, pending func(context.Context, int64) (bool, error)) bool {
	if entry == 0 {
		return true
	}
	done := make(chan struct{})
	e.mu.Lock()
	if e.recent[entry] {
		e.mu.Unlock()
		return true
	}
	e.waiting[entry] = append(e.waiting[entry], done)
	e.mu.Unlock()
	defer e.forget(entry, done)
	poll := time.NewTicker(entryPoll)
	defer poll.Stop()
	for {
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return false
		case <-poll.C:
			// An error is no answer: the next tick asks again, and ctx bounds it.
			if still, err := pending(ctx, entry); err == nil && !still {
				return true
			}
		}
	}
}

func (e *entries) forget(entry int64, done chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.waiting[entry][:0]
	for _, ch := range e.waiting[entry] {
		if ch != done {
			left = append(left, ch)
		}
	}
	if len(left) == 0 {
		delete(e.waiting, entry)
		return
	}
	e.waiting[entry] = left
}
