package takt

import "time"

// The holder's side of a lease (DESIGN R7), as arithmetic on one clock that also counts suspension.
//
// The judge ends a lease TTL after it took in the call that its answer names. That call left here
// before it arrived there, so that the instant before it was sent + TTL is never later than the judge's
// end, however slow the way. The margin is what a handler gets to stop in.

// lease is the holder's deadline of one attempt. Written and read under the worker's lock.
type lease struct {
	end time.Duration // the first instant that is not the holder's any more
}

// terms are fixed for a session when it opens.
type terms struct {
	ttl    time.Duration
	margin time.Duration
	switches
}

// switches remove one part of the holder's rules each, so that a test can show that the part is
// needed. All false in production; only tests of this package set them.
type switches struct {
	noMargin            bool // the holder works up to the judge's deadline
	deadlineFromReceipt bool // the deadline counts from the answer's receipt, not from the named call
	timerOnly           bool // the deadline is not compared before sends and in Task calls
	anyEpoch            bool // answers with a lower epoch count
	startsTwice         bool // an assignment that is offered again is started again
}

// holderEnd is the end of a lease whose deadline the judge set by a call that was sent at the instant
// sent; received is now, which never counts.
func (t terms) holderEnd(sent, received time.Duration) time.Duration {
	if t.deadlineFromReceipt {
		sent = received
	}
	if t.noMargin {
		return sent + t.ttl
	}
	return sent + t.ttl - t.margin
}

// over tells whether the lease has ended: expired means now ≥ end.
func (l *lease) over(now time.Duration) bool { return now >= l.end }

// extend moves the end, never back.
func (l *lease) extend(end time.Duration) { l.end = max(l.end, end) }

// sends numbers the calls of a session and remembers when each was about to leave. An answer that
// names a call which is not remembered any more names one older than a whole lease.
type sends struct {
	keep  time.Duration
	first int64 // number of at[0]
	at    []time.Duration
}

// next numbers a call that is about to be sent at now. Numbers rise from 1.
func (s *sends) next(now time.Duration) int64 {
	old := 0
	for old < len(s.at) && s.at[old]+s.keep <= now {
		old++
	}
	if s.first == 0 {
		s.first = 1
	}
	s.first += int64(old)
	s.at = append(s.at[old:], now)
	return s.first + int64(len(s.at)) - 1
}

// sent is the instant before call was sent; false when it is unknown or older than a whole lease.
func (s *sends) sent(call int64) (time.Duration, bool) {
	i := call - s.first
	if call < 1 || i < 0 || i >= int64(len(s.at)) {
		return 0, false
	}
	return s.at[i], true
}
