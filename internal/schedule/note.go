package schedule

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Note says what a step of the clock, a calendar or the spread did to the planned instant at: moved, doubled, or
// dropped others just before it. "" when nothing. It is for previews; at must be one that s yields.
func Note(s Schedule, at time.Time) string {
	switch s := s.(type) {
	case window:
		return Note(s.Schedule, at)
	case jittered:
		from := Nominal(s, at)
		note := Note(s.Schedule, from)
		if d := at.Sub(from); d > 0 {
			note = strings.TrimSuffix(fmt.Sprintf("%s after %s, by its spread; %s", Length(d), wall(from.In(Zone(s)).Unix()+offsetAt(Zone(s), from)), note), "; ")
		}
		return note
	case *closing:
		return s.note(at)
	case *cron:
		return s.note(at)
	default:
		return ""
	}
}

func offsetAt(zone *time.Location, at time.Time) int64 {
	_, offset := at.In(zone).Zone()
	return int64(offset)
}

func (c *cron) note(at time.Time) string {
	now := spanAt(c.zone, at.Unix())
	reading := wall(at.Unix() + now.offset)
	if now.start != math.MinInt64 {
		shown := now.shownBefore(c.zone)
		if reading < shown {
			if !c.expr.interval && c.dst.Overlap == OverlapLast {
				return fmt.Sprintf("%s comes twice: fires the last time only", reading)
			}
			return fmt.Sprintf("second %s: the clock went back", reading)
		}
		if note := c.noteSkipped(shown, now, at); note != "" {
			return note
		}
	}
	if now.end != math.MaxInt64 && reading >= now.shownAgain(c.zone) {
		if c.expr.interval || c.dst.Overlap == OverlapBoth {
			return fmt.Sprintf("first %s: the clock goes back and it comes again", reading)
		}
		return fmt.Sprintf("%s comes twice: fires the first time only", reading)
	}
	return ""
}

// noteSkipped looks at the readings that the step to span now skipped, if at comes of them or is the first instant
// behind them.
func (c *cron) noteSkipped(shown wall, now span, at time.Time) string {
	begin := wall(now.start + now.offset)
	skipped, ok := c.expr.first(shown, begin)
	if !ok {
		return ""
	}
	reading := wall(at.Unix() + now.offset)
	switch {
	case c.drops():
		if first, _ := c.Next(time.Unix(now.start-1, 0)); !first.Equal(at) {
			return ""
		}
		return skippedText("dropped before it", skipped, shown, begin)
	case c.dst.Gap == GapShift:
		from := reading - (begin - shown)
		if w, ok := c.expr.first(from, begin); !ok || w != from || from < shown {
			return ""
		}
		return skippedText("moved", from, shown, begin)
	case at.Unix() == now.start:
		return skippedText("moved", skipped, shown, begin)
	}
	return ""
}

// String is the reading as a person says it.
func (w wall) String() string {
	t := time.Unix(int64(w), 0).UTC()
	if t.Second() == 0 {
		return t.Format("15:04")
	}
	return t.Format("15:04:05")
}
