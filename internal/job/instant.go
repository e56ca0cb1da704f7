package job

import "time"

// Instant is a wall-clock instant in Unix milliseconds; 0 means "none". The stores keep it as it is,
// the engine compares it as an integer, and no time zone or monotonic reading can hide in it.
type Instant int64

// InstantOf cuts t to whole milliseconds. The zero time is no instant.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMilli())
}

// Time is the instant in UTC; the zero time for "none".
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(i)).UTC()
}

// Add moves the instant by d, cut to whole milliseconds.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Milliseconds()) }

// Sub is the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i-j) * time.Millisecond }

// String is RFC 3339 with milliseconds, or "-".
func (i Instant) String() string {
	if i == 0 {
		return "-"
	}
	return i.Time().Format("2006-01-02T15:04:05.000Z07:00")
}
