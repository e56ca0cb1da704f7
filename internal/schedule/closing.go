package schedule

import (
	"fmt"
	"math"
	"slices"
	"strings"
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

// patience bounds the instants that one search asks the schedule for: when that many in a row are closed, none is taken
// to be open. It is above what a daily schedule has in a horizon; a closed hour or night counts as one.
const patience = 2 * searched

// maxShift bounds how many days an instant moves: each day from which one may have come is asked for each instant.
const maxShift = 400

// place is an instant on the calendar of a zone.
func place(zone *time.Location, at time.Time) (d day, second int) {
	local := at.In(zone)
	year, month, n := local.Date()
	return dayOf(year, month, n), local.Hour()*3600 + local.Minute()*60 + local.Second()
}

// shownAt is when clocks of a zone show a reading for the first time. One that a step forward skipped is shown never:
// that is late by the length of the step, and skipped to is the first instant after it.
func shownAt(zone *time.Location, w wall) (at, skippedTo int64) {
	s := spanAt(zone, int64(w)-unsettled) // no zone is further away from UTC
	at = int64(w) - s.offset
	for at >= s.end {
		before := s.offset
		s = spanAt(zone, s.end)
		if at = int64(w) - s.offset; at < s.start {
			return int64(w) - before, s.start
		}
	}
	return at, at
}

// begin is the first instant of a day; of one that a step of the clock left out, the first after it.
func begin(zone *time.Location, d day) time.Time {
	_, first := shownAt(zone, wall(d)*secondsPerDay)
	return time.Unix(first, 0)
}

// moved is the same time of day on d, the first of two. A time that d does not have moves on by the length of the step.
func (c *closing) moved(at time.Time, d day) time.Time {
	on, second := place(c.zone, at)
	if on == d {
		return at
	}
	unix, _ := shownAt(c.zone, wall(d)*secondsPerDay+wall(second))
	return time.Unix(unix, int64(at.Nanosecond())).UTC()
}

// zoneOf is the zone of a calendar's dates and hours.
func (c *closing) zoneOf(o *opening) *time.Location {
	if o.zone != nil {
		return o.zone
	}
	return c.zone
}

// closedBy names the calendar that closes an instant, and why.
func (c *closing) closedBy(at time.Time) (calendar, why string) {
	for _, o := range c.calendars {
		d, second := place(c.zoneOf(o), at)
		if ok, name := o.isOpen(d); !ok {
			return o.name, name
		}
		if !o.inWindow(second) {
			return o.name, "outside of its hours"
		}
	}
	return "", ""
}

// ClosedBy names the calendar of a schedule that closes an instant, which is one before the spread, and why; "": none does.
func ClosedBy(s Schedule, at time.Time) (calendar, why string) {
	switch s := s.(type) {
	case window:
		return ClosedBy(s.Schedule, at)
	case jittered:
		return ClosedBy(s.Schedule, at)
	case *closing:
		return s.closedBy(at)
	default:
		return "", ""
	}
}

// MovedTo tells where the instant of a closed day moves, by the policy next or previous; false: nowhere. at is one before the spread.
func MovedTo(s Schedule, at time.Time) (time.Time, bool) {
	switch s := s.(type) {
	case window:
		return MovedTo(s.Schedule, at)
	case jittered:
		return MovedTo(s.Schedule, at)
	case *closing:
		return s.movedTo(at)
	default:
		return time.Time{}, false
	}
}

func (c *closing) movedTo(at time.Time) (time.Time, bool) {
	from, _ := place(c.zone, at)
	if c.policy == ClosedSkip || c.dayOpen(from) {
		return time.Time{}, false
	}
	step := day(1)
	if c.policy == ClosedPrevious {
		step = -1
	}
	for to := from + step; to >= from-maxShift && to <= from+maxShift; to += step {
		if c.dayOpen(to) {
			moved := c.moved(at, to)
			return moved, Matches(c, moved)
		}
	}
	return time.Time{}, false
}

// dayOpen tells whether all calendars have a day open; calendars of other zones are asked about its noon.
func (c *closing) dayOpen(d day) bool {
	for _, o := range c.calendars {
		asked := d
		if zone := c.zoneOf(o); zone != c.zone {
			noon, _ := shownAt(c.zone, wall(d)*secondsPerDay+secondsPerDay/2)
			asked, _ = place(zone, time.Unix(noon, 0))
		}
		if ok, _ := o.isOpen(asked); !ok {
			return false
		}
	}
	return true
}

// reopens is an instant up to which the calendars are closed from at on; at itself when they are open. days: whether their
// days count, or their hours alone. false when a calendar has no open day any more.
func (c *closing) reopens(at time.Time, days bool) (time.Time, bool) {
	until := at.Unix()
	for _, o := range c.calendars {
		zone := c.zoneOf(o)
		d, second := place(zone, at)
		pause := int64(o.pauseOf(second))
		if days {
			next, ok := o.openFrom(d)
			if !ok {
				return at, false
			}
			if next > d {
				pause = int64(next-d)*secondsPerDay - int64(second)
			}
		}
		if pause > 0 { // as long as the clock runs evenly
			until = max(until, min(at.Unix()+pause, spanAt(zone, at.Unix()).end))
		}
	}
	if until == at.Unix() {
		return at, true
	}
	return time.Unix(until, 0), true
}

// Next walks the instants of the schedule, or for the policies that move them the open days.
func (c *closing) Next(after time.Time) (time.Time, bool) {
	if c.policy == ClosedSkip {
		return c.nextOpen(after)
	}
	walk := walk{c, patience}
	d, _ := place(c.zone, after)
	for range searched {
		if c.dayOpen(d) {
			if at, ok := walk.firstOn(d, after); ok {
				return at, true
			}
		}
		jump, ok := walk.ahead(d)
		if !ok || walk.left < 0 {
			return time.Time{}, false
		}
		d = jump
	}
	return time.Time{}, false
}

// nextOpen is for skip: closed instants are left out.
func (c *closing) nextOpen(after time.Time) (time.Time, bool) {
	stop := after.AddDate(horizon, 0, 0)
	for range patience {
		at, ok := c.Schedule.Next(after)
		if !ok || at.After(stop) {
			return time.Time{}, false
		}
		open, ok := c.reopens(at, true)
		if !ok {
			return time.Time{}, false
		}
		if open.Equal(at) {
			return at, true
		}
		after = open.Add(-time.Nanosecond)
	}
	return time.Time{}, false
}

// note says what calendars did to an instant that the schedule yields: it moved, and others with it.
func (c *closing) note(at time.Time) string {
	if c.policy == ClosedSkip {
		return Note(c.Schedule, at)
	}
	on, _ := place(c.zone, at)
	var from []time.Time // the nearest first
	for source := range c.sources(on) {
		if was := c.moved(at, source); Matches(c.Schedule, was) {
			from = append(from, was)
		}
	}
	note := ""
	if Matches(c.Schedule, at) {
		note = Note(c.Schedule, at)
	} else if len(from) > 0 {
		calendar, why := c.closedBy(from[0])
		note = fmt.Sprintf("moved from %s: %s is closed%s", from[0].In(c.zone).Format(time.DateOnly), calendar, bracket(why))
		from = from[1:]
	}
	if len(from) == 0 {
		return note
	}
	return strings.TrimPrefix(note+"; "+c.joined(from), "; ")
}

// joinedWhys bounds the reasons that a note names.
const joinedWhys = 3

// joined says which instants of closed days make one with another.
func (c *closing) joined(from []time.Time) string {
	slices.SortFunc(from, time.Time.Compare)
	var whys []string
	for _, at := range from {
		if _, why := c.closedBy(at); why != "" && !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
	}
	if len(whys) > joinedWhys {
		whys = append(whys[:joinedWhys], "…")
	}
	first, last := from[0].In(c.zone).Format(time.DateOnly), from[len(from)-1].In(c.zone).Format(time.DateOnly)
	if len(from) == 1 {
		return fmt.Sprintf("with 1 from the closed day %s%s", first, bracket(strings.Join(whys, ", ")))
	}
	return fmt.Sprintf("with %d from closed days %s … %s%s", len(from), first, last, bracket(strings.Join(whys, ", ")))
}

func bracket(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// sources are the closed days next to an open one whose instants move there.
func (c *closing) sources(d day) func(yield func(day) bool) {
	step := day(-1)
	if c.policy == ClosedPrevious {
		step = 1
	}
	return func(yield func(day) bool) {
		for source := d + step; source >= d-maxShift && source <= d+maxShift && !c.dayOpen(source); source += step {
			if !yield(source) {
				return
			}
		}
	}
}

// walk is one search of closing.Next.
type walk struct {
	*closing
	left int // of patience
}

// ask is the schedule's Next.
func (w *walk) ask(after time.Time) (time.Time, bool) {
	if w.left--; w.left < 0 {
		return time.Time{}, false
	}
	return w.Schedule.Next(after)
}

// ahead is the next day to look at behind d: far ahead when the schedule has nothing for a long time. What falls on a
// closed d may still move to the next open day.
func (w *walk) ahead(d day) (day, bool) {
	if w.policy == ClosedNext && !w.dayOpen(d) {
		return d + 1, true
	}
	at, ok := w.ask(begin(w.zone, d+1).Add(-time.Nanosecond))
	if !ok {
		return 0, false
	}
	next, _ := place(w.zone, at)
	if w.policy == ClosedPrevious { // the open day before it, however many closed ones lie between
		for next--; next > d && !w.dayOpen(next); {
			next--
		}
	}
	return max(d+1, next), true
}

// firstOn is the first instant after `after` on the open day d: of its own, or moved there from the closed days next to it.
func (w *walk) firstOn(d day, after time.Time) (best time.Time, found bool) {
	take := func(source day) {
		if at, ok := w.firstFrom(source, d, after); ok && (!found || at.Before(best)) {
			best, found = at, true
		}
	}
	take(d)
	for source := range w.sources(d) {
		if take(source); w.left < 0 {
			break
		}
	}
	return best, found
}

// firstFrom is the first instant after `after` that the day source gives to the open day d.
func (w *walk) firstFrom(source, d day, after time.Time) (best time.Time, found bool) {
	opens, closes := begin(w.zone, d), begin(w.zone, source+1)
	from := begin(w.zone, source)
	turned := (begin(w.zone, d+1).Sub(opens) - 24*time.Hour).Abs() // a step of the clock on d turns the order around by at most that
	uneven := turned + (closes.Sub(from) - 24*time.Hour).Abs()
	low := from
	if after.After(opens) { // what comes earlier in its day moves to what is over, but for steps of the clock
		if same := w.moved(after, source).Add(-time.Second - uneven); same.After(low) {
			low = same
		}
	}
	low = low.Add(-time.Nanosecond)
	stop := time.Unix(math.MaxInt64/2, 0)
	for {
		at, ok := w.ask(low)
		if !ok || !at.Before(closes) || at.After(stop) {
			return best, found
		}
		low = at
		moved := w.moved(at, d)
		open, _ := w.reopens(moved, false)
		switch {
		case !open.Equal(moved):
			if uneven == 0 {
				low = at.Add(open.Sub(moved) - time.Nanosecond)
			}
		case moved.After(after) && (!found || moved.Before(best)):
			if best, found = moved, true; stop.After(at.Add(turned)) {
				stop = at.Add(turned) // later ones come later
			}
		}
	}
}
