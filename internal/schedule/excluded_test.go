package schedule_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// What calendars leave out is told, up to a bound; what they move is not left out.
func TestExcluded(t *testing.T) {
	t.Parallel()
	spec := schedule.Spec{Cron: "0 9 * * *", Calendars: []string{"week"}, Resolve: func(string) *schedule.Calendar {
		return &schedule.Calendar{Weekly: []string{"MON-FRI"}, Closed: []schedule.Dates{{From: "2026-01-01", Name: "New Year"}}}
	}}
	parse := func() schedule.Schedule {
		s, err := schedule.Parse(spec, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	from, to := instant(t, "2025-12-31T09:00:00Z"), instant(t, "2026-01-04T09:00:00Z")
	all, more := schedule.Excluded(parse(), from, to, 9)
	if len(all) != 3 || more || all[0].Why != "excluded by calendar week (New Year)" || !all[2].At.Equal(to) {
		t.Errorf("%v, %v", all, more)
	}
	if all, more = schedule.Excluded(parse(), from, to, 2); len(all) != 2 || !more {
		t.Errorf("at most two: %v, %v", all, more)
	}
	spec.Closed = schedule.ClosedNext
	if all, more = schedule.Excluded(parse(), from, to, 9); len(all) != 0 || more {
		t.Errorf("moved: %v, %v", all, more)
	}
	spec.Calendars, spec.Closed = nil, ""
	if all, _ = schedule.Excluded(parse(), from, to, 9); len(all) != 0 {
		t.Errorf("without calendars: %v", all)
	}
}

// Why nothing comes is told by the calendar that closes it, be it alone or with others.
func TestSilence(t *testing.T) {
	t.Parallel()
	known := map[string]*schedule.Calendar{"open": {}, "mon": {Weekly: []string{"MON"}}, "tue": {Weekly: []string{"TUE"}},
		"night": {Daily: []schedule.Window{{From: "00:00", To: "06:00"}}}, "over": {Closed: []schedule.Dates{{From: "2000-01-01", To: "2999-12-31"}}}}
	after := instant(t, "2026-01-01T00:00:00Z")
	has := func(s schedule.Schedule) bool {
		_, ok := s.Next(after)
		return ok
	}
	for _, c := range []struct {
		calendars []string
		closed    schedule.ClosedPolicy
		want      string
	}{
		{[]string{"open", "over"}, "", "calendar over closes all of them"},
		{[]string{"open", "over"}, schedule.ClosedNext, "calendar over closes all of them"},
		{[]string{"night"}, schedule.ClosedPrevious, "calendar night closes all of them"},
		{[]string{"mon", "open", "tue"}, "", "calendars mon, open, tue together close all of them"},
		{[]string{"night", "open", "over"}, "", "calendars night, over close all of them, each by itself"},
	} {
		s, err := schedule.Parse(schedule.Spec{Cron: "0 9 * * *", Calendars: c.calendars, Closed: c.closed,
			Resolve: func(name string) *schedule.Calendar { return known[name] }}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if has(s) {
			t.Errorf("%v: it has an instant", c.calendars)
		}
		if got := schedule.Silence(s, has); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.calendars, c.closed, got, c.want)
		}
	}
	s, err := schedule.Parse(schedule.Spec{Cron: "0 0 0 1 1 ? 2020", Calendars: []string{"over"}, Resolve: func(name string) *schedule.Calendar { return known[name] }}, time.Time{})
	if got := schedule.Silence(s, has); err != nil || got != "the expression names none" {
		t.Errorf("a year that has passed: %q, %v", got, err)
	}
}
