package schedule

import "time"

// Prev is the last planned instant strictly before the given one; false when there is none. It asks Next,
// some fifty times.
func Prev(s Schedule, before time.Time) (time.Time, bool) {
	next := func(after int64) (time.Time, bool) { // the instants after one of which a planned one comes before `before`
		at, ok := s.Next(time.UnixMilli(after))
		return at, ok && at.Before(before)
	}
	high := before.UnixMilli() // nothing comes after it that is before it
	reach := time.Hour.Milliseconds()
	var low int64
	for {
		low = max(high-reach, dawn*1000-1)
		if _, ok := next(low); ok {
			break
		}
		if low < dawn*1000 {
			return time.Time{}, false
		}
		reach *= 4
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; has(next, mid) {
			low = mid
		} else {
			high = mid
		}
	}
	at, ok := next(low)
	return at, ok
}

func has(next func(int64) (time.Time, bool), after int64) bool {
	_, ok := next(after)
	return ok
}

// Matches tells whether at is a planned instant.
func Matches(s Schedule, at time.Time) bool {
	next, ok := s.Next(at.Add(-time.Nanosecond))
	return ok && next.Equal(at)
}
