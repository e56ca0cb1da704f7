package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
)

func calendarPut(name, weekday string) store.PutCalendar {
	return store.PutCalendar{At: noon, Calendar: job.Calendar{Namespace: "ns", Name: name, Spec: job.CalendarSpec{Calendar: schedule.Calendar{Weekly: []string{weekday}}}}}
}

func keeping(name string, uid job.UID, calendars ...string) store.PutJob {
	p := put(name, "h", 1, 0)
	p.Definition.UID = uid
	p.Definition.Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "0 9 * * *", Calendars: calendars}}}
	return p
}

// Sets of calendars and jobs in any order, jobs that come and go, and deletions: none waits for another that waits for it,
// no job keeps to a calendar that is not there, and whoever names one that changes is told.
func TestRaceOfCalendars(t *testing.T) {
	t.Parallel()
	both, dsn := servers(t)
	weekdays := []string{"MON", "TUE", "WED", "THU", "FRI"}
	for r := range rounds {
		got := atOnce(both, callers, func(i int, s *postgres.Store) error {
			ctx, uid := context.Background(), job.UID{byte(r), byte(i), 1}
			a, b := fmt.Sprint("cal-", i%3), fmt.Sprint("cal-", (i+1)%3)
			one, other := fmt.Sprint("j", i%4), fmt.Sprint("j", (i+1)%4)
			switch i % 4 {
			case 0:
				_, err := s.ApplyJobs(ctx, store.ApplyJobs{Calendars: []store.PutCalendar{calendarPut(a, weekdays[(r+i)%5]), calendarPut(b, weekdays[r%5])},
					Items: []store.PutJob{keeping(one, uid, b, a), keeping(other, job.UID{byte(r), byte(i), 2}, a)}})
				return err
			case 1:
				_, _, err := s.PutJob(ctx, keeping(one, uid, a, b))
				return err
			case 2:
				if _, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: one, Deletion: job.Deletion{At: noon}}); err != nil {
					return err
				}
				_, err := s.DeleteCalendar(ctx, store.DeleteCalendar{Namespace: "ns", Name: a, At: noon})
				return err
			default:
				_, err := s.ApplyJobs(ctx, store.ApplyJobs{Items: []store.PutJob{keeping(other, uid), keeping(one, job.UID{byte(r), byte(i), 3}, b)},
					Calendars: []store.PutCalendar{calendarPut(b, weekdays[(r+i)%5])}})
				return err
			}
		})
		for v := range got {
			switch v {
			case "ok", "invalid/calendar_not_found", "conflict/calendar_in_use", "not_found/job_not_found", "not_found/calendar_not_found":
			default:
				t.Errorf("round %d: %v", r, got)
			}
		}
	}
	rows, _, err := both[0].Jobs(t.Context(), "ns", store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		d := &rows[i].Definition
		for _, name := range d.Spec.Calendars() {
			if d.Calendars[name] == nil {
				t.Errorf("job %s names %s, which is not there", d.Name, name)
			}
		}
	}
	wantNoDeadlock(t, dsn)
}
