package schedule_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

func TestPassed(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-06-01T12:00:00Z")
	for _, c := range []struct {
		spec schedule.Spec
		want string
	}{
		{schedule.Spec{At: now}, "at"},
		{schedule.Spec{At: now, TimeZone: "UTC", Calendars: []string{"c"}, Closed: schedule.ClosedNext}, "at"}, // calendars are not asked
		{schedule.Spec{At: now.Add(time.Minute)}, ""},
		{schedule.Spec{Cron: "* * * * *"}, ""},
		{schedule.Spec{Cron: "* * * * *", End: now}, "endAt"},
		{schedule.Spec{Every: time.Hour, End: now.Add(-time.Hour)}, "endAt"},
		{schedule.Spec{Every: time.Hour, End: now.Add(time.Minute)}, ""}, // its anchor decides
		{schedule.Spec{Cron: "0 0 * * *", End: now.Add(time.Hour)}, "endAt"},
		{schedule.Spec{Cron: "0 0 * * *", End: now.Add(24 * time.Hour)}, ""},
		{schedule.Spec{Cron: "0 H * * *", End: now.Add(time.Hour)}, ""}, // the job's name decides
		{schedule.Spec{Cron: "0 0 0 1 1 ? 2025"}, "cron"},
		{schedule.Spec{Cron: "0 0 0 1 1 ? 2027"}, ""},
		{schedule.Spec{Cron: "no cron"}, ""},
	} {
		if got := schedule.Passed(c.spec, now); got != c.want {
			t.Errorf("%+v: %q, want %q", c.spec, got, c.want)
		}
	}
}
