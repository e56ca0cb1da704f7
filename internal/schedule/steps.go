package schedule

import (
	"fmt"
	"math"
	"time"
)

// Step is a step forward of the clocks of a zone that skipped a reading.
type Step struct {
	At       time.Time // the first instant behind it
	Reading  string    // that was skipped, such as 02:30
	From, To string    // what the clocks went from and to
}

// Readings are the instants at which the clocks of a zone show a reading, which is given as if they stood in UTC: mostly one. None
// when a step skipped it.
func Readings(zone *time.Location, reading time.Time) (at []time.Time, skipped *Step) {
	w := wall(reading.Unix())
	for s := spanAt(zone, int64(w)-unsettled); ; s = spanAt(zone, s.end) {
		if unix := int64(w) - s.offset; s.start <= unix && unix < s.end {
			at = append(at, time.Unix(unix, int64(reading.Nanosecond())).UTC())
		}
		if s.end > int64(w)+unsettled {
			break
		}
	}
	if len(at) > 0 {
		return at, nil
	}
	_, unix := shownAt(zone, w)
	s := spanAt(zone, unix)
	from, to := s.shownBefore(zone), wall(s.start+s.offset)
	return nil, &Step{time.Unix(unix, 0).UTC(), w.beside(from, to), from.beside(to, to), to.beside(from, from)}
}

// Instead is the instant at which a schedule fires for a reading that a step forward skipped, without calendars and spread; the
// zero time: it drops the reading. named: the schedule has the reading at all.
func Instead(s Schedule, reading time.Time) (at time.Time, named bool) {
	c, ok := base(s).(*cron)
	if !ok {
		return time.Time{}, false
	}
	w := wall(reading.Unix())
	if _, named = c.expr.first(w, w+1); !named || c.drops() {
		return time.Time{}, named
	}
	late, step := shownAt(c.zone, w)
	if c.dst.Gap == GapShift {
		return time.Unix(late, 0).UTC(), true
	}
	return time.Unix(step, 0).UTC(), true
}

// drops tells whether what a step forward skips does not fire.
func (c *cron) drops() bool { return c.expr.interval || c.dst.Gap == GapSkip }

// Dropped says what a schedule does not fire because of a step forward at an instant; "": nothing.
func Dropped(s Schedule, at time.Time) string {
	c, ok := base(s).(*cron)
	if !ok || !c.drops() {
		return ""
	}
	now := spanAt(c.zone, at.Unix())
	if now.start != at.Unix() {
		return ""
	}
	shown, begin := now.shownBefore(c.zone), wall(now.start+now.offset)
	if shown >= begin {
		return ""
	}
	skipped, ok := c.expr.first(shown, begin)
	if !ok {
		return ""
	}
	return skippedText("dropped", skipped, shown, begin)
}

// DroppedBetween are the steps forward behind after, up to and with until, that drop instants of a schedule; at most so many.
func DroppedBetween(s Schedule, after, until time.Time, most int) (all []Exclusion) {
	c, ok := base(s).(*cron)
	if !ok || !c.drops() {
		return nil
	}
	for x := spanAt(c.zone, after.Unix()); x.end != math.MaxInt64 && x.end <= until.Unix() && len(all) < most; x = spanAt(c.zone, x.end) {
		at := time.Unix(x.end, 0).UTC()
		if why := Dropped(s, at); why != "" {
			all = append(all, Exclusion{at, why})
		}
	}
	return all
}

// skippedText says what became of a reading that a step from shown to begin skipped.
func skippedText(what string, skipped, shown, begin wall) string {
	return fmt.Sprintf("%s: %s does not exist, the clock goes from %s to %s", what, skipped.beside(shown, begin), shown.beside(begin, begin), begin.beside(shown, shown))
}

// beside is the reading, with its date when others that are said with it are of another day.
func (w wall) beside(others ...wall) string {
	for _, o := range others {
		if o.day() != w.day() {
			return time.Unix(int64(w), 0).UTC().Format(time.DateOnly) + "T" + w.String()
		}
	}
	return w.String()
}

func (w wall) day() string { return time.Unix(int64(w), 0).UTC().Format(time.DateOnly) }
