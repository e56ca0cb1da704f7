package schedule_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// quartzTwin judges a date by asking the calendar day by day.
type quartzTwin struct {
	days, week []string // the items of the two fields; nil for ?
	years      map[int]bool
}

// newQuartzTwin reads expressions as quartzExpression draws them: minutes, and second 0.
func newQuartzTwin(text string) twin {
	fields := strings.Fields(text)
	w := newTwin(strings.Join([]string{fields[1], fields[2], "*", "*", "*"}, " "))
	for v := range 60 {
		w.match[1][v], w.match[2][v], w.match[4][v] = inRange(fields[1], v, 0, 59), inRange(fields[2], v, 0, 23), inRange(fields[4], v, 1, 12)
	}
	q := &quartzTwin{}
	if fields[3] != "?" {
		q.days = strings.Split(fields[3], ",")
	} else {
		q.week = strings.Split(fields[5], ",")
	}
	if len(fields) == 7 && fields[6] != "*" {
		q.years = map[int]bool{}
		for year := 1970; year < 2100; year++ {
			q.years[year] = inRange(fields[6], year, 1970, 2099)
		}
	}
	w.quartz = q
	return w
}

// inRange tells whether v is in a list of *, a, a-b (which may wrap), each with a step.
func inRange(list string, v, low, high int) bool {
	for item := range strings.SplitSeq(list, ",") {
		a, b, step := low, high, 1
		span, steps, stepped := strings.Cut(item, "/")
		if stepped {
			fmt.Sscan(steps, &step)
		}
		if span != "*" {
			if n, _ := fmt.Sscanf(span, "%d-%d", &a, &b); n == 1 && !stepped {
				b = a
			}
		}
		for x, i := a, 0; i < 200; i++ {
			if i%step == 0 && x == v {
				return true
			}
			if x == b {
				break
			}
			if x++; x > high {
				x = low
			}
		}
	}
	return false
}

func (q *quartzTwin) matches(clock time.Time) bool {
	if q.years != nil && !q.years[clock.Year()] {
		return false
	}
	date := time.Date(clock.Year(), clock.Month(), clock.Day(), 0, 0, 0, 0, time.UTC)
	last := date.AddDate(0, 1, -date.Day()) // of the month, also when the next one is shorter
	for last.Month() != date.Month() {
		last = last.AddDate(0, 0, -1)
	}
	for _, item := range q.days {
		if quartzDayMatches(item, date, last) {
			return true
		}
	}
	for _, item := range q.week {
		var w, n int
		quartzWeekday := int(date.Weekday()) + 1
		switch {
		case item == "L":
			if quartzWeekday == 7 {
				return true
			}
		case strings.HasSuffix(item, "L"):
			fmt.Sscanf(item, "%dL", &w)
			if quartzWeekday == w && date.AddDate(0, 0, 7).Month() != date.Month() {
				return true
			}
		case strings.Contains(item, "#"):
			fmt.Sscanf(item, "%d#%d", &w, &n)
			if quartzWeekday == w && date.AddDate(0, 0, -7*(n-1)).Month() == date.Month() && date.AddDate(0, 0, -7*n).Month() != date.Month() {
				return true
			}
		case inRange(item, quartzWeekday, 1, 7):
			return true
		}
	}
	return false
}

func quartzDayMatches(item string, date, last time.Time) bool {
	var n int
	switch {
	case item == "L":
		return date.Equal(last)
	case item == "LW":
		return date.Equal(workday(last))
	case strings.HasPrefix(item, "L-") && strings.HasSuffix(item, "W"):
		fmt.Sscanf(item, "L-%dW", &n)
		target := last.AddDate(0, 0, -n)
		return target.Month() == last.Month() && date.Equal(workday(target))
	case strings.HasPrefix(item, "L-"):
		fmt.Sscanf(item, "L-%d", &n)
		return date.Equal(last.AddDate(0, 0, -n))
	case strings.HasSuffix(item, "W"):
		fmt.Sscanf(item, "%dW", &n)
		target := date.AddDate(0, 0, n-date.Day())
		return target.Month() == date.Month() && date.Equal(workday(target))
	default:
		return inRange(item, date.Day(), 1, 31)
	}
}

// workday is the date from Monday to Friday of the same month that is nearest to one.
func workday(target time.Time) time.Time {
	for _, days := range []int{0, -1, 1, -2, 2} {
		d := target.AddDate(0, 0, days)
		if d.Month() == target.Month() && d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			return d
		}
	}
	panic("a month without a workday")
}

// wrapped draws *, a, lists, steps and ranges that may run over the end.
func wrapped(low, high int) *rapid.Generator[string] {
	value := rapid.IntRange(low, high)
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 4).Draw(t, "form") {
		case 0:
			return "*"
		case 1:
			return fmt.Sprintf("%d-%d", value.Draw(t, "a"), value.Draw(t, "b"))
		case 2:
			return fmt.Sprintf("%d-%d/%d", value.Draw(t, "a"), value.Draw(t, "b"), rapid.IntRange(1, 5).Draw(t, "step"))
		case 3:
			return fmt.Sprintf("%d,%d", value.Draw(t, "a"), value.Draw(t, "b"))
		default:
			return fmt.Sprintf("%d/%d", value.Draw(t, "a"), rapid.IntRange(1, 7).Draw(t, "step"))
		}
	})
}

func quartzExpression() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		minute := rapid.SampledFrom([]string{"0", "30", "0,30", "15", "*/20", "50-10/10"}).Draw(t, "minute")
		hour := rapid.SampledFrom([]string{"0", "1", "2", "1,2", "23", "22-2", "0/6", "*"}).Draw(t, "hour")
		day := rapid.SampledFrom([]string{"*", "L", "L-1", "L-27", "L-29", "LW", "L-2W", "L-27W", "1W", "15W", "30W", "31W", "2W,16", "L,15", "28-3", "31", "5/9"}).Draw(t, "day")
		week := "?"
		if rapid.Bool().Draw(t, "byWeek") {
			day = "?"
			week = rapid.SampledFrom([]string{"*", "1", "7", "6-2", "2-6", "L", "1L", "6L", "3#1", "6#3", "7#5", "1#1,2#2", "2,6L", "1/3"}).Draw(t, "week")
		}
		text := strings.Join([]string{"0", minute, hour, day, wrapped(1, 12).Draw(t, "month"), week}, " ")
		if rapid.Bool().Draw(t, "years") {
			text += " " + rapid.SampledFrom([]string{"*", "2000-2099", "2011,2018/1", "1985-2045/5", "2025,2026"}).Draw(t, "year")
		}
		return text
	})
}
