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
