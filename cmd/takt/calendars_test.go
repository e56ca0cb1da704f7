package main

import (
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
	"github.com/taktsched/takt/internal/schedule"
)

// exampleSchedules are the schedules of the example calendars' jobs, by the job's name.
func exampleSchedules(t *testing.T) map[string]schedule.Schedule {
	t.Helper()
	calendars, jobs := map[string]*schedule.Calendar{}, map[string]takt.Job{}
	for _, name := range []string{"cn-workdays-2026.yaml", "trading-day.yaml"} {
		docs, err := jobfile.Parse(name, []byte(example(t, "calendars/"+name)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range docs {
			if c := docs[i].Calendar; c != nil {
				spec := jobfile.CalendarOf(&c.Spec)
				calendars[c.Metadata.Name] = &spec.Calendar
			} else {
				jobs[docs[i].Job.Metadata.Name] = docs[i].Job
			}
		}
	}
	out := map[string]schedule.Schedule{}
	for name, j := range jobs {
		spec := jobfile.SpecOf(j.Spec.Schedule)
		spec.Resolve = func(name string) *schedule.Calendar { return calendars[name] }
		s, err := schedule.Parse(spec, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = s
	}
	return out
}

func TestExampleCalendars(t *testing.T) {
	t.Parallel()
	schedules := exampleSchedules(t)
	for _, c := range []struct{ job, after, next string }{
		{"settle", "2026-01-03T18:00", "2026-01-04T17:30"}, // a Sunday that is worked
		{"settle", "2026-02-14T18:00", "2026-02-24T17:30"}, // the spring festival
		{"settle", "2026-09-19T18:00", "2026-09-20T17:30"},
		{"settle", "2026-09-30T18:00", "2026-10-08T17:30"},
		{"settle", "2026-10-09T18:00", "2026-10-10T17:30"},
		{"settle", "2026-10-10T18:00", "2026-10-12T17:30"},
		{"watch-prices", "2026-09-30T09:00", "2026-09-30T09:30"},
		{"watch-prices", "2026-09-30T11:20", "2026-09-30T13:00"}, // lunch
		{"watch-prices", "2026-09-30T14:50", "2026-10-08T09:30"},
		{"watch-prices", "2026-10-09T14:50", "2026-10-12T09:30"}, // no trade on a Saturday that is worked
	} {
		zone := schedule.Zone(schedules[c.job])
		after, err := time.ParseInLocation("2006-01-02T15:04", c.after, zone)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := schedules[c.job].Next(after)
		if got := at.In(zone).Format("2006-01-02T15:04"); got != c.next {
			t.Errorf("%s after %s: %s, should be %s", c.job, c.after, got, c.next)
		}
	}
}
