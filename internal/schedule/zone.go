package schedule

import (
	"math"
	"time"
)

// cron is an expression read on the wall clocks of a time zone.
type cron struct {
	expr *Expression
	zone *time.Location
	dst  DST // filled
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

// shownAgain is the earliest reading that clocks of the zone show after s has ended: from there on, what s shows comes
// again. It is below s.end + s.offset before a step back only.
func (s span) shownAgain(zone *time.Location) wall {
	again := wall(math.MaxInt64)
	for b := s; b.end != math.MaxInt64 && b.end < s.end+unsettled; {
		b = spanAt(zone, b.end)
		again = min(again, wall(b.start+b.offset))
	}
	return again
}

// Next follows two rules. An interval expression (minute or hour holds * or /) fires at every matching
// reading that a clock shows: skipped ones do not fire, repeated ones fire twice. Any other expression
// names times of day: what steps of the clock do to them, its DST policy says.
func (c *cron) Next(after time.Time) (time.Time, bool) {
	if after.Unix() >= dusk {
		return time.Time{}, false
	}
	from := max(after.Unix()+1, dawn) // readings are whole seconds
	stop := min(time.Unix(from, 0).AddDate(horizon, 0, 0).Unix(), dusk)
	for from < stop {
		s := spanAt(c.zone, from)
		end := wall(min(s.end, stop) + s.offset)
		var w wall
		var ok bool
		if c.expr.interval {
			w, ok = c.expr.first(wall(from+s.offset), end)
		} else {
			w, ok = c.timeOfDay(s, from, end)
		}
		if ok {
			return time.Unix(int64(w)-s.offset, 0).UTC(), true
		}
		from = s.end
	}
	return time.Time{}, false
}

// timeOfDay is the first reading of s, from the instant from on and below end, at which times of day fire.
func (c *cron) timeOfDay(s span, from int64, end wall) (wall, bool) {
	reading, begin := wall(from+s.offset), wall(s.start+s.offset)
	fresh := s.start == math.MinInt64 || from-s.start > unsettled // no step back or forward still matters
	shown := begin
	if !fresh {
		shown = s.shownBefore(c.zone)
	}
	low := reading
	switch c.dst.Overlap {
	case OverlapLast:
		if s.end != math.MaxInt64 {
			end = min(end, s.shownAgain(c.zone))
		}
	case OverlapFirst:
		if !fresh {
			low = max(low, shown)
		}
	}
	w, ok := c.expr.first(low, end)
	if fresh || shown >= begin {
		return w, ok
	}
	if late, moved := c.skipped(shown, begin, reading); moved && (!ok || late < w) {
		return late, late < end
	}
	return w, ok
}

// skipped is the first reading, not before reading, at which a time of day fires that the step from shown to
// begin has skipped.
func (c *cron) skipped(shown, begin, reading wall) (wall, bool) {
	switch c.dst.Gap {
	case GapNext:
		if reading > begin {
			return 0, false
		}
		_, ok := c.expr.first(shown, begin)
		return begin, ok
	case GapShift:
		step := begin - shown
		w, ok := c.expr.first(max(shown, reading-step), begin)
		return w + step, ok
	}
	return 0, false
}
