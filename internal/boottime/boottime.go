// Package boottime is a clock for holders of leases: it rises like Go's monotonic clock and also counts
// the time for which the machine was suspended, during which that clock stands still. A worker in a
// virtual machine that slept through its lease must find the lease over when it wakes (DESIGN R7).
//
// Only a holder uses it. A judge takes plain monotonic time: a judge whose clock stood still only
// judges later, which is safe, while a holder whose clock stood still would write after its end.
//
// The package reads the standard library alone, starts no goroutine and works inside a testing/synctest
// bubble, where virtual time passes.
package boottime

import (
	"sync/atomic"
	"time"
)

// noise is the difference below which no suspension is believed: the two clocks are not read at one
// instant.
const noise = 10 * time.Millisecond

// A suspension moves the wall clock against the monotonic one in the same instant as the boot clock, and the runtime reads these two
// without a system call. So asleep is asked only when they moved against each other by more than drift, or when it was not
// asked for recheck: what hides a suspension, a wall clock that was set back meanwhile by just its length, does so for recheck of
// running time at most. Holders' margins are hundreds of times that.
const (
	drift   = time.Millisecond
	recheck = 10 * time.Millisecond
)

// Clock counts from its Start. It may be used by many goroutines.
type Clock struct {
	start     time.Time
	base      time.Duration // what asleep said at the start
	suspended atomic.Int64  // most that was believed so far, in ns: never falls, so Now never does
	asked     atomic.Pointer[reading]
}

// reading is the two clocks since the start, as they were before asleep was asked.
type reading struct{ elapsed, wall time.Duration }

// fresh tells that asleep would say at now what it said at r.
func (r *reading) fresh(now reading) bool {
	return r != nil && now.elapsed >= r.elapsed && now.elapsed-r.elapsed < recheck &&
		(now.wall-now.elapsed-(r.wall-r.elapsed)).Abs() <= drift
}

// Start makes a clock that shows zero now. Make it inside the bubble in which it is read.
func Start() *Clock {
	c := &Clock{start: time.Now()}
	c.base = asleep(c.start)
	return c
}

// Now is the time since Start, suspensions included. It never falls, and rises at least as fast as
// Go's monotonic clock.
func (c *Clock) Now() time.Duration {
	t := time.Now()
	now := reading{elapsed: t.Sub(c.start), wall: t.Round(0).Sub(c.start.Round(0))} // Round(0) strips the monotonic reading
	if c.asked.Load().fresh(now) {
		return now.elapsed + time.Duration(c.suspended.Load())
	}
	elapsed, most := time.Since(c.start), c.believe(asleep(c.start)-c.base)
	c.asked.Store(&now)
	return elapsed + most
}

// believe takes in a measured amount of suspension and gives the most there was.
func (c *Clock) believe(d time.Duration) time.Duration {
	if d < noise {
		d = 0
	}
	for {
		old := c.suspended.Load()
		if int64(d) <= old {
			return time.Duration(old)
		}
		if c.suspended.CompareAndSwap(old, int64(d)) {
			return d
		}
	}
}
