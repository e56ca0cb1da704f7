package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

func fieldsOf(all []*schedule.Error) (fields []string) {
	for _, e := range all {
		fields = append(fields, e.Field)
	}
	return fields
}

// All faults of a schedule are told at once, and none that only follows from another one.
func TestFaults(t *testing.T) {
	t.Parallel()
	start := instant(t, "2026-01-02T00:00:00Z")
	open := func(string) *schedule.Calendar { return &schedule.Calendar{} }
	for _, c := range []struct {
		spec schedule.Spec
		want []string
	}{
		{schedule.Spec{Cron: "0 3 * * *"}, nil},
		{schedule.Spec{Cron: "61 3 * * *", TimeZone: "Mars/Base", DST: schedule.DST{Gap: "jump"}, Jitter: 2 * time.Hour}, []string{"dst.gap", "timeZone", "cron", "jitter"}},
		{schedule.Spec{Cron: "CRON_TZ=Mars/Base 61 * * * *"}, []string{"timeZone"}},
		{schedule.Spec{Cron: "0 0 9 ? * 9#3", Dialect: "quarz"}, []string{"dialect"}},
		{schedule.Spec{Cron: "61 0 1 1 *", Start: start, End: start.Add(time.Minute)}, []string{"cron"}},
		{schedule.Spec{Cron: "61 0 1 1 *", Start: start, End: start.Add(-time.Minute)}, []string{"cron", "endAt"}},
		{schedule.Spec{Cron: "0 0 1 1 *", Start: start, End: start.Add(time.Minute), Jitter: -1}, []string{"jitter"}},
		{schedule.Spec{Every: 1, Phase: time.Hour, Closed: "next"}, []string{"every", "closed"}},
		{schedule.Spec{Every: time.Hour, Cron: "61 * * * *"}, []string{""}},
		{schedule.Spec{}, []string{""}},
		{schedule.Spec{At: start, Dialect: "unix5", TimeZone: "UTC", DST: schedule.DST{Gap: "skip"}}, []string{"timeZone", "dialect", "dst"}},
		{schedule.Spec{Cron: "0 3 * * *", Calendars: []string{"a"}, Closed: "later", Jitter: -1, Resolve: open}, []string{"closed", "jitter"}},
		{schedule.Spec{Cron: "0 3 * * *", Calendars: []string{"a"}, Jitter: -1}, []string{"calendars[0]", "jitter"}},
	} {
		if got := fieldsOf(schedule.Faults(c.spec, time.Time{})); !slices.Equal(got, c.want) {
			t.Errorf("%+v: faults of %q, want %q", c.spec, got, c.want)
		}
	}
}

// All faults of a calendar are told at once, each where it stands.
func TestCalendarFaults(t *testing.T) {
	t.Parallel()
	c := schedule.Calendar{TimeZone: "Mars/Base", Weekly: []string{"MON", "FOO", "BAR"}, Daily: []schedule.Window{{From: "9", To: "10:00"}},
		Open: []schedule.Dates{{From: "2026-01-01"}, {From: "tomorrow"}}, Closed: []schedule.Dates{{From: "2026-02-03", To: "2026-02-01"}, {From: "2026-02-01", To: "x"}}}
	want := []string{"timeZone", "weekly[1]", "weekly[2]", "daily[0]", "open[1].from", "closed[0]", "closed[1].to"}
	if got := fieldsOf(schedule.CalendarFaults(c)); !slices.Equal(got, want) {
		t.Errorf("faults of %q, want %q", got, want)
	}
	if c.Weekly[1] != "FOO" || c.Open[1].From != "tomorrow" {
		t.Errorf("the calendar was changed: %+v", c)
	}
	if got := schedule.CalendarFaults(schedule.Calendar{Weekly: []string{"none"}}); len(got) != 1 || got[0].Field != "weekly" {
		t.Errorf("a calendar that is never open: %v", got)
	}
}
