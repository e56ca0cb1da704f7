package control_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// Of an instant in a range it is told how long after that very instant it was decided.
func TestExplainCountsFromTheInstant(t *testing.T) {
	now := wall
	c, st := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	minutely := put("minutely", "web")
	minutely.Spec.Schedules = []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Cron: "* * * * *"}}}
	uid := mustPut(t, c, minutely).Row.Definition.UID
	first := wall.Truncate(time.Minute).Add(10 * time.Minute)
	decide(t, st, job.Decision{Job: uid, Namespace: "default", Name: "minutely", Schedule: job.MainSchedule, Kind: job.DecisionMissed, Reason: job.ReasonMissedDown,
		From: job.InstantOf(first), To: job.InstantOf(first.Add(4 * time.Minute)), Count: 5, At: job.InstantOf(first.Add(5 * time.Minute))})
	now = wall.Add(time.Hour)
	wantVerdict(t, c, "minutely", first, control.VerdictMissed, "; no server planned the job from 2026-03-01T12:10:00Z to 2026-03-01T12:15:00Z; decided at")
	wantVerdict(t, c, "minutely", first.Add(time.Minute), control.VerdictMissed, ", 4m after it")
	wantVerdict(t, c, "minutely", first.Add(4*time.Minute), control.VerdictMissed, ", 1m after it")
}

// What was decided for a job that had the name before is told, when the name is another job's by now.
func TestExplainTellsDecisionsOfAnEarlierJob(t *testing.T) {
	now := wall
	c, st := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	uid := mustPut(t, c, put("lives", "web")).Row.Definition.UID
	at := wall.Truncate(time.Minute).Add(10 * time.Minute)
	decide(t, st, job.Decision{Job: uid, Namespace: "default", Name: "lives", Schedule: job.MainSchedule, Kind: job.DecisionBlocked, Reason: job.ReasonOverlapSkip,
		From: job.InstantOf(at), To: job.InstantOf(at), Count: 1, At: job.InstantOf(at.Add(time.Second))},
		job.Decision{Job: uid, Namespace: "default", Name: "lives", Schedule: job.MainSchedule, Kind: job.DecisionMissed, Reason: job.ReasonMissedDown,
			From: job.InstantOf(at.Add(5 * time.Minute)), To: job.InstantOf(at.Add(9 * time.Minute)), Count: 3, At: job.InstantOf(at.Add(10 * time.Minute))})
	now = wall.Add(time.Hour)
	if _, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "lives", Cancel: true}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, c, put("lives", "web"))
	wantVerdict(t, c, "lives", at, control.VerdictBlocked, "blocked: "+job.ReasonOverlapSkip.Text()+"; decided at 2026-03-01T12:10:01Z, 1s after it; that was an earlier job of this name: this one was created at 2026-03-01T13:00:00Z")
	wantVerdict(t, c, "lives", at.Add(time.Minute), control.VerdictNotThere, "after this instant")
	wantVerdict(t, c, "lives", at.Add(9*time.Minute), control.VerdictMissed, "; that was an earlier job of this name")
	wantVerdict(t, c, "lives", at.Add(6*time.Minute), control.VerdictNotThere, "; of what an earlier job of this name had around it, it was decided: missed: ")
}

// An instant of a closed day that runs on another one says where it went.
func TestExplainTellsWhereAClosedDayMoved(t *testing.T) {
	now := wall
	c, _ := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	if _, err := c.PutCalendar(t.Context(), calendarOf("shared", schedule.Dates{From: "2026-03-03", To: "2026-03-05", Name: "fair"})); err != nil {
		t.Fatal(err)
	}
	for _, closed := range []schedule.ClosedPolicy{schedule.ClosedNext, schedule.ClosedPrevious, schedule.ClosedSkip} {
		r := put("daily-"+string(closed), "web")
		r.Spec.Schedules = []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Cron: "0 9 * * *", Calendars: []string{"shared"}, Closed: closed}}}
		mustPut(t, c, r)
	}
	at := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	now = at.Add(-time.Hour)
	wantVerdict(t, c, "daily-next", at, control.VerdictClosed, "schedule main would have this instant, which moves to 2026-03-06T09:00:00Z; the one before")
	wantVerdict(t, c, "daily-previous", at, control.VerdictClosed, ", which moves to 2026-03-02T09:00:00Z; the one before")
	wantVerdict(t, c, "daily-skip", at, control.VerdictClosed, "schedule main would have this instant; the one before")
}
