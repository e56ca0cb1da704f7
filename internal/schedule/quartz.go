package schedule

import (
	"math/bits"
	"strings"
	"time"
)

// Quartz counts weekdays from Sunday = 1, lets ranges wrap, wants a ? for exactly one of the two days, and
// knows days that depend on the month (dayRule) and years.
var (
	quartzSecond = wrapping(secondField)
	quartzMinute = wrapping(minuteField)
	quartzHour   = wrapping(hourField)
	quartzDay    = wrapping(dayField)
	quartzMonth  = wrapping(monthField)
	quartzWeek   = field{name: "day of week", min: 1, max: 7, names: weekdays, wraps: true}
	yearField    = field{name: "year", min: firstYear, max: lastYear}
)

// Years that a field can name.
const (
	firstYear = 1970
	lastYear  = 2099
)

func wrapping(f field) field {
	f.wraps = true
	return f
}

// yearSet has bit n for the year firstYear + n.
type yearSet [3]uint64

func (y *yearSet) has(year int) bool {
	if y == nil {
		return true
	}
	n := year - firstYear
	return n >= 0 && n <= lastYear-firstYear && y[n/64]>>(n%64)&1 == 1
}

// dayRule is a day that depends on the month.
type dayRule struct {
	kind ruleKind
	n    int // see the kinds
	w    int // weekday, 0 is Sunday
}

type ruleKind int

const (
	lastDay        ruleKind = iota // L, L-n: n days before the last day
	lastWorkday                    // LW, L-nW: the weekday (Mon-Fri) nearest to that day, in the same month
	nearestWorkday                 // nW: the weekday nearest to day n, in the same month
	nthWeekday                     // w#n: the n-th weekday w
	lastWeekday                    // wL: the last weekday w
)

// in is the rule's day in a month of the given length that begins on weekday first; 0 when it has none.
func (r dayRule) in(length, first int) int {
	weekdayOf := func(day int) int { return (first + day - 1) % 7 }
	switch r.kind {
	case lastDay:
		return max(length-r.n, 0)
	case lastWorkday:
		return nearest(max(length-r.n, 0), length, weekdayOf)
	case nearestWorkday:
		if r.n > length {
			return 0
		}
		return nearest(r.n, length, weekdayOf)
	case nthWeekday:
		day := 1 + (r.w-first+7)%7 + (r.n-1)*7
		if day > length {
			return 0
		}
		return day
	default:
		return length - (weekdayOf(length)-r.w+7)%7
	}
}

// nearest moves a day that falls on a weekend to the nearest weekday of the same month.
func nearest(day, length int, weekdayOf func(int) int) int {
	if day == 0 {
		return 0
	}
	switch weekdayOf(day) {
	case 6: // Saturday
		if day == 1 {
			return 3
		}
		return day - 1
	case 0: // Sunday
		if day == length {
			return day - 2
		}
		return day + 1
	}
	return day
}

// specials are the days of the rules in a month.
func (e *Expression) specials(length int, first time.Weekday) (set uint32) {
	for _, r := range e.special {
		if day := r.in(length, int(first)); day > 0 {
			set |= 1 << day
		}
	}
	return set
}

// readQuartz reads six or seven fields.
func (e *Expression) readQuartz(fields []word, seed string) (err *Error) {
	for _, part := range []struct {
		into *uint64
		of   field
		word word
	}{
		{&e.second, quartzSecond, fields[0]}, {&e.minute, quartzMinute, fields[1]}, {&e.hour, quartzHour, fields[2]},
		{&e.month, quartzMonth, fields[4]},
	} {
		if *part.into, err = part.of.parse(part.word, seed); err != nil {
			return err
		}
	}
	day, weekday := fields[3], fields[5]
	switch byDay, byWeekday := day.text != "?", weekday.text != "?"; {
	case byDay && byWeekday:
		return cronError(weekday.pos, "write ? for the one of them that does not matter", "day of month and day of week are both given; exactly one of them must be ?")
	case !byDay && !byWeekday:
		return cronError(weekday.pos, "write * for one of them to mean every day", "day of month and day of week are both ?; exactly one of them must be ?")
	case byDay:
		if err = e.readQuartzDays(day, seed); err != nil {
			return err
		}
	default:
		if err = e.readQuartzWeek(weekday, seed); err != nil {
			return err
		}
	}
	if len(fields) == 7 {
		return e.readYears(fields[6])
	}
	return nil
}

func (e *Expression) readQuartzDays(w word, seed string) *Error {
	for item := range items(w) {
		upper := strings.ToUpper(item.text)
		if !strings.ContainsAny(upper, "LW") {
			set, err := quartzDay.parseItem(item, seed)
			if err != nil {
				return err
			}
			e.day |= uint32(set)
			continue
		}
		r, err := quartzDayRule(upper, item)
		if err != nil {
			return err
		}
		e.special = append(e.special, r)
	}
	e.byWeekday = anyWeekday
	return nil
}

// quartzDayRule reads L, L-n, LW, L-nW and nW.
func quartzDayRule(upper string, item word) (dayRule, *Error) {
	body, work := strings.CutSuffix(upper, "W")
	if rest, last := strings.CutPrefix(body, "L"); last {
		n := 0
		if rest != "" {
			before, minus := strings.CutPrefix(rest, "-")
			v, ok := number(before)
			if !minus || !ok || v > 30 {
				return dayRule{}, cronError(item.pos, "write L, L-3, LW, L-3W or 15W", "day of month: %.32q is no day", item.text)
			}
			n = v
		}
		if work {
			return dayRule{kind: lastWorkday, n: n}, nil
		}
		return dayRule{kind: lastDay, n: n}, nil
	}
	n, ok := number(body)
	if !work || !ok {
		return dayRule{}, cronError(item.pos, "write L, L-3, LW, L-3W or 15W", "day of month: %.32q is no day", item.text)
	}
	if n < 1 || n > 31 {
		return dayRule{}, cronError(item.pos, "a number from 1 to 31", "day of month: %d is out of range 1-31", n)
	}
	return dayRule{kind: nearestWorkday, n: n}, nil
}

func (e *Expression) readQuartzWeek(w word, seed string) *Error {
	var set uint64
	for item := range items(w) {
		upper := strings.ToUpper(item.text)
		name, nth, isNth := strings.Cut(upper, "#")
		body, isLast := strings.CutSuffix(upper, "L")
		switch {
		case isNth:
			n, ok := number(nth)
			if !ok || n < 1 || n > 5 {
				return cronError(item.pos+len(name)+1, "6#3 is the third Friday", "day of week: %.32q is no number from 1 to 5", nth)
			}
			v, err := quartzWeek.value(word{name, item.pos})
			if err != nil {
				return err
			}
			e.special = append(e.special, dayRule{kind: nthWeekday, n: n, w: v - 1})
		case isLast && body == "": // the last day of the week
			set |= 1 << 7
		case isLast:
			v, err := quartzWeek.value(word{body, item.pos})
			if err != nil {
				return err
			}
			e.special = append(e.special, dayRule{kind: lastWeekday, w: v - 1})
		default:
			bits, err := quartzWeek.parseItem(item, seed)
			if err != nil {
				return err
			}
			set |= bits
		}
	}
	e.setWeekdays(set >> 1) // to Sunday = 0
	e.day = everyDay
	return nil
}

func (e *Expression) readYears(w word) *Error {
	if w.text == "*" {
		return nil
	}
	var set yearSet
	for item := range items(w) {
		span, stepText, stepped := strings.Cut(item.text, "/")
		low, high, err := yearField.parseRange(word{span, item.pos}, stepped)
		if err != nil {
			return err
		}
		step := 1
		if stepped {
			n, ok := number(stepText)
			if !ok || n == 0 {
				return cronError(item.pos+len(span)+1, "such as */5", "year: the step %.32q is no number from 1 on", stepText)
			}
			step = n
		}
		for year := low; year <= high; year += step {
			set[(year-firstYear)/64] |= 1 << ((year - firstYear) % 64)
		}
	}
	e.years = &set
	return nil
}

const everyDay = uint32(1<<32 - 2) // bits 1..31

var anyWeekday = [7]uint32{everyDay, everyDay, everyDay, everyDay, everyDay, everyDay, everyDay}

// canFireSpecially looks at every month that the calendar can make: it repeats after 400 years.
func (e *Expression) canFireSpecially() bool {
	from, to := 2000, 2399
	if e.years != nil {
		from, to = firstYear, lastYear
	}
	for year := from; year <= to; year++ {
		if !e.years.has(year) {
			continue
		}
		for set := e.month; set != 0; set &= set - 1 {
			if e.days(time.Date(year, time.Month(bits.TrailingZeros64(set)), 1, 0, 0, 0, 0, time.UTC)) != 0 {
				return true
			}
		}
	}
	return false
}
