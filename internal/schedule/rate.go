package schedule

import (
	"fmt"
	"time"
)

// rate is due at anchor + k × every for k = 1, 2 …, in Unix milliseconds. The anchor itself is not due.
type rate struct {
	anchor, every int64
}

// rateHint is what a period may be.
const rateHint = "from 1s to ten years (3660d), in whole milliseconds; for once use at"

func parseEvery(spec Spec, anchor time.Time) (Schedule, error) {
	every := spec.Every
	switch {
	case every < time.Second:
		return nil, &Error{Field: "every", Message: fmt.Sprintf("%s is less than a second", Length(every)), Hint: rateHint}
	case every > MaxEvery:
		return nil, &Error{Field: "every", Message: fmt.Sprintf("%s is more than ten years", Length(every)), Hint: rateHint}
	case every%time.Millisecond != 0:
		return nil, &Error{Field: "every", Message: fmt.Sprintf("%s has a fraction of a millisecond", Length(every)), Hint: rateHint}
	}
	if spec.Phase < 0 || spec.Phase > every || spec.Phase%time.Millisecond != 0 {
		return nil, &Error{Field: "phase", Message: fmt.Sprintf("%s does not lie in a period of %s", Length(spec.Phase), Length(every)), Hint: "from 0s to one period, in whole milliseconds"}
	}
	if spec.Phase > 0 {
		return rate{anchor: (spec.Phase - every).Milliseconds(), every: every.Milliseconds()}, nil
	}
	return rate{anchor: anchor.UnixMilli(), every: every.Milliseconds()}, nil
}

// Next is by arithmetic: however long ago the anchor is.
func (r rate) Next(after time.Time) (time.Time, bool) {
	if after.Unix() >= dusk {
		return time.Time{}, false
	}
	next := time.UnixMilli(r.anchor + (r.passed(after)+1)*r.every).UTC()
	return next, next.Unix() < dusk
}

// passed is how many instants lie at or before t.
func (r rate) passed(t time.Time) int64 {
	return max((t.UnixMilli()-r.anchor)/r.every, 0)
}

// once is due at one instant.
type once time.Time

func parseAt(at time.Time) (Schedule, error) {
	if at.Unix() < 0 || at.Unix() >= dusk {
		return nil, &Error{Field: "at", Message: "the instant is out of range", Hint: "from the year 1970 to 9999"}
	}
	return once(at.UTC().Truncate(time.Millisecond)), nil // finer instants could not be told apart in the stores
}

// Next is the instant, until it has come.
func (o once) Next(after time.Time) (time.Time, bool) {
	return time.Time(o), after.Before(time.Time(o))
}
