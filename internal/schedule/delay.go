package schedule

import (
	"fmt"
	"time"
)

// delayed is due a fixed time after the last run has ended. What comes when is not known from the schedule alone.
type delayed struct{ delay time.Duration }

// Next is never known.
func (delayed) Next(time.Time) (time.Time, bool) { return time.Time{}, false }

// DelayOf is the time from the end of a run to the next one; false for a schedule that has instants of its own. Whoever
// keeps the cursor of such a schedule gives it its instants: Next has none.
func DelayOf(s Schedule) (time.Duration, bool) {
	d, is := s.(delayed)
	return d.delay, is
}

func parseDelay(spec Spec) (Schedule, error) {
	switch {
	case spec.Delay < time.Second || spec.Delay > MaxEvery || spec.Delay%time.Millisecond != 0:
		return nil, &Error{Field: "delay", Message: fmt.Sprintf("%s is no delay", Length(spec.Delay)), Hint: "from 1s to ten years, in whole milliseconds"}
	case len(spec.Calendars) > 0:
		return nil, &Error{Field: "calendars", Message: "a delay counts from the end of the last run, whatever day it is", Hint: "use cron or every for instants that keep to calendars"}
	case spec.Jitter != 0:
		return nil, &Error{Field: "jitter", Message: "a delay counts from the end of the last run, which spreads by itself", Hint: "leave jitter out"}
	case !spec.Start.IsZero() || !spec.End.IsZero():
		return nil, &Error{Message: "a delay has no startAt and no endAt: it counts from the end of the last run", Hint: "pause the job, or use every"}
	}
	return delayed{spec.Delay}, nil
}
