package ical

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// Options say how events are read.
type Options struct {
	Open    []string // events whose summary holds one of these are open days, such as 补班
	Through int      // last year up to which rules without an end are written out
}

// Days is what a text says.
type Days struct {
	Title        string // of the calendar
	TimeZone     string // that all times in it name; "" when none does
	Open, Closed []schedule.Dates
	Notes        []string // what was understood in a way that a person should know
}

// maxName bounds the name of a day, in characters.
const maxName = 256

// Parse reads the events of a text as days: each whole day that an event takes is closed, or open. What days cannot say is a
// fault; then there are no days.
func Parse(text string, o Options) (Days, []*Fault) {
	lines, faults := properties(text)
	r := reader{options: o}
	var event []property
	var inside []string // components around
	for _, p := range lines {
		switch p.name {
		case "BEGIN":
			if inside = append(inside, strings.ToUpper(p.value)); isEvent(inside) {
				event = nil
			}
			continue
		case "END":
			if len(inside) == 0 || inside[len(inside)-1] != strings.ToUpper(p.value) {
				faults = append(faults, faultf(p.line, "each BEGIN needs its END", "END:%.40s without its BEGIN", p.value))
				return Days{}, faults
			}
			if isEvent(inside) {
				r.event(event, p.line)
			}
			inside = inside[:len(inside)-1]
			continue
		}
		switch {
		case isEvent(inside):
			event = append(event, p)
		case len(inside) == 1 && p.name == "X-WR-CALNAME":
			r.days.Title = cut(plain(p.value))
		}
	}
	if len(inside) > 0 {
		faults = append(faults, faultf(len(strings.Split(text, "\n")), "each BEGIN needs its END", "BEGIN:%.40s has no END", inside[len(inside)-1]))
	}
	if faults = append(faults, r.faults...); len(faults) > 0 {
		return Days{}, faults
	}
	if len(r.days.Open)+len(r.days.Closed) == 0 {
		return Days{}, []*Fault{faultf(1, "a file of holidays has BEGIN:VEVENT … END:VEVENT for each", "the file holds no event")}
	}
	if n := len(r.days.Open) + len(r.days.Closed); n > schedule.MaxCalendarDates {
		return Days{}, []*Fault{faultf(1, "keep only the years that matter", "the file has %d ranges of days, at most %d are taken", n, schedule.MaxCalendarDates)}
	}
	for _, list := range [][]schedule.Dates{r.days.Open, r.days.Closed} {
		slices.SortStableFunc(list, func(a, b schedule.Dates) int {
			return cmp.Or(cmp.Compare(len(b.From), len(a.From)), cmp.Compare(a.From, b.From))
		})
	}
	return r.days, nil
}

func isEvent(inside []string) bool {
	return len(inside) == 2 && inside[0] == "VCALENDAR" && inside[1] == "VEVENT"
}

func cut(name string) string {
	if r := []rune(name); len(r) > maxName {
		return string(r[:maxName-1]) + "…"
	}
	return name
}

type reader struct {
	options Options
	days    Days
	faults  []*Fault
	zoned   int // line that named the time zone
}

func (r *reader) fault(line int, hint, format string, args ...any) {
	r.faults = append(r.faults, faultf(line, hint, format, args...))
}

func (r *reader) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.days.Notes, text) {
		r.days.Notes = append(r.days.Notes, text)
	}
}

// event takes one event.
func (r *reader) event(all []property, end int) {
	of := map[string]*property{}
	for i := range all {
		p := &all[i]
		switch p.name {
		case "EXDATE", "RDATE", "EXRULE", "RECURRENCE-ID":
			r.fault(p.line, "write the days out as events of their own", "%s changes a rule's days one by one, which is not read", p.name)
			return
		case "DTSTART", "DTEND", "DURATION", "RRULE":
			if of[p.name] != nil {
				r.fault(p.line, "keep one of them", "a second %s in one event", p.name)
				return
			}
		}
		of[p.name] = p
	}
	name := ""
	if p := of["SUMMARY"]; p != nil {
		name = cut(plain(p.value))
	}
	if p := of["STATUS"]; p != nil && strings.EqualFold(p.value, "CANCELLED") {
		r.note("%s: cancelled, left out", name)
		return
	}
	if of["DTSTART"] == nil {
		r.fault(end, "give it DTSTART;VALUE=DATE:20261001", "the event that ends here has no DTSTART")
		return
	}
	from, days, ok := r.span(of["DTSTART"], of["DTEND"], of["DURATION"])
	if !ok {
		return
	}
	dates, ok := r.repeated(of["RRULE"], from, days, name)
	if !ok {
		return
	}
	if slices.ContainsFunc(r.options.Open, func(part string) bool { return part != "" && strings.Contains(name, part) }) {
		r.days.Open = append(r.days.Open, dates...)
	} else {
		r.days.Closed = append(r.days.Closed, dates...)
	}
}

// span is the first day of an event, and how many it takes.
func (r *reader) span(start, end, length *property) (from time.Time, days int, ok bool) {
	from, whole, ok := r.day(start)
	if !ok {
		return from, 0, false
	}
	switch {
	case end != nil && length != nil:
		r.fault(length.line, "keep one of them", "an event has DTEND and DURATION")
		return from, 0, false
	case length != nil:
		d, good := wholeDays(length.value)
		if !good {
			r.fault(length.line, "a calendar closes whole days: write P1D", "DURATION %.40s is no number of whole days", length.value)
		}
		return from, d, good
	case end == nil && whole:
		return from, 1, true
	case end == nil:
		r.fault(start.line, "give it DTSTART;VALUE=DATE, or a DTEND at midnight", "an event at a time of day without an end takes no day")
		return from, 0, false
	}
	to, wholeTo, ok := r.day(end)
	if !ok {
		return from, 0, false
	}
	if wholeTo != whole {
		r.fault(end.line, "write both as dates, or both as times", "DTEND is not of the kind of DTSTART")
		return from, 0, false
	}
	days = int(to.Sub(from) / (24 * time.Hour))
	if whole && days == 0 { // common, though the end is said not to belong to it
		days = 1
	}
	if days < 1 || days > 366 {
		r.fault(end.line, "DTEND is the day after the last one", "the event takes %d days, 1 to 366 are taken", days)
		return from, 0, false
	}
	return from, days, true
}

// day reads a date, or midnight in a time zone.
func (r *reader) day(p *property) (day time.Time, whole, ok bool) {
	const hint = "write 20261001 with VALUE=DATE, or 20261001T000000"
	if day, err := time.Parse("20060102", p.value); err == nil {
		return day, true, true
	}
	value, zone := p.value, p.params["TZID"]
	if bare, utc := strings.CutSuffix(value, "Z"); utc {
		value, zone = bare, "UTC"
	}
	day, err := time.Parse("20060102T150405", value)
	switch {
	case err != nil:
		r.fault(p.line, hint, "%s %.40q is no date and no time", p.name, p.value)
		return day, false, false
	case !day.Equal(day.Truncate(24 * time.Hour)):
		r.fault(p.line, "a calendar closes whole days; hours are its daily windows", "%s %s is not midnight: the event takes a part of a day", p.name, p.value)
		return day, false, false
	case zone == "" || zone == r.days.TimeZone:
		return day, false, true
	case r.days.TimeZone != "":
		r.fault(p.line, "import the events of each zone as a calendar of their own", "time zone %.64s, and line %d says %s: a calendar has one", zone, r.zoned, r.days.TimeZone)
		return day, false, false
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		r.fault(p.line, "name a zone of the tz database, such as Asia/Shanghai", "%.64q is no time zone", zone)
		return day, false, false
	}
	r.days.TimeZone, r.zoned = zone, p.line
	return day, false, true
}

// wholeDays reads P2D, P1W, PT48H.
func wholeDays(text string) (int, bool) {
	var n int
	var unit byte
	body := strings.TrimPrefix(text, "+")
	hours := strings.HasPrefix(body, "PT")
	body = strings.TrimPrefix(strings.TrimPrefix(body, "P"), "T")
	if _, err := fmt.Sscanf(body, "%d%c", &n, &unit); err != nil || fmt.Sprintf("%d%c", n, unit) != body || n < 1 || n > 366*24 {
		return 0, false
	}
	switch {
	case unit == 'D' && !hours:
	case unit == 'W' && !hours:
		n *= 7
	case unit == 'H' && hours && n%24 == 0:
		n /= 24
	default:
		return 0, false
	}
	return n, n <= 366
}
