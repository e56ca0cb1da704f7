package schedule

import (
	"math"
	"time"
)

// cron is an expression read on the wall clocks of a time zone.
type cron struct {
	expr *Expression
	zone *time.Location
}

// horizon bounds the search for the next instant, in years. The rarest day is a 29 February on a given
// weekday, which can be 40 years away.
const horizon = 100

// unsettled is longer than any two offsets of a zone differ: a reading this far behind a transition is
// neither skipped nor repeated by it. (The largest step known is Apia's lost day of 2011.)
const unsettled = 48 * 60 * 60

// Planned instants lie in [dawn, dusk), in Unix seconds: RFC 3339 writes the years up to 9999.
var (
	dawn = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	dusk = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).Unix()
)

// span is a stretch of time with one offset from UTC: a wall clock runs evenly in it. Neighbours may have
// the same offset. start and end are Unix seconds, end excluded; unbounded ones are the least and greatest
// int64.
type span struct {
	start, end int64
	offset     int64
}

func spanAt(zone *time.Location, unix int64) span {
	t := time.Unix(unix, 0).In(zone)
	start, end := t.ZoneBounds()
	_, offset := t.Zone()
	s := span{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	if !start.IsZero() {
		s.start = start.Unix()
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= unix {
		// Beyond a zone's table (2037) Go ends spans with the year, and takes every year for 365 days: on
		// the last day of a leap year it names an end that has passed.
		s.end = (unix/secondsPerDay + 1) * secondsPerDay
	}
	return s
}

// shownBefore is one more than the latest reading that clocks of the zone showed before s began. It is
// above s.start + s.offset after a step back (readings repeat), below it after a step forward (readings
// were skipped).
func (s span) shownBefore(zone *time.Location) wall {
	shown := wall(math.MinInt64)
	for b := s; b.start != math.MinInt64 && b.start > s.start-unsettled; {
		b = spanAt(zone, b.start-1)
		shown = max(shown, wall(b.end+b.offset))
	}
	return shown
}

// Next follows two rules. An interval expression (minute or hour holds * or /) fires at every matching
// reading that a clock shows: skipped ones do not fire, repeated ones fire twice. Any other expression
// names times of day: it fires once for each reading, at the first time it is shown; readings that a step
// forward skipped fire together at the first instant after the step.
func (c *cron) Next(after time.Time) (time.Time, bool) {
	if after.Unix() >= dusk {
		return time.Time{}, false
	}
	from := max(after.Unix()+1, dawn) // readings are whole seconds
	stop := min(time.Unix(from, 0).AddDate(horizon, 0, 0).Unix(), dusk)
	for from < stop {
		s := spanAt(c.zone, from)
		if w, ok := c.expr.first(c.lowerBound(s, from), wall(min(s.end, stop)+s.offset)); ok {
			// a skipped reading lies, on this span's clock, before its start
			return time.Unix(max(int64(w)-s.offset, s.start), 0).UTC(), true
		}
		from = s.end
	}
	return time.Time{}, false
}

// lowerBound is the first reading that may fire at from or later in s.
func (c *cron) lowerBound(s span, from int64) wall {
	reading := wall(from + s.offset)
	if c.expr.interval || s.start == math.MinInt64 || from-s.start > unsettled {
		return reading
	}
	shown := s.shownBefore(c.zone)
	if from == s.start {
		return shown
	}
	return max(reading, shown)
}
