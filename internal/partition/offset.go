package partition

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/store"
)

const (
	measureEvery = 10 * time.Second
	measureTries = 5
	measureGood  = 2 * time.Millisecond // a round trip that needs no second try
	clockAlarm   = 5 * time.Second
)

// Clock is how this server's wall clock stands to the database's.
type Clock struct {
	Measured  bool          // false: the store has no clock of its own, or was not reached yet
	Ahead     time.Duration // of this server's, less half of the round trip; negative: it is behind
	RoundTrip time.Duration // of the question that this comes from: the error is at most half of it
	Alarm     bool          // more than 5 s
}

// Clock tells it.
func (n *Node) Clock() Clock { return n.offset.state() }

// Now is the wall time by which this node plans: the database's as far as it is known, or Config.Wall of a node
// whose store has no clock.
func (n *Node) Now() time.Time {
	if at, ok := n.offset.now(); ok {
		return at
	}
	return n.cfg.Wall()
}

// offset follows the database's clock (R9). Between two measurements the holder's clock carries it on, so that what is
// done to this server's wall clock moves nothing.
type offset struct {
	n    *Node
	keep store.Timekeeper // nil: there is none

	mu    sync.Mutex
	base  time.Time     // the database's at the instant at, at least
	at    time.Duration // on the holder's clock; the end of the round trip
	clock Clock
	due   time.Duration // mono of the next measurement
}

func newOffset(n *Node) *offset {
	o := &offset{n: n}
	if !n.cfg.Sole { // the file of a sole server has its clock
		o.keep, _ = n.cfg.Store.(store.Timekeeper)
	}
	return o
}

func (o *offset) state() Clock {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clock
}

func (o *offset) now() (time.Time, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.base.Add(o.n.clock.Now() - o.at), o.clock.Measured
}

// measure asks the database for its time when that is due. Its answer was true at some instant of the round trip: at the end of
// it the database shows at least that, which is the lower bound that is used (offset − half the round trip), so that no
// planned instant comes early. The shortest of several round trips counts. An error means that nothing is known yet.
func (o *offset) measure(ctx context.Context) error {
	if o.keep == nil || o.n.mono() < o.due {
		return nil
	}
	best := time.Duration(-1)
	var base, local time.Time
	var at time.Duration
	begun := o.n.clock.Now()
	for range measureTries {
		before := o.n.clock.Now()
		t, err := o.keep.DatabaseTime(ctx)
		after := o.n.clock.Now()
		if err != nil {
			return o.failed(err)
		}
		if trip := after - before; best < 0 || trip < best {
			best, base, at, local = trip, t.Round(0), after, o.n.cfg.Wall().Round(0)
			if o.n.cfg.Switches.ClockUpperBound {
				base = base.Add(trip)
			}
		}
		if best <= measureGood || after-begun >= o.n.cfg.Lease.OwnerTTL/10 { // a slow database: the look that this is part of must end
			break
		}
	}
	o.learn(base, at, Clock{Measured: true, Ahead: local.Sub(base) - best/2, RoundTrip: best})
	return nil
}

// failed: with an old measurement the holder's clock goes on.
func (o *offset) failed(err error) error {
	if !o.state().Measured {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	o.n.cfg.Logger.Warn("the database's clock could not be read; going on by what it showed before, reading it again at the next look", "err", err)
	return nil
}

func (o *offset) learn(base time.Time, at time.Duration, c Clock) {
	c.Alarm = c.Ahead.Abs() > clockAlarm
	o.mu.Lock()
	was := o.clock
	o.base, o.at, o.clock, o.due = base, at, c, o.n.mono()+measureEvery
	o.mu.Unlock()
	switch {
	case c.Alarm && !was.Alarm:
		o.n.cfg.Logger.Error("this server's wall clock and the database's differ by more than 5 s; jobs are planned by the database's, the clocks should be set right",
			"ahead", c.Ahead, "roundTrip", c.RoundTrip)
	case was.Alarm && !c.Alarm:
		o.n.cfg.Logger.Info("this server's wall clock and the database's agree again", "ahead", c.Ahead)
	}
}
