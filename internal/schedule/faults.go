package schedule

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxFaults bounds what Faults and CalendarFaults tell of one schedule or calendar.
const maxFaults = 50

// Faults are all that Parse can tell is wrong with a schedule: behind a fault it goes on as if the field said something
// sound. What rests on a field that nobody can read is not judged.
func Faults(spec Spec, anchor time.Time) (all []*Error) {
	for len(all) < maxFaults {
		_, err := Parse(spec, anchor)
		bad, ok := errors.AsType[*Error](err)
		if !ok || slices.ContainsFunc(all, func(e *Error) bool { return e.Field == bad.Field }) {
			return all
		}
		if all = append(all, bad); !spec.heal(bad.Field) {
			return all
		}
	}
	return all
}

// heal replaces a faulty field; false: what is wrong is no single field.
func (s *Spec) heal(field string) bool {
	if s.End.IsZero() || !s.End.Before(s.Start) { // a sound range may hold no instant of what is made up here
		s.Start, s.End = time.Time{}, time.Time{}
	}
	field, _, _ = strings.Cut(field, "[")
	switch field, _, _ = strings.Cut(field, "."); field {
	case "cron":
		s.Cron, s.Dialect = "0 0 * * *", ""
	case "dialect":
		if s.Dialect = ""; s.Cron != "" {
			s.Cron = "0 0 * * *"
		}
	case "timeZone":
		if s.TimeZone = ""; strings.Contains(s.Cron, "TZ=") {
			s.Cron, s.Dialect = "0 0 * * *", ""
		}
	case "dst":
		s.DST = DST{}
	case "every":
		s.Every, s.Phase = time.Hour, 0
	case "delay":
		s.Delay = time.Hour
	case "at":
		s.At = time.Unix(0, 0)
	case "phase":
		s.Phase = 0
	case "jitter":
		s.Jitter = 0
	case "closed":
		s.Closed = ""
	case "calendars":
		s.Calendars, s.Closed = nil, ""
	case "endAt":
		s.Start, s.End = time.Time{}, time.Time{}
	default:
		return false
	}
	return true
}

// CalendarFaults are all that is wrong with a calendar.
func CalendarFaults(c Calendar) (all []*Error) {
	c.Weekly, c.Daily, c.Open, c.Closed = slices.Clone(c.Weekly), slices.Clone(c.Daily), slices.Clone(c.Open), slices.Clone(c.Closed)
	for len(all) < maxFaults {
		_, bad := c.compile()
		if bad == nil || slices.ContainsFunc(all, func(e *Error) bool { return e.Field == bad.Field }) {
			return all
		}
		if all = append(all, bad); !c.heal(bad.Field) {
			return all
		}
	}
	return all
}

// heal is that of a schedule.
func (c *Calendar) heal(field string) bool {
	if field == "timeZone" {
		c.TimeZone = ""
		return true
	}
	list, rest, _ := strings.Cut(field, "[")
	number, _, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	switch list {
	case "weekly":
		c.Weekly[i] = "MON"
	case "daily":
		c.Daily[i] = Window{From: "00:00", To: "24:00"}
	case "open":
		c.Open[i] = Dates{From: "2000-01-01"}
	case "closed":
		c.Closed[i] = Dates{From: "2000-01-01"}
	default:
		return false
	}
	return true
}
