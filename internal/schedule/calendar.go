package schedule

import (
	"math/bits"
	"time"
)

// wall is what a wall clock shows, as the seconds from 1970-01-01T00:00:00 on that clock. Time zones
// are unknown here: every reading exists once.
type wall int64

const secondsPerDay = 24 * 60 * 60

// lengths are the longest lengths of the months, January is 1.
var lengths = [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// setWeekdays turns a set of weekdays (0 and 7 are Sunday) into sets of days of a month.
func (e *Expression) setWeekdays(set uint64) {
	set |= set >> 7 & 1
	for first := range e.byWeekday {
		for day := 1; day <= 31; day++ {
			if set>>((first+day-1)%7)&1 == 1 {
				e.byWeekday[first] |= 1 << day
			}
		}
	}
}

// canFire tells whether some day matches. Every date, 29 February too, falls on every weekday within the
// 400 years after which the calendar repeats, so weekdays need no look.
func (e *Expression) canFire() bool {
	if e.special != nil || e.years != nil {
		return e.canFireSpecially()
	}
	if e.either {
		return true
	}
	for month := 1; month <= 12; month++ {
		if e.month>>month&1 == 1 && e.day&daysUpTo(lengths[month]) != 0 {
			return true
		}
	}
	return false
}

// days are the matching days of the month that begins at first.
func (e *Expression) days(first time.Time) uint32 {
	year, month, _ := first.Date()
	if e.month>>month&1 == 0 || !e.years.has(year) {
		return 0
	}
	length := lengths[month]
	if month == time.February && !leap(year) {
		length = 28
	}
	week := e.byWeekday[first.Weekday()]
	if e.special != nil {
		// A special day is one of day of month or of week, and the other field is ?.
		return (e.day&week | e.specials(length, first.Weekday())) & daysUpTo(length)
	}
	if e.either {
		return (e.day | week) & daysUpTo(length)
	}
	return e.day & week & daysUpTo(length)
}

func daysUpTo(n int) uint32 { return 1<<(n+1) - 2 }

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// first is the first matching reading in [from, limit).
func (e *Expression) first(from, limit wall) (wall, bool) {
	t := time.Unix(int64(from), 0).UTC()
	year, month, day := t.Date()
	clock := t.Hour()*3600 + t.Minute()*60 + t.Second()
	for {
		begin := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
		if wall(begin.Unix()) >= limit {
			return 0, false
		}
		for days := e.days(begin) >> day << day; days != 0; days &= days - 1 {
			d := bits.TrailingZeros32(days)
			if d > day {
				clock = 0
			}
			if c, ok := e.clock(clock); ok {
				w := wall(begin.Unix()) + wall((d-1)*secondsPerDay+c)
				return w, w < limit
			}
		}
		month++
		if month > 12 {
			year, month = year+1, 1
		}
		day, clock = 1, 0
	}
}

// clock is the first matching second of a day from the given one on.
func (e *Expression) clock(from int) (int, bool) {
	h, m, s := from/3600, from/60%60, from%60
	if e.hour>>h&1 == 1 {
		if e.minute>>m&1 == 1 {
			if n, ok := lowest(e.second, s); ok {
				return h*3600 + m*60 + n, true
			}
		}
		if n, ok := lowest(e.minute, m+1); ok {
			s, _ := lowest(e.second, 0)
			return h*3600 + n*60 + s, true
		}
	}
	n, ok := lowest(e.hour, h+1)
	m, _ = lowest(e.minute, 0)
	s, _ = lowest(e.second, 0)
	return n*3600 + m*60 + s, ok
}

// lowest is the lowest element of a set that is not below from.
func lowest(set uint64, from int) (int, bool) {
	set = set >> from << from
	return bits.TrailingZeros64(set), set != 0
}
