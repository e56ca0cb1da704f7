package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/schedule"
)

// workdays is a part of the Chinese calendar of 2026: holidays, and weekends that are workdays for them (调休).
var workdays = schedule.Calendar{
	Weekly: []string{"MON-FRI"},
	Closed: []schedule.Dates{{From: "2026-02-15", To: "2026-02-23", Name: "春节"}, {From: "2026-10-01", To: "2026-10-07", Name: "国庆节"}, {From: "01-01", Name: "元旦"}},
	Open:   []schedule.Dates{{From: "2026-02-14", Name: "调休"}, {From: "2026-02-28", Name: "调休"}, {From: "2026-10-10", Name: "调休"}},
}

var trading = schedule.Calendar{
	TimeZone: "Asia/Shanghai", Weekly: []string{"MON-FRI"},
	Daily:  []schedule.Window{{From: "09:30", To: "11:30"}, {From: "13:00", To: "15:00"}},
	Closed: []schedule.Dates{{From: "2026-10-01", To: "2026-10-07"}},
}

func resolve(name string) *schedule.Calendar {
	switch name {
	case "cn":
		return &workdays
	case "trading":
		return &trading
	case "never":
		return &schedule.Calendar{Weekly: []string{"none"}}
	case "paydays":
		return &schedule.Calendar{Weekly: []string{"none"}, Open: []schedule.Dates{{From: "2026-03-10"}, {From: "2026-04-10"}}}
	}
	return nil
}

func TestCalendars(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spec  schedule.Spec
		after string
		want  []string // RFC 3339, with the note behind a blank
	}{
		{"workdays", schedule.Spec{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}}, "2026-02-13T00:00:00+08:00",
			[]string{"2026-02-13T09:00:00+08:00", "2026-02-14T09:00:00+08:00", "2026-02-24T09:00:00+08:00", "2026-02-25T09:00:00+08:00", "2026-02-26T09:00:00+08:00",
				"2026-02-27T09:00:00+08:00", "2026-02-28T09:00:00+08:00", "2026-03-02T09:00:00+08:00"}},
		{"month's first, next workday", schedule.Spec{Cron: "0 9 1 * *", TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}, Closed: schedule.ClosedNext}, "2026-09-15T00:00:00+08:00",
			[]string{"2026-10-08T09:00:00+08:00 moved from 2026-10-01: cn is closed (国庆节)", "2026-11-02T09:00:00+08:00 moved from 2026-11-01: cn is closed", "2026-12-01T09:00:00+08:00",
				"2027-01-04T09:00:00+08:00 moved from 2027-01-01: cn is closed (元旦)"}},
		{"month's first, workday before", schedule.Spec{Cron: "0 9 1 * *", TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}, Closed: schedule.ClosedPrevious}, "2026-09-15T00:00:00+08:00",
			[]string{"2026-09-30T09:00:00+08:00 moved from 2026-10-01: cn is closed (国庆节)", "2026-10-30T09:00:00+08:00 moved from 2026-11-01: cn is closed"}},
		{"several collapse", schedule.Spec{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}, Closed: schedule.ClosedNext}, "2026-09-30T12:00:00+08:00",
			[]string{"2026-10-08T09:00:00+08:00", "2026-10-09T09:00:00+08:00", "2026-10-10T09:00:00+08:00", "2026-10-12T09:00:00+08:00"}},
		{"hours", schedule.Spec{Cron: "*/30 * * * *", TimeZone: "UTC", Calendars: []string{"trading"}}, "2026-09-30T05:40:00Z", // 13:40 there
			[]string{"2026-09-30T06:00:00Z", "2026-09-30T06:30:00Z", "2026-10-08T01:30:00Z", "2026-10-08T02:00:00Z", "2026-10-08T02:30:00Z", "2026-10-08T03:00:00Z", "2026-10-08T05:00:00Z"}},
		{"inclusion", schedule.Spec{Cron: "0 8,20 * * *", Calendars: []string{"paydays"}}, "2026-01-01T00:00:00Z",
			[]string{"2026-03-10T08:00:00Z", "2026-03-10T20:00:00Z", "2026-04-10T08:00:00Z", "2026-04-10T20:00:00Z", ""}},
		{"a rate", schedule.Spec{Every: 36 * time.Hour, Phase: 12 * time.Hour, TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}}, "2026-10-08T00:00:00+08:00",
			[]string{"2026-10-09T08:00:00+08:00", "2026-10-10T20:00:00+08:00", "2026-10-12T08:00:00+08:00"}},
		{"once, moved", schedule.Spec{At: instant(t, "2026-10-03T09:00:00+08:00"), TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}, Closed: schedule.ClosedNext}, "2026-10-01T00:00:00+08:00",
			[]string{"2026-10-08T09:00:00+08:00 moved from 2026-10-03: cn is closed (国庆节)", ""}},
		{"once, moved, asked late", schedule.Spec{At: instant(t, "2026-10-03T09:00:00+08:00"), TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}, Closed: schedule.ClosedNext}, "2026-10-05T00:00:00+08:00",
			[]string{"2026-10-08T09:00:00+08:00 moved from 2026-10-03: cn is closed (国庆节)", ""}},
		{"two calendars", schedule.Spec{Cron: "0 10 * * *", TimeZone: "Asia/Shanghai", Calendars: []string{"cn", "trading"}}, "2026-10-09T12:00:00+08:00",
			[]string{"2026-10-12T10:00:00+08:00"}}, // the 10th is a workday, and no trading day
	} {
		c.spec.Resolve = resolve
		s := parse(t, c.spec, time.Time{})
		at := instant(t, c.after)
		for i, want := range c.want {
			next, ok := s.Next(at)
			got := ""
			if ok {
				got = next.In(instant(t, c.after).Location()).Format(time.RFC3339)
				if note := schedule.Note(s, next); note != "" && want != got {
					got += " " + note
				}
			}
			if got != want {
				t.Errorf("%s: instant %d is %q, want %q", c.name, i, got, want)
				break
			}
			at = next
		}
	}
}

func TestCalendarsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calendar schedule.Calendar
		field    string
	}{
		{schedule.Calendar{Weekly: []string{"none"}}, "weekly"},
		{schedule.Calendar{Weekly: []string{}}, "weekly"},
		{schedule.Calendar{Daily: []schedule.Window{}}, "daily"},
		{schedule.Calendar{Weekly: []string{"MON-FOO"}}, "weekly[0]"},
		{schedule.Calendar{Weekly: []string{"*"}}, "weekly[0]"},
		{schedule.Calendar{TimeZone: "Mars/Olympus"}, "timeZone"},
		{schedule.Calendar{Daily: []schedule.Window{{From: "9", To: "10:00"}}}, "daily[0]"},
		{schedule.Calendar{Daily: []schedule.Window{{From: "22:00", To: "02:00"}}}, "daily[0]"},
		{schedule.Calendar{Closed: []schedule.Dates{{From: "2026-02-30"}}}, "closed[0].from"},
		{schedule.Calendar{Closed: []schedule.Dates{{From: "2026-02-03", To: "2026-02-01"}}}, "closed[0]"},
		{schedule.Calendar{Closed: []schedule.Dates{{From: "2026-02-03", To: "02-05"}}}, "closed[0]"},
		{schedule.Calendar{Open: []schedule.Dates{{From: "tomorrow"}}}, "open[0].from"},
	} {
		e, ok := errors.AsType[*schedule.Error](schedule.CheckCalendar(c.calendar))
		if !ok || e.Field != c.field {
			t.Errorf("%+v: %v, want one of %s", c.calendar, e, c.field)
		}
	}
	for field, spec := range map[string]schedule.Spec{
		"calendars[0]": {Cron: "* * * * *", Calendars: []string{"nowhere"}},
		"calendars[1]": {Cron: "* * * * *", Calendars: []string{"cn", "never"}},
		"closed":       {Cron: "* * * * *", Calendars: []string{"cn"}, Closed: "later"},
		"jitter":       {Cron: "* * * * *", Jitter: 2 * time.Hour},
		"endAt":        {Cron: "0 0 1 1 *", Start: instant(t, "2026-01-02T00:00:00Z"), End: instant(t, "2026-12-31T00:00:00Z")},
		"phase":        {Every: time.Hour, Phase: 2 * time.Hour},
	} {
		spec.Resolve = resolve
		_, err := schedule.Parse(spec, time.Time{})
		if e, ok := errors.AsType[*schedule.Error](err); !ok || e.Field != field {
			t.Errorf("%+v: %v, want one of %s", spec, err, field)
		}
	}
}

// drawnCalendar is a calendar with what its lists say of each date.
type drawnCalendar struct {
	schedule.Calendar
	open, closed map[string]bool
	week         map[time.Weekday]bool
}

func (c *drawnCalendar) isOpen(day time.Time) bool {
	key := day.Format(time.DateOnly)
	return c.open[key] || !c.closed[key] && c.week[day.Weekday()]
}

func drawCalendar(t *rapid.T, first time.Time) *drawnCalendar {
	c := &drawnCalendar{open: map[string]bool{}, closed: map[string]bool{}, week: map[time.Weekday]bool{}}
	date := func(n int) string { return first.AddDate(0, 0, n).Format(time.DateOnly) }
	for _, list := range []struct {
		dates *[]schedule.Dates
		days  map[string]bool
	}{{&c.Open, c.open}, {&c.Closed, c.closed}} {
		for range rapid.IntRange(0, 4).Draw(t, "ranges") {
			from := rapid.IntRange(0, 60).Draw(t, "from")
			to := from + rapid.IntRange(0, 9).Draw(t, "length")
			*list.dates = append(*list.dates, schedule.Dates{From: schedule.Date(date(from)), To: schedule.Date(date(to))})
			for n := from; n <= to; n++ {
				list.days[date(n)] = true
			}
		}
	}
	c.Weekly = rapid.SampledFrom([][]string{nil, {"MON-FRI"}, {"SAT-MON", "WED"}}).Draw(t, "weekly")
	for w := range 7 {
		c.week[time.Weekday(w)] = c.Weekly == nil || len(c.Weekly) == 1 && w >= 1 && w <= 5 || len(c.Weekly) == 2 && (w == 6 || w <= 1 || w == 3)
	}
	return c
}

// moves lists the instants of the plain schedule from a month before first to a month after end, each moved day by day.
func (c *drawnCalendar) moves(plain schedule.Schedule, zone *time.Location, policy schedule.ClosedPolicy, first, end time.Time) (want []time.Time) {
	step := map[schedule.ClosedPolicy]int{schedule.ClosedNext: 1, schedule.ClosedPrevious: -1}[policy]
	for at, _ := plain.Next(first.AddDate(0, 0, -30)); at.Before(end.AddDate(0, 0, 30)); at, _ = plain.Next(at) {
		local := at.In(zone)
		day := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
		if !c.isOpen(day) && step == 0 {
			continue
		}
		moved := at
		for !c.isOpen(day) {
			day = day.AddDate(0, 0, step)
			moved = onDay(day, local, zone)
		}
		want = append(want, moved)
	}
	slices.SortFunc(want, time.Time.Compare)
	return slices.CompactFunc(want, time.Time.Equal)
}

// onDay is the time of day of local on another day. Of a time that a step leaves out time.Date promises nothing, even not
// that it stays on its day: it is read by the clock as it was before the step.
func onDay(day, local time.Time, zone *time.Location) time.Time {
	at := time.Date(day.Year(), day.Month(), day.Day(), local.Hour(), local.Minute(), 0, 0, zone)
	if at.Hour() == local.Hour() && at.Minute() == local.Minute() {
		return at
	}
	_, before := day.Add(-12 * time.Hour).In(zone).Zone()
	return time.Date(day.Year(), day.Month(), day.Day(), local.Hour(), local.Minute(), 0, 0, time.FixedZone("before", before)).In(zone)
}

// The twin lists the instants of the plain schedule, and asks of each date what the calendar's lists say.
func TestCalendarsAgainstTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zoneName := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Shanghai"}).Draw(t, "zone")
		zone, err := time.LoadLocation(zoneName)
		if err != nil {
			t.Fatal(err)
		}
		first := time.Date(2018, 10, 1, 0, 0, 0, 0, time.UTC) // Sao Paulo leaves a midnight out in November
		end := first.AddDate(0, 0, 70)
		cal := drawCalendar(t, first)
		policy := rapid.SampledFrom([]schedule.ClosedPolicy{"", schedule.ClosedSkip, schedule.ClosedNext, schedule.ClosedPrevious}).Draw(t, "policy")
		spec := schedule.Spec{Cron: rapid.SampledFrom([]string{"0 9 * * *", "30 0 * * *", "0 6,18 * * 1,6,0", "0 12 */3 * *", "45 23 1,15,20 * *"}).Draw(t, "cron"), TimeZone: zoneName}
		plain, err := schedule.Parse(spec, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		spec.Calendars, spec.Closed = []string{"c"}, policy
		spec.Resolve = func(string) *schedule.Calendar { return &cal.Calendar }
		s, err := schedule.Parse(spec, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		at := first.AddDate(0, 0, 5).Add(time.Duration(rapid.IntRange(0, 40*24).Draw(t, "hours")) * time.Hour)
		for _, w := range cal.moves(plain, zone, policy, first, end) {
			if !w.After(at) || !w.Before(end) {
				continue
			}
			next, ok := s.Next(at)
			if !ok || !next.Equal(w) {
				t.Fatalf("%+v %s after %v: %v, %v; want %v", spec.Cron, policy, at.In(zone), next.In(zone), ok, w.In(zone))
			}
			schedule.Note(s, next)
			at = next
		}
	})
}

// Spread instants are the same however they are come to, stay near where they were, and rise.
func TestJitterAndWindow(t *testing.T) {
	t.Parallel()
	start, end := instant(t, "2026-01-01T06:00:00Z"), instant(t, "2026-01-02T06:00:00Z")
	for i := range 50 {
		spec := schedule.Spec{Cron: "*/10 * * * *", Jitter: 15 * time.Minute, Seed: fmt.Sprint("job", i), Start: start, End: end}
		s := parse(t, spec, time.Time{})
		var seen []time.Time
		for at, ok := s.Next(time.Time{}); ok; at, ok = s.Next(at) {
			if at.Before(start) || at.After(end) {
				t.Fatalf("%v lies outside of the window", at)
			}
			if n := len(seen); n > 0 && !at.After(seen[n-1]) {
				t.Fatalf("%v does not come after %v", at, seen[n-1])
			}
			from := schedule.Nominal(s, at)
			if d := at.Sub(from); d < 0 || d > 15*time.Minute || from.Minute()%10 != 0 || from.Second() != 0 {
				t.Fatalf("%v was moved from %v", at, from)
			}
			if again, _ := s.Next(at.Add(-time.Millisecond)); !again.Equal(at) {
				t.Fatalf("asked just before %v: %v", at, again)
			}
			seen = append(seen, at)
		}
		if len(seen) < 138 || len(seen) > 146 {
			t.Fatalf("%d instants in a day of 144", len(seen))
		}
		if n, last, done := schedule.Count(s, time.Time{}, end.Add(time.Hour), 1000); n != len(seen) || !last.Equal(seen[len(seen)-1]) || !done {
			t.Fatalf("counted %d up to %v, walked %d", n, last, len(seen))
		}
	}
}
