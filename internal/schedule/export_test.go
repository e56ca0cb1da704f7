package schedule

import "time"

// Counting is a schedule with calendars whose questions to what lies under them are counted.
func Counting(s Schedule, n *int) Schedule {
	c := *s.(*closing)
	c.Schedule = counting{c.Schedule, n}
	return &c
}

type counting struct {
	Schedule
	n *int
}

func (c counting) Next(after time.Time) (time.Time, bool) {
	*c.n++
	return c.Schedule.Next(after)
}
