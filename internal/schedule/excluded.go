package schedule

import (
	"strings"
	"time"
)

// Horizon is how many years ahead a search for the next instant looks at most.
const Horizon = horizon

// Exclusion is an instant that a schedule does not yield because a calendar is closed.
type Exclusion struct {
	At  time.Time
	Why string // such as "excluded by calendar cn (National Day)"
}

// Excluded are the instants behind after, up to and with until, that the calendars of s leave out; at most so many, more: there
// are others. What they move is no exclusion: Note tells of it.
func Excluded(s Schedule, after, until time.Time, most int) (all []Exclusion, more bool) {
	c, ok := s.(*closing)
	if !ok || c.policy != ClosedSkip {
		return nil, false
	}
	for at, is := c.Schedule.Next(after); is && !at.After(until); at, is = c.Schedule.Next(at) {
		calendar, why := c.closedBy(at)
		if calendar == "" {
			continue
		}
		if len(all) == most {
			return all, true
		}
		all = append(all, Exclusion{at, "excluded by calendar " + calendar + bracket(why)})
	}
	return all, false
}

// Silence says why a schedule has no instant in some direction; has asks one, made of parts of s, whether it has any there.
func Silence(s Schedule, has func(Schedule) bool) string {
	if by := AllClosed(s, has); by != "" {
		return by
	}
	return "the expression names none"
}

// AllClosed names the calendars that leave a schedule no instant in some direction, as Silence asks for it; "": it is not they.
func AllClosed(s Schedule, has func(Schedule) bool) string {
	switch outer := s.(type) {
	case window:
		return AllClosed(outer.Schedule, has)
	case jittered:
		return AllClosed(outer.Schedule, has)
	}
	c, ok := s.(*closing)
	if !ok || has(c) || !has(c.Schedule) {
		return ""
	}
	var all, shut []string
	for _, o := range c.calendars {
		alone := *c
		alone.calendars = []*opening{o}
		if all = append(all, o.name); !has(&alone) {
			shut = append(shut, o.name)
		}
	}
	switch len(shut) {
	case 0:
		return "calendars " + strings.Join(all, ", ") + " together close all of them"
	case 1:
		return "calendar " + shut[0] + " closes all of them"
	}
	return "calendars " + strings.Join(shut, ", ") + " close all of them, each by itself"
}
