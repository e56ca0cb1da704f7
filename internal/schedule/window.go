package schedule

import (
	"hash/fnv"
	"time"
)

// MaxJitter bounds the spread of instants.
const MaxJitter = time.Hour

// window is a schedule between two instants, both included; a zero one is no bound.
type window struct {
	Schedule
	start, end time.Time
}

// Next is that of the schedule, inside the window.
func (w window) Next(after time.Time) (time.Time, bool) {
	if !w.start.IsZero() && after.Before(w.start) {
		after = w.start.Add(-time.Nanosecond)
	}
	at, ok := w.Schedule.Next(after)
	if !ok || !w.end.IsZero() && at.After(w.end) {
		return time.Time{}, false
	}
	return at, true
}

// fires tells whether any instant lies in the window. Next does not look further than a horizon, so it is asked from both ends.
func (w window) fires() bool {
	from := w.start
	if from.IsZero() {
		from = time.Unix(0, 0)
	}
	if _, ok := w.Next(from.Add(-time.Nanosecond)); ok || w.end.IsZero() {
		return ok
	}
	_, ok := w.Next(w.end.AddDate(1-horizon, 0, 0))
	return ok
}

// jittered moves each instant later by a part of most that the seed and the instant choose: the same whenever
// and wherever it is asked.
type jittered struct {
	Schedule
	seed string
	most int64 // ms
}

// delay of the planned instant at, in [0, most].
func (j jittered) delay(at time.Time) time.Duration {
	h := fnv.New64a()
	var b [8]byte
	for i, ms := 0, at.UnixMilli(); i < 8; i++ {
		b[i] = byte(ms >> (8 * i))
	}
	_, _ = h.Write([]byte(j.seed))
	_, _ = h.Write(b[:])
	return time.Duration(mix(h.Sum64())%uint64(j.most+1)) * time.Millisecond
}

// Next looks at every instant that can be moved behind after and before the first that was found.
func (j jittered) Next(after time.Time) (best time.Time, found bool) {
	low := after.Add(-time.Duration(j.most+1) * time.Millisecond)
	for {
		at, ok := j.Schedule.Next(low)
		if !ok || found && !at.Before(best) {
			return best, found
		}
		if moved := at.Add(j.delay(at)); moved.After(after) && (!found || moved.Before(best)) {
			best, found = moved, true
		}
		low = at
	}
}

// Nominal is the instant that a spread one was moved from; at itself when it was not.
func Nominal(s Schedule, at time.Time) time.Time {
	w, windowed := s.(window)
	if windowed {
		s = w.Schedule
	}
	j, ok := s.(jittered)
	if !ok {
		return at
	}
	low := at.Add(-time.Duration(j.most+1) * time.Millisecond)
	for {
		from, ok := j.Schedule.Next(low)
		if !ok || from.After(at) {
			return at
		}
		if from.Add(j.delay(from)).Equal(at) {
			return from
		}
		low = from
	}
}
