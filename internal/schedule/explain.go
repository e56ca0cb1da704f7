package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Languages of Explain.
const (
	English = "en"
	Chinese = "zh"
)

// Explain says in words when a schedule is due. lang is English or Chinese; others are read as English.
func Explain(s Schedule, lang string) string {
	t := english
	if lang == Chinese {
		t = chinese
	}
	switch s := s.(type) {
	case *cron:
		return t.cron(s)
	case rate:
		return fmt.Sprintf(t.every, time.Duration(s.every)*time.Millisecond, time.UnixMilli(s.anchor).UTC().Format(time.RFC3339))
	case once:
		return fmt.Sprintf(t.once, time.Time(s).Format(time.RFC3339))
	case window:
		text := Explain(s.Schedule, lang)
		if !s.start.IsZero() {
			text += fmt.Sprintf(t.from, s.start.UTC().Format(time.RFC3339))
		}
		if !s.end.IsZero() {
			text += fmt.Sprintf(t.until, s.end.UTC().Format(time.RFC3339))
		}
		return text
	case jittered:
		return Explain(s.Schedule, lang) + fmt.Sprintf(t.jitter, time.Duration(s.most)*time.Millisecond)
	case *closing:
		var names []string
		for _, o := range s.calendars {
			names = append(names, o.name)
		}
		return Explain(s.Schedule, lang) + fmt.Sprintf(t.closed[s.policy], strings.Join(names, t.comma))
	default:
		return ""
	}
}

// tongue is how one language says it.
type tongue struct {
	every, once, from, until, jitter      string
	closed                                map[ClosedPolicy]string
	everySecond, everyMinute, everyHour   string
	stepSeconds, stepMinutes              string // every n of them
	seconds, minutes, hours, at           string // with a list
	ofEachMinute, ofEachHour              string
	everyDay, days, weekdays, either, and string
	months, years, zone                   string
	lastDay, beforeLast, lastWork         string
	beforeLastWork, nearWork              string
	nth, lastWeekday                      string
	prefix, dayList, joint                string // before a clock that begins with a noun; days by number; between kinds of days
	comma, part, to, end                  string
	weekday                               [7]string
	month                                 [13]string
	ordinal                               [6]string
}

var english = tongue{
	every: "Every %s, counted from %s.", once: "Once, at %s.", from: " From %s on.", until: " Until %s.", jitter: " Up to %s later.",
	closed: map[ClosedPolicy]string{ClosedSkip: " Not when %s is closed.", ClosedNext: " When %s is closed, on the next open day.",
		ClosedPrevious: " When %s is closed, on the open day before."},
	everySecond: "every second", everyMinute: "every minute", everyHour: "of every hour",
	stepSeconds: "every %d seconds", stepMinutes: "every %d minutes",
	seconds: "second %s", minutes: "minute %s", hours: "of the hours %s", at: "at %s", prefix: "at ",
	ofEachMinute: "%s of %s", ofEachHour: "%s %s",
	everyDay: "every day", days: "on %s of the month", dayList: "day %s", joint: " and ", weekdays: "on %s", either: "%s or %s", and: "%s, if that is %s",
	months: "in %s", years: "in the years %s", zone: "by the clocks of %s",
	lastDay: "the last day", beforeLast: "the last day but %d", lastWork: "the last weekday (Mon-Fri)",
	beforeLastWork: "the weekday (Mon-Fri) nearest to the last day but %d", nearWork: "the weekday (Mon-Fri) nearest to day %d",
	nth: "the %s %s of the month", lastWeekday: "the last %s of the month",
	comma: ", ", part: ", ", to: " to ", end: ".",
	weekday: [7]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
	month: [13]string{"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
		"December"},
	ordinal: [6]string{"", "first", "second", "third", "fourth", "fifth"},
}

var chinese = tongue{
	every: "每隔 %s,从 %s 起算。", once: "一次,在 %s。", from: "自 %s 起。", until: "至 %s 止。", jitter: "最多推迟 %s。",
	closed: map[ClosedPolicy]string{ClosedSkip: "日历 %s 休息时不执行。", ClosedNext: "日历 %s 休息时顺延至下一个开放日。",
		ClosedPrevious: "日历 %s 休息时提前至上一个开放日。"},
	everySecond: "每秒", everyMinute: "每分钟", everyHour: "每小时",
	stepSeconds: "每 %d 秒", stepMinutes: "每 %d 分钟",
	seconds: "第 %s 秒", minutes: "第 %s 分", hours: "%s 点", at: "%s",
	ofEachMinute: "%[2]s的%[1]s", ofEachHour: "%[2]s的%[1]s",
	everyDay: "每天", days: "每月%s", dayList: "%s 日", joint: "、", weekdays: "%s", either: "%s或%s", and: "%s且为%s",
	months: "%s", years: "%s 年", zone: "时区 %s",
	lastDay: "最后一天", beforeLast: "最后一天的前 %d 天", lastWork: "最后一个工作日(周一至周五)",
	beforeLastWork: "离最后一天的前 %d 天最近的工作日", nearWork: "离 %d 日最近的工作日",
	nth: "每月第%s个%s", lastWeekday: "每月最后一个%s",
	comma: "、", part: ",", to: "至", end: "。",
	weekday: [7]string{"星期日", "星期一", "星期二", "星期三", "星期四", "星期五", "星期六"},
	month:   [13]string{"", "1月", "2月", "3月", "4月", "5月", "6月", "7月", "8月", "9月", "10月", "11月", "12月"},
	ordinal: [6]string{"", "一", "二", "三", "四", "五"},
}

func (t *tongue) cron(c *cron) string {
	e := c.expr
	clock := t.clock(e)
	if strings.HasPrefix(clock, "second ") || strings.HasPrefix(clock, "minute ") {
		clock = t.prefix + clock
	}
	parts := []string{clock, t.day(e)}
	if e.month != spread(1, 12) {
		parts = append(parts, fmt.Sprintf(t.months, t.list(e.month, 1, 12, func(n int) string { return t.month[n] })))
	}
	if e.years != nil {
		parts = append(parts, fmt.Sprintf(t.years, e.words[6]))
	}
	if c.zone != time.UTC {
		parts = append(parts, fmt.Sprintf(t.zone, c.zone))
	}
	text := strings.Join(parts, t.part) + t.end
	if text[0] >= 'a' && text[0] <= 'z' {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text
}

// clock says the time of day.
func (t *tongue) clock(e *Expression) string {
	if e.second == 1 && bits.OnesCount64(e.minute)*bits.OnesCount64(e.hour) <= 6 && !e.interval {
		return fmt.Sprintf(t.at, t.times(e))
	}
	minute := t.unit(e.minute, 60, t.everyMinute, t.stepMinutes, t.minutes)
	if e.hour != spread(0, 23) {
		minute = fmt.Sprintf(t.ofEachHour, minute, fmt.Sprintf(t.hours, t.list(e.hour, 0, 23, strconv.Itoa)))
	} else if e.minute != spread(0, 59) && stepOf(e.minute, 60) == 0 {
		minute = fmt.Sprintf(t.ofEachHour, minute, t.everyHour)
	}
	if e.second == 1 {
		return minute
	}
	second := t.unit(e.second, 60, t.everySecond, t.stepSeconds, t.seconds)
	if e.minute == spread(0, 59) && e.hour == spread(0, 23) && (e.second == spread(0, 59) || stepOf(e.second, 60) > 0) {
		return second
	}
	return fmt.Sprintf(t.ofEachMinute, second, minute)
}

func (t *tongue) unit(set uint64, size int, every, step, list string) string {
	if set == spread(0, size-1) {
		return every
	}
	if n := stepOf(set, size); n > 0 {
		return fmt.Sprintf(step, n)
	}
	return fmt.Sprintf(list, t.list(set, 0, size-1, strconv.Itoa))
}

// stepOf is n when a set is 0, n, 2n … and n divides the size evenly, so that "every n" is true; else 0.
func stepOf(set uint64, size int) int {
	if set&1 == 0 || bits.OnesCount64(set) < 2 {
		return 0
	}
	n := bits.TrailingZeros64(set &^ 1)
	if size%n != 0 {
		return 0
	}
	for v := 0; v < size; v++ {
		if (set>>v&1 == 1) != (v%n == 0) {
			return 0
		}
	}
	return n
}

func (t *tongue) times(e *Expression) string {
	var all []string
	for h := range 24 {
		for m := range 60 {
			if e.hour>>h&1 == 1 && e.minute>>m&1 == 1 {
				all = append(all, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
	}
	return strings.Join(all, t.comma)
}

// day says the days: two fields of which one, either or both matter.
func (t *tongue) day(e *Expression) string {
	var days, week []string
	anyDay, anyWeek := e.day == everyDay, e.byWeekday == anyWeekday
	if !anyDay && e.day != 0 {
		days = append(days, fmt.Sprintf(t.dayList, t.list(uint64(e.day), 1, 31, strconv.Itoa)))
	}
	if set := e.weekSet(); !anyWeek && set != 0 {
		week = append(week, t.list(set, 0, 6, func(n int) string { return t.weekday[n] }))
	}
	for _, r := range e.special {
		switch r.kind {
		case nthWeekday:
			week = append(week, fmt.Sprintf(t.nth, t.ordinal[r.n], t.weekday[r.w]))
		case lastWeekday:
			week = append(week, fmt.Sprintf(t.lastWeekday, t.weekday[r.w]))
		default:
			days = append(days, t.rule(r))
		}
	}
	onDays := fmt.Sprintf(t.days, strings.Join(days, t.joint))
	onWeek := fmt.Sprintf(t.weekdays, strings.Join(week, t.comma))
	switch {
	case days == nil && week == nil:
		return t.everyDay
	case week == nil:
		return onDays
	case days == nil:
		return onWeek
	case e.either:
		return fmt.Sprintf(t.either, onDays, onWeek)
	default:
		return fmt.Sprintf(t.and, onDays, strings.Join(week, t.comma))
	}
}

func (t *tongue) rule(r dayRule) string {
	switch {
	case r.kind == lastDay && r.n == 0:
		return t.lastDay
	case r.kind == lastDay:
		return fmt.Sprintf(t.beforeLast, r.n)
	case r.kind == lastWorkday && r.n == 0:
		return t.lastWork
	case r.kind == lastWorkday:
		return fmt.Sprintf(t.beforeLastWork, r.n)
	default:
		return fmt.Sprintf(t.nearWork, r.n)
	}
}

// weekSet is the weekdays as bits 0..6, Sunday first: setWeekdays backwards, in a month that begins on Sunday.
func (e *Expression) weekSet() (set uint64) {
	for w := range 7 {
		if e.byWeekday[0]>>(w+1)&1 == 1 {
			set |= 1 << w
		}
	}
	return set
}

// list names a set with ranges: 1, 3, 9 to 17.
func (t *tongue) list(set uint64, low, high int, name func(int) string) string {
	var all []string
	for v := low; v <= high; v++ {
		if set>>v&1 == 0 {
			continue
		}
		end := v
		for end < high && set>>(end+1)&1 == 1 {
			end++
		}
		switch end - v {
		case 0:
			all = append(all, name(v))
		case 1:
			all = append(all, name(v), name(end))
		default:
			all = append(all, name(v)+t.to+name(end))
		}
		v = end
	}
	return strings.Join(all, t.comma)
}

// spread has the bits low..high.
func spread(low, high int) uint64 { return 1<<(high+1) - 1<<low }
