package control_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// Of a reading that the clocks show twice the first is meant.
func TestReadingThatComesTwice(t *testing.T) {
	now := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC)
	c, _ := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	mustPut(t, c, control.PutRequest{Namespace: "default", Name: "hours", Spec: job.Spec{Pool: "web", Handler: "index",
		Schedules: []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Cron: "30 * * * *", TimeZone: "Europe/Berlin"}}}}})
	now = time.Date(2026, 10, 27, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-10-25T02:30":     time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC),
		"2026-10-25T02:30:00Z": time.Date(2026, 10, 25, 2, 30, 0, 0, time.UTC),
	} {
		x, err := c.Explain(t.Context(), "default", "hours", text)
		if err != nil || x.At != job.InstantOf(want) {
			t.Errorf("%s is %s, %v; should be %s", text, x.At, err, want)
		}
	}
	if _, err := c.Explain(t.Context(), "default", "hours", "9999-12-31T23:59:59Z"); job.KindOf(err) != job.KindInvalid {
		t.Errorf("an instant that some zone cannot write: %v", err)
	}
}
