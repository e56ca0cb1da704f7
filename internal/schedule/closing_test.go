package schedule_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// kept is a schedule that keeps to the given calendars.
func kept(t *testing.T, spec schedule.Spec, calendars ...schedule.Calendar) schedule.Schedule {
	t.Helper()
	byName := map[string]*schedule.Calendar{}
	for i, c := range calendars {
		name := string(rune('a' + i))
		byName[name] = &c
		spec.Calendars = append(spec.Calendars, name)
	}
	spec.Resolve = func(name string) *schedule.Calendar { return byName[name] }
	return parse(t, spec, time.Time{})
}

// TestWeekdayNames: every weekday has its name, also the one with an H, which is a spread elsewhere.
func TestWeekdayNames(t *testing.T) {
	t.Parallel()
	for _, day := range []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "thu", "MON-THU", "THU-SAT", "FRI-MON"} {
		if err := schedule.CheckCalendar(schedule.Calendar{Weekly: []string{day}}); err != nil {
			t.Errorf("%s: %v", day, err)
		}
	}
	for _, day := range []string{"H", "h", "H(1-2)", "h(1-2)", "MON,TUE", "MON/2", "*"} {
		if err := schedule.CheckCalendar(schedule.Calendar{Weekly: []string{day}}); err == nil {
			t.Errorf("%s is taken", day)
		}
	}
}

// questions counts the questions that a search puts to the schedule under its calendars.
func questions(s schedule.Schedule, after time.Time) (n int, at time.Time, ok bool) {
	s = schedule.Counting(s, &n)
	at, ok = s.Next(after)
	return n, at, ok
}

// TestClosedForLong: however dense a schedule is, what its calendars close is not walked instant by instant, and an end of
// the search is never taken for an instant that is open later.
func TestClosedForLong(t *testing.T) {
	t.Parallel()
	never := schedule.Calendar{Weekly: []string{"none"}, Open: []schedule.Dates{{From: "2020-01-01"}}}
	late := schedule.Calendar{Weekly: []string{"none"}, Open: []schedule.Dates{{From: "2040-01-01"}}}
	second := schedule.Calendar{Daily: []schedule.Window{{From: "09:00:00", To: "09:00:01"}}}
	morning := schedule.Calendar{Daily: []schedule.Window{{From: "09:00", To: "12:00"}}}
	evening := schedule.Calendar{Daily: []schedule.Window{{From: "18:00", To: "24:00"}}}
	all := []schedule.ClosedPolicy{schedule.ClosedSkip, schedule.ClosedNext, schedule.ClosedPrevious}
	for _, c := range []struct {
		name      string
		calendars []schedule.Calendar
		want      string
		most      int // questions
	}{
		{"never open", []schedule.Calendar{never}, "", 80_000},
		{"open late", []schedule.Calendar{late}, "2040-01-01T05:00:00Z", 10_000},
		{"one second of a day", []schedule.Calendar{second}, "2026-06-02T13:00:00Z", 20},
		{"hours that never meet", []schedule.Calendar{morning, evening}, "", 80_000},
	} {
		for _, policy := range all {
			s := kept(t, schedule.Spec{Cron: "* * * * * *", TimeZone: "America/New_York", Closed: policy}, c.calendars...)
			n, at, ok := questions(s, instant(t, "2026-06-01T14:00:00Z"))
			got := ""
			if ok {
				got = at.Format(time.RFC3339)
			}
			if got != c.want || n > c.most {
				t.Errorf("%s, %s: %q after %d questions, want %q after at most %d", c.name, policy, got, n, c.want, c.most)
			}
		}
	}
}

// TestMovedOverSteps: what moves to a day on which the clock steps keeps its time of day, moves on by the length of a gap,
// and is not lost when that turns its order around.
func TestMovedOverSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, closed, cron, after string
		want                      []string
	}{
		{"America/New_York", "2026-03-07", "30 2 7 3 *", "2026-03-01T00:00:00Z", []string{"2026-03-08T03:30:00-04:00"}},
		{"Europe/Berlin", "2026-03-28", "30 2 28 3 *", "2026-03-01T00:00:00Z", []string{"2026-03-29T03:30:00+02:00"}},
		{"America/New_York", "2026-10-31", "30 1 31 10 *", "2026-03-01T00:00:00Z", []string{"2026-11-01T01:30:00-04:00"}},
		{"Europe/Berlin", "2026-10-24", "30 2 24 10 *", "2026-03-01T00:00:00Z", []string{"2026-10-25T02:30:00+02:00"}},
		{"America/New_York", "2026-03-07", "0,30 2,3 7 3 *", "2026-03-01T00:00:00Z", []string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00"}},
		{"America/New_York", "2026-03-07", "15 2 7 3 *", "2026-03-01T00:00:00Z", []string{"2026-03-08T03:15:00-04:00"}},
	} {
		s := kept(t, schedule.Spec{Cron: c.cron, TimeZone: c.zone, Closed: schedule.ClosedNext, End: instant(t, "2026-12-31T00:00:00Z")},
			schedule.Calendar{Closed: []schedule.Dates{{From: schedule.Date(c.closed)}}})
		checkFires(t, s, c.zone, c.after, c.want)
	}
	// 02:30 goes behind 03:00: neither is lost, whichever comes first.
	s := kept(t, schedule.Spec{Cron: "0 30 2 7 3 ? 2026", TimeZone: "America/New_York", Closed: schedule.ClosedNext},
		schedule.Calendar{Closed: []schedule.Dates{{From: "2026-03-07"}}})
	checkFires(t, s, "America/New_York", "2026-03-08T03:00:00-04:00", []string{"2026-03-08T03:30:00-04:00"})
	s = kept(t, schedule.Spec{Cron: "*/45 2-3 * * *", TimeZone: "America/New_York", Closed: schedule.ClosedNext},
		schedule.Calendar{Closed: []schedule.Dates{{From: "2026-03-07"}}})
	checkFires(t, s, "America/New_York", "2026-03-07T00:00:00Z", []string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:45:00-04:00", "2026-03-09T02:00:00-04:00"})
}

func checkFires(t *testing.T, s schedule.Schedule, zone, after string, want []string) {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at := instant(t, after)
	for i, w := range want {
		next, ok := s.Next(at)
		if got := next.In(location).Format(time.RFC3339); !ok || got != w {
			t.Errorf("%s after %s: instant %d is %s (%v), want %s", zone, after, i, got, ok, w)
			return
		}
		at = next
	}
}

// TestWindowsThatFire: whether anything lies between start and end is not judged by how far one search looks, nor by an
// anchor that is not known yet.
func TestWindowsThatFire(t *testing.T) {
	t.Parallel()
	holidays := schedule.Calendar{Weekly: []string{"none"}, Open: []schedule.Dates{{From: "2030-01-01"}}}
	kept(t, schedule.Spec{Cron: "0 9 * * *", End: instant(t, "2032-01-01T00:00:00Z")}, holidays)
	for _, spec := range []schedule.Spec{
		{Cron: "0 0 0 1 1 ? 2027", End: instant(t, "2028-01-01T00:00:00Z")},
		{Cron: "0 0 0 1 1 ? 2099", End: instant(t, "2100-01-01T00:00:00Z")},
		{At: instant(t, "2026-01-01T00:00:00Z"), End: instant(t, "2200-01-01T00:00:00Z")},
		{Every: 30 * 24 * time.Hour, Start: instant(t, "2026-12-01T00:00:00Z"), End: instant(t, "2026-12-10T00:00:00Z")},
	} {
		for _, anchor := range []time.Time{{}, time.Unix(0, 0), instant(t, "2026-11-20T00:00:00Z")} {
			if _, err := schedule.Parse(spec, anchor); err != nil {
				t.Errorf("%+v from %s: %v", spec, anchor, err)
			}
		}
	}
}
