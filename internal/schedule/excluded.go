package schedule

import "time"

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
