package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of a calendar.
const (
	MaxCalendarDates   = 4096
	MaxCalendarWindows = 16
	MaxCalendars       = 8 // of one schedule
)

// Calendar says which days, and which hours of them, are open. A date is open when Open lists it; else closed when Closed
// lists it; else Weekly decides. Of an open day the Daily windows are open. Several calendars of a schedule are open
// where all of them are.
type Calendar struct {
	Name     string   `json:"-"`
	TimeZone string   `json:"timeZone,omitempty"` // whose dates and hours; "" the schedule's
	Weekly   []string `json:"weekly,omitempty"`   // open weekdays such as MON-FRI, SAT; nil: all; "none": none, only what Open lists
	Daily    []Window `json:"daily,omitempty"`    // open hours; nil: the whole day
	Open     []Dates  `json:"open,omitempty"`     // make-up workdays, or the days that an inclusion consists of
	Closed   []Dates  `json:"closed,omitempty"`   // holidays
}

// Dates is a date or a range of dates, both included.
type Dates struct {
	From Date   `json:"from"`
	To   Date   `json:"to,omitempty"` // "": the one day
	Name string `json:"name,omitempty"`
}

// Date is written 2026-10-01, or 10-01 for that day of every year.
type Date string

// Window is a part of the day, From included, To excluded. To "24:00" is the end of the day.
type Window struct {
	From string `json:"from"` // 09:30 or 09:30:00
	To   string `json:"to"`
}

// ClosedPolicy is what becomes of an instant that falls on a closed day. Outside of the daily windows of an open day it is
// always left out, and so it is further than 400 days from the day to which it would move.
type ClosedPolicy string

// The policies for closed days.
const (
	ClosedSkip     ClosedPolicy = "skip"     // it is left out
	ClosedNext     ClosedPolicy = "next"     // it moves to the same time of the next open day
	ClosedPrevious ClosedPolicy = "previous" // it moves to the same time of the open day before
)

// day counts days from 1970-01-01 on some calendar.
type day int64

func dayOf(year int, month time.Month, d int) day {
	return day(time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay)
}

func (d day) date() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// opening is a calendar made ready.
type opening struct {
	name         string
	zone         *time.Location // nil: the schedule's
	weekly       uint64         // bits 0..6, Sunday first
	daily        [][2]int       // seconds of the day
	open, closed *dateSet
}

// compile checks a calendar. field names it in errors.
func (c *Calendar) compile() (*opening, *Error) {
	o := &opening{name: c.Name, weekly: spread(0, 6)}
	var err *Error
	if c.TimeZone != "" {
		if o.zone, err = loadZone(c.TimeZone); err != nil {
			return nil, err
		}
	}
	if err = c.emptyList(); err != nil {
		return nil, err
	}
	if len(c.Weekly) > 0 {
		if o.weekly, err = weeklyOf(c.Weekly); err != nil {
			return nil, err
		}
	}
	if len(c.Daily) > MaxCalendarWindows || len(c.Open)+len(c.Closed) > MaxCalendarDates {
		return nil, &Error{Field: "open", Message: fmt.Sprintf("at most %d dates and %d windows are taken", MaxCalendarDates, MaxCalendarWindows),
			Hint: "write ranges of dates, or two calendars: a schedule may name several"}
	}
	for i, w := range c.Daily {
		span, err := w.parse(fmt.Sprintf("daily[%d]", i))
		if err != nil {
			return nil, err
		}
		o.daily = append(o.daily, span)
	}
	if o.open, err = datesOf(c.Open, "open"); err != nil {
		return nil, err
	}
	if o.closed, err = datesOf(c.Closed, "closed"); err != nil {
		return nil, err
	}
	if o.weekly == 0 && len(c.Open) == 0 {
		return nil, &Error{Field: "weekly", Message: "no day is ever open", Hint: "list the open days under open"}
	}
	return o, nil
}

// emptyList refuses lists without an item where an absent one means everything: who wrote them meant that nothing is open.
func (c *Calendar) emptyList() *Error {
	switch {
	case c.Weekly != nil && len(c.Weekly) == 0:
		return &Error{Field: "weekly", Message: "the list is empty", Hint: "leave weekly out for all days, or write [none] when only what open lists is open"}
	case c.Daily != nil && len(c.Daily) == 0:
		return &Error{Field: "daily", Message: "the list is empty", Hint: "leave daily out for the whole day"}
	}
	return nil
}

// CheckCalendar tells what is wrong with a calendar; nil when nothing is. The error is an *Error.
func CheckCalendar(c Calendar) error {
	if _, err := c.compile(); err != nil {
		return err
	}
	return nil
}

func weeklyOf(list []string) (set uint64, err *Error) {
	if len(list) == 1 && strings.EqualFold(list[0], "none") {
		return 0, nil
	}
	f := field{name: "weekly", min: 0, max: 6, names: weekdays, wraps: true}
	for i, text := range list {
		bits, bad := f.parseItem(word{text, 0}, "")
		if bad != nil || strings.ContainsAny(text, "/*(,") || strings.EqualFold(text, "H") {
			return 0, &Error{Field: fmt.Sprintf("weekly[%d]", i), Message: fmt.Sprintf("%.32q is no weekday", text), Hint: "write MON, or MON-FRI, or none"}
		}
		set |= bits
	}
	return set, nil
}

func (w Window) parse(field string) (span [2]int, err *Error) {
	for i, text := range []string{w.From, w.To} {
		if i == 1 && (text == "24:00" || text == "24:00:00") {
			span[i] = secondsPerDay
			continue
		}
		at, bad := time.Parse("15:04:05", text)
		if bad != nil {
			at, bad = time.Parse("15:04", text)
		}
		if bad != nil {
			return span, &Error{Field: field, Message: fmt.Sprintf("%.32q is no time of day", text), Hint: "write 09:30, and 24:00 for the end of the day"}
		}
		span[i] = at.Hour()*3600 + at.Minute()*60 + at.Second()
	}
	if span[0] >= span[1] {
		return span, &Error{Field: field, Message: fmt.Sprintf("%s does not come before %s", w.From, w.To), Hint: "write two windows for one that runs over midnight"}
	}
	return span, nil
}

func (d Date) parse(field string) (n day, yearly bool, err *Error) {
	if at, bad := time.Parse(time.DateOnly, string(d)); bad == nil {
		return day(at.Unix() / secondsPerDay), false, nil
	}
	at, bad := time.Parse("2006-01-02", "2000-"+string(d)) // a leap year: 02-29 is a day
	if bad != nil {
		return 0, false, &Error{Field: field, Message: fmt.Sprintf("%.32q is no date", string(d)), Hint: "write 2026-10-01, or 10-01 for every year"}
	}
	return day(int(at.Month())*32 + at.Day()), true, nil
}

// isOpen tells whether a day is open, and the name of what decided, if it has one.
func (o *opening) isOpen(d day) (bool, string) {
	if name, ok := o.open.find(d); ok {
		return true, name
	}
	if name, ok := o.closed.find(d); ok {
		return false, name
	}
	return o.weekly>>((int64(d)%7+11)%7)&1 == 1, "" // 1970-01-01 was a Thursday
}

// openFrom is the first open day from d on, at most a horizon away.
func (o *opening) openFrom(d day) (day, bool) {
	for end := d + searched; d < end; d++ {
		if ok, _ := o.isOpen(d); ok {
			return d, true
		}
	}
	return 0, false
}

// inWindow tells whether a second of an open day is open.
func (o *opening) inWindow(second int) bool {
	if len(o.daily) == 0 {
		return true
	}
	return slices.ContainsFunc(o.daily, func(w [2]int) bool { return second >= w[0] && second < w[1] })
}

// pauseOf is how many seconds after the given one of an open day the next window begins, at the latest with the next day;
// 0 inside of a window.
func (o *opening) pauseOf(second int) int {
	if o.inWindow(second) {
		return 0
	}
	next := secondsPerDay
	for _, w := range o.daily {
		if w[0] > second {
			next = min(next, w[0])
		}
	}
	return next - second
}
