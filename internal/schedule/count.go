package schedule

import "time"

// Count tells how many planned instants lie in (after, until] and which is the last of them (the zero
// time when there is none). A fixed rate is counted by arithmetic, however many there are. Others are
// walked, at most limit instants: done is false when there are more, and the count goes on from last.
func Count(s Schedule, after, until time.Time, limit int) (n int, last time.Time, done bool) {
	if w, ok := s.(window); ok {
		if after.Before(w.start) {
			after = w.start.Add(-time.Nanosecond)
		}
		if !w.end.IsZero() && until.After(w.end) {
			until = w.end
		}
		return Count(w.Schedule, after, until, limit)
	}
	if r, ok := s.(rate); ok {
		before, upTo := r.passed(after), r.passed(until)
		if upTo <= before {
			return 0, time.Time{}, true
		}
		return int(upTo - before), time.UnixMilli(r.anchor + upTo*r.every).UTC(), true
	}
	for {
		next, ok := s.Next(after)
		if !ok || next.After(until) {
			return n, last, true
		}
		if n >= limit {
			return n, last, false
		}
		n, last, after = n+1, next, next
	}
}
