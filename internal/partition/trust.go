package partition

import (
	"sync/atomic"
	"time"

	"github.com/taktsched/takt/internal/boottime"
)

// trust is until when an owner may believe that it still is one. The keeper moves it after each renewal;
// the runner and every call compare it after reading a request and again before answering (R1). It runs
// on a clock that counts suspension, for it is a holder's (R7).
type trust struct {
	clock    *boottime.Clock
	deadline atomic.Int64 // on clock, in ns
	blind    bool         // Switches.NoDeadline
}

func newTrust(clock *boottime.Clock, deadline time.Duration, blind bool) *trust {
	t := &trust{clock: clock, blind: blind}
	t.deadline.Store(int64(deadline))
	return t
}

// extend moves the deadline forward, never back.
func (t *trust) extend(deadline time.Duration) {
	for {
		old := t.deadline.Load()
		if int64(deadline) <= old || t.deadline.CompareAndSwap(old, int64(deadline)) {
			return
		}
	}
}

// left is what remains; expired means now ≥ deadline.
func (t *trust) left() time.Duration {
	if t.blind {
		return time.Hour
	}
	return time.Duration(t.deadline.Load()) - t.clock.Now()
}

func (t *trust) holds() bool { return t.left() > 0 }
