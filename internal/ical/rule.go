package ical

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// rule is a yearly RRULE: on the day of DTSTART, or on the nth weekday of a month.
type rule struct {
	interval, count int
	until           time.Time // zero: none
	month           time.Month
	nth             int // of weekday in month; negative: from its end; 0: the day of DTSTART
	weekday         time.Weekday
}

// ruleHint is what to do about a rule that is not read.
const ruleHint = "only FREQ=YEARLY is read, on one date or on one nth weekday of a month; weekends are the calendar's weekly"

var weekdays = []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}

// repeated are the days of an event over the years.
func (r *reader) repeated(p *property, from time.Time, days int, name string) ([]schedule.Dates, bool) {
	if p == nil {
		return []schedule.Dates{dated(from, days, name)}, true
	}
	u, ok := parseRule(p.value, from)
	if !ok {
		r.fault(p.line, ruleHint, "RRULE %.80s is not read", p.value)
		return nil, false
	}
	endless, last := u.until.IsZero() && u.count == 0, from.AddDate(0, 0, days-1)
	leap := days > 1 && from.Month() <= time.February && (last.Month() > time.February || last.Year() > from.Year()) // the length of February decides
	if endless && u.nth == 0 && u.interval == 1 && !leap {
		d := schedule.Dates{From: yearly(from), Name: name}
		if days > 1 {
			d.To = yearly(last)
		}
		r.note("%s: each year, also before %d", name, from.Year())
		return []schedule.Dates{d}, true
	}
	through := max(r.options.Through, from.Year())
	if endless {
		r.note("%s: written out up to %d, for its rule has no end", name, through)
	}
	var all []schedule.Dates
	for year := from.Year(); year <= from.Year()+schedule.MaxCalendarDates; year += u.interval {
		at, there := u.in(year, from)
		switch {
		case endless && year > through, !u.until.IsZero() && at.After(u.until), u.count > 0 && len(all) == u.count:
			return all, true
		case there && !at.Before(from):
			all = append(all, dated(at, days, name))
		}
	}
	r.fault(p.line, "give the rule an end", "RRULE %.80s has too many years", p.value)
	return nil, false
}

// in is the day of a year; false when that has none.
func (u *rule) in(year int, from time.Time) (time.Time, bool) {
	if u.nth == 0 {
		at := time.Date(year, from.Month(), from.Day(), 0, 0, 0, 0, time.UTC)
		return at, at.Month() == from.Month()
	}
	var at time.Time
	if u.nth > 0 {
		first := time.Date(year, u.month, 1, 0, 0, 0, 0, time.UTC)
		at = first.AddDate(0, 0, (int(u.weekday-first.Weekday())+7)%7+7*(u.nth-1))
	} else {
		last := time.Date(year, u.month+1, 0, 0, 0, 0, 0, time.UTC)
		at = last.AddDate(0, 0, -(int(last.Weekday()-u.weekday)+7)%7+7*(u.nth+1))
	}
	return at, at.Month() == u.month
}

func parseRule(text string, from time.Time) (u rule, ok bool) {
	u = rule{interval: 1, month: from.Month()}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		name, value, _ := strings.Cut(strings.ToUpper(part), "=")
		if seen[name] || !u.part(name, value, from) {
			return u, false
		}
		seen[name] = true
	}
	if !seen["FREQ"] || seen["UNTIL"] && seen["COUNT"] || seen["BYDAY"] && seen["BYMONTHDAY"] {
		return u, false
	}
	return u, !seen["BYDAY"] || seen["BYMONTH"] // else it is the nth weekday of the year
}

// part takes one part of a rule.
func (u *rule) part(name, value string, from time.Time) bool {
	n, err := strconv.Atoi(value)
	switch name {
	case "FREQ":
		return value == "YEARLY"
	case "WKST": // says nothing about a rule without weeks
		return slices.Contains(weekdays, value)
	case "INTERVAL":
		u.interval = n
		return err == nil && n > 0 && n <= 100
	case "COUNT":
		u.count = n
		return err == nil && n > 0 && n <= schedule.MaxCalendarDates
	case "UNTIL":
		day, _, _ := strings.Cut(value, "T")
		u.until, err = time.Parse("20060102", day)
		return err == nil
	case "BYMONTH":
		u.month = time.Month(n)
		return err == nil && n == int(from.Month())
	case "BYMONTHDAY":
		return err == nil && n == from.Day()
	case "BYDAY":
		if len(value) < 3 {
			return false
		}
		at := len(value) - 2
		u.nth, err = strconv.Atoi(strings.TrimPrefix(value[:at], "+"))
		u.weekday = time.Weekday(slices.Index(weekdays, value[at:]))
		return err == nil && u.nth != 0 && u.nth >= -5 && u.nth <= 5 && u.weekday >= 0
	}
	return false
}

func yearly(day time.Time) schedule.Date { return schedule.Date(day.Format("01-02")) }

func dated(from time.Time, days int, name string) schedule.Dates {
	d := schedule.Dates{From: schedule.Date(from.Format(time.DateOnly)), Name: name}
	if days > 1 {
		d.To = schedule.Date(from.AddDate(0, 0, days-1).Format(time.DateOnly))
	}
	return d
}
