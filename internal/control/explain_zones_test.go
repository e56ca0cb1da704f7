package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// A reading without an offset says in which time zone it was read, when the schedules of the job have several, and takes one behind it.
func TestExplainNamesTheZoneOfAReading(t *testing.T) {
	c, _ := open(t, asked(), nil)
	offices := put("offices", "web")
	offices.Spec.Schedules = []job.Schedule{
		{ID: "cn", Spec: schedule.Spec{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai"}},
		{ID: "de", Spec: schedule.Spec{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", DST: schedule.DST{Gap: schedule.GapShift}}},
		{ID: "rate", Spec: schedule.Spec{Every: 7 * time.Hour}},
	}
	mustPut(t, c, offices)
	one := put("one", "web")
	one.Spec.Schedules = []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai"}}}
	mustPut(t, c, one)
	const named = "read on the clocks of Asia/Shanghai, as the first schedule has them; others have Europe/Berlin"
	for _, x := range []struct {
		job, at, is, says, silent string
		want                      control.Verdict
	}{
		{"offices", "2026-03-03T09:00", "2026-03-03T01:00:00Z", named, "", control.VerdictWillRun},
		{"offices", "2026-03-03T02:30", "2026-03-02T18:30:00Z", named, "", control.VerdictNotPlanned},
		{"offices", "2026-03-03T02:30[Europe/Berlin]", "2026-03-03T01:30:00Z", "", "read on", control.VerdictWillRun},
		{"offices", "2026-03-29T02:30[Europe/Berlin]", "2026-03-29T01:30:00Z", "02:30 does not exist on 2026-03-29 in Europe/Berlin", "read on", control.VerdictWillRun},
		{"offices", "2026-03-03T02:30:00+01:00", "2026-03-03T01:30:00Z", "", "read on", control.VerdictWillRun},
		{"one", "2026-03-03T09:00", "2026-03-03T01:00:00Z", "", "read on", control.VerdictWillRun},
		{"one", "2026-03-03[UTC]", "2026-03-03T00:00:00Z", "", "read on", control.VerdictNotPlanned},
	} {
		got, err := c.Explain(t.Context(), "default", x.job, x.at)
		if err != nil || got.Verdict != x.want || got.At != moment(t, x.is) || !strings.Contains(got.Text, x.says) || x.silent != "" && strings.Contains(got.Text, x.silent) {
			t.Errorf("%s at %s: %s at %v: %s, %v", x.job, x.at, got.Verdict, got.At.Time(), got.Text, err)
		}
	}
}
