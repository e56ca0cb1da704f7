package peer

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errMoved ends calls that hang at a server that is no longer the owner.
var errMoved = errors.New("the owner has changed")

// errStopping ends calls that hang through a server that stops.
var errStopping = errors.New("this server stops")

// lanes end hanging calls when their target is no longer the owner. There is one lane for each partition with hanging
// calls, with a goroutine that looks for all of them.
type lanes struct {
	directory Directory
	look      time.Duration

	mu      sync.Mutex
	open    map[int]*lane // newest by partition
	stopped bool          // nothing hangs any more
}

type lane struct {
	to    Target
	users int             // guarded by lanes.mu
	ctx   context.Context // ends with errMoved, or when nobody hangs here any more
	end   context.CancelCauseFunc
}

// enter gives a context that ends with errMoved when the target loses the partition, and what to call at the end.
func (l *lanes) enter(ctx context.Context, to Target) (context.Context, func()) {
	l.mu.Lock()
	if l.stopped {
		l.mu.Unlock()
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errStopping)
		return ctx, func() {}
	}
	e := l.open[to.Partition]
	if e == nil || !e.to.same(to) {
		e = &lane{to: to}
		e.ctx, e.end = context.WithCancelCause(context.WithoutCancel(ctx))
		l.open[to.Partition] = e
		go l.watch(e)
	}
	e.users++
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
		l.leave(e)
	}
}

// stop ends all that hangs, and what would.
func (l *lanes) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for _, e := range l.open {
		l.shut(e, errStopping)
	}
}

func (l *lanes) closed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

func (l *lanes) leave(e *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.users--; e.users == 0 {
		l.shut(e, nil)
	}
}

// shut ends a lane: who comes now asks the directory again. Under the lock.
func (l *lanes) shut(e *lane, cause error) {
	if l.open[e.to.Partition] == e {
		delete(l.open, e.to.Partition)
	}
	e.end(cause)
}

// watch looks until the target is no longer the owner, or nobody hangs there.
func (l *lanes) watch(e *lane) {
	tick := time.NewTicker(l.look)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
		if h, ok := l.directory.Owner(e.to.Partition); ok && !h.Local && e.to.same(Target{Server: h.Server, Epoch: h.Epoch}) {
			continue
		}
		l.mu.Lock()
		l.shut(e, errMoved)
		l.mu.Unlock()
		return
	}
}

// same tells whether two targets are one owner under one epoch.
func (t Target) same(o Target) bool {
	return t.Server.Incarnation == o.Server.Incarnation && t.Epoch == o.Epoch
}
