package schedule

import (
	"fmt"
	"sort"
	"time"
)

// closing is a schedule whose instants keep to calendars.
type closing struct {
	Schedule
	zone      *time.Location // of days, for calendars that name none
	calendars []*opening
	policy    ClosedPolicy
}

// searched bounds the days that are looked at for an open one.
const searched = horizon * 366

// place is an instant on the calendar of a zone.
func place(zone *time.Location, at time.Time) (d day, second int) {
	local := at.In(zone)
	year, month, n := local.Date()
	return dayOf(year, month, n), local.Hour()*3600 + local.Minute()*60 + local.Second()
}

// begin is the first instant of a day; of one that a step of the clock left out, the first after it.
func begin(zone *time.Location, d day) time.Time {
	low := int64(d)*secondsPerDay - unsettled // no zone is further away from UTC
	n := sort.Search(2*unsettled, func(i int) bool {
		shown, _ := place(zone, time.Unix(low+int64(i), 0))
		return shown >= d
	})
	return time.Unix(low+int64(n), 0)
}

// closedBy names the calendar that closes a day, and why; "" when all are open.
func (c *closing) closedBy(at time.Time) (calendar, why string, open bool) {
	for _, o := range c.calendars {
		zone := c.zone
		if o.zone != nil {
			zone = o.zone
		}
		d, second := place(zone, at)
		if ok, name := o.isOpen(d); !ok {
			return o.name, name, false
		}
		if !o.inWindow(second) {
			return o.name, "outside of its hours", false
		}
	}
	return "", "", true
}

// dayOpen tells whether all calendars have a day open; calendars of other zones are asked about its noon.
func (c *closing) dayOpen(d day) bool {
	for _, o := range c.calendars {
		asked := d
		if o.zone != nil && o.zone != c.zone {
			year, month, n := d.date().Date()
			asked, _ = place(o.zone, time.Date(year, month, n, 12, 0, 0, 0, c.zone))
		}
		if ok, _ := o.isOpen(asked); !ok {
			return false
		}
	}
	return true
}

// hoursOpen tells whether a moved instant lies inside the daily windows.
func (c *closing) hoursOpen(at time.Time) bool {
	for _, o := range c.calendars {
		zone := c.zone
		if o.zone != nil {
			zone = o.zone
		}
		if _, second := place(zone, at); !o.inWindow(second) {
			return false
		}
	}
	return true
}

// Next walks the instants of the schedule, or for the policies that move them the open days.
func (c *closing) Next(after time.Time) (time.Time, bool) {
	if c.policy == ClosedSkip {
		return c.nextOpen(after)
	}
	d, _ := place(c.zone, after)
	for range searched {
		if c.dayOpen(d) {
			if at, ok := c.firstOn(d, after); ok {
				return at, true
			}
		}
		jump, ok := c.ahead(d)
		if !ok {
			return time.Time{}, false
		}
		d = jump
	}
	return time.Time{}, false
}

// nextOpen is for skip: instants of closed days are left out.
func (c *closing) nextOpen(after time.Time) (time.Time, bool) {
	for range searched * 2 {
		at, ok := c.Schedule.Next(after)
		if !ok {
			return time.Time{}, false
		}
		if _, _, open := c.closedBy(at); open {
			return at, true
		}
		after = at
		if d, _ := place(c.zone, at); !c.dayOpen(d) { // the whole day is closed: on to the next
			after = begin(c.zone, d+1).Add(-time.Nanosecond)
			if after.Before(at) {
				after = at
			}
		}
	}
	return time.Time{}, false
}

// ahead is the next day to look at behind d: far ahead when the schedule has nothing for a long time. What falls on a
// closed d may still move to the next open day.
func (c *closing) ahead(d day) (day, bool) {
	if c.policy == ClosedNext && !c.dayOpen(d) {
		return d + 1, true
	}
	at, ok := c.Schedule.Next(begin(c.zone, d+1).Add(-time.Nanosecond))
	if !ok {
		return 0, false
	}
	next, _ := place(c.zone, at)
	if c.policy == ClosedPrevious { // the open day before it, however many closed ones lie between
		for next--; next > d && !c.dayOpen(next); {
			next--
		}
	}
	return max(d+1, next), true
}

// firstOn is the first instant after `after` on the open day d: of its own, or moved there from the closed days next to it.
func (c *closing) firstOn(d day, after time.Time) (best time.Time, found bool) {
	take := func(source day) {
		low := begin(c.zone, source).Add(-time.Nanosecond)
		if same := c.moved(after, source).Add(-time.Second); after.After(begin(c.zone, d)) && same.After(low) {
			low = same // what comes earlier in its day moves to what is over
		}
		for {
			at, ok := c.Schedule.Next(low)
			if !ok {
				return
			}
			if on, _ := place(c.zone, at); on != source {
				return
			}
			if moved := c.moved(at, d); moved.After(after) && c.hoursOpen(moved) {
				if !found || moved.Before(best) {
					best, found = moved, true
				}
				return // later ones of this day come later
			}
			low = at
		}
	}
	take(d)
	for source := range c.sources(d) {
		take(source)
	}
	return best, found
}

// sources are the closed days next to an open one whose instants move there.
func (c *closing) sources(d day) func(yield func(day) bool) {
	step := day(-1)
	if c.policy == ClosedPrevious {
		step = 1
	}
	return func(yield func(day) bool) {
		for source := d + step; source > d-searched && source < d+searched && !c.dayOpen(source); source += step {
			if !yield(source) {
				return
			}
		}
	}
}

// moved is the same time of day on d. A time that d does not have moves on by the length of the step.
func (c *closing) moved(at time.Time, d day) time.Time {
	if on, _ := place(c.zone, at); on == d {
		return at
	}
	local := at.In(c.zone)
	year, month, n := d.date().Date()
	return time.Date(year, month, n, local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), c.zone).UTC()
}

// note says what calendars did to an instant that the schedule yields.
func (c *closing) note(at time.Time) string {
	if Matches(c.Schedule, at) || c.policy == ClosedSkip {
		return Note(c.Schedule, at)
	}
	on, _ := place(c.zone, at)
	for source := range c.sources(on) {
		if from := c.moved(at, source); Matches(c.Schedule, from) {
			calendar, why, _ := c.closedBy(from)
			return fmt.Sprintf("moved from %s: %s is closed%s", from.In(c.zone).Format(time.DateOnly), calendar, bracket(why))
		}
	}
	return ""
}

func bracket(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}
