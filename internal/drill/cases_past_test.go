package drill_test

import (
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// TestBackfillOverCrashes: a range of the past is run while the server dies three times and a worker once. Each instant gets
// one execution, which succeeds; what ran before is passed over; nothing is unexplained.
func TestBackfillOverCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 120, classicLease)
		c.start()
		c.put("fill", takt.JobSpec{Pool: "p", Handler: "work", Params: raw(t, work{Steps: 2, StepMs: 300}), Overlap: &takt.OverlapSpec{Policy: "allow"},
			Schedule: &takt.ScheduleSpec{Cron: "0 * * * *"}})
		a := c.join("A", 4)
		c.join("B", 2)
		time.Sleep(time.Second)
		const hours = 120
		to := time.Now().Truncate(time.Hour)
		in := takt.BackfillRequest{From: to.Add(-(hours - 1) * time.Hour).Format(time.RFC3339), To: to.Format(time.RFC3339), MaxParallel: 3, Author: "ann"}
		b, err := c.people.Backfill(t.Context(), "fill", in)
		if err != nil || b.Total != hours {
			t.Fatalf("%+v, %v", b, err)
		}
		for range 3 {
			time.Sleep(4 * time.Second)
			c.end(true)
			time.Sleep(time.Second)
			c.start()
		}
		a.kill()
		for end := time.Now().Add(10 * time.Minute); !b.Ended() && time.Now().Before(end); time.Sleep(time.Second) {
			if now, err := c.people.BackfillByID(t.Context(), b.ID); err == nil {
				b = now
			}
		}
		if b.State != "done" || b.Succeeded+b.Skipped != hours || b.Failed != 0 || len(b.Running) > 0 {
			t.Errorf("the backfill came to %+v", b)
		}
		in.Reverse = true
		if again, err := c.people.Backfill(t.Context(), "fill", in); err != nil {
			t.Error(err)
		} else {
			time.Sleep(5 * time.Second)
			again, err = c.people.BackfillByID(t.Context(), again.ID)
			if err != nil || again.State != "done" || again.Skipped != hours {
				t.Errorf("a second one came to %+v, %v", again, err)
			}
		}
		x, err := c.people.Explain(t.Context(), "fill", to.Add(-5*time.Hour).Format(time.RFC3339))
		if err != nil || x.Verdict != "ran" || x.Execution == nil || x.Execution.Trigger != string(job.TriggerBackfill) {
			t.Errorf("explained as %+v, %v", x, err)
		}
		c.settled(5 * time.Minute)
		h := c.close()
		h.Beside = map[string]bool{"fill": true}
		sound(t, h)
		made := map[job.Instant]int{}
		for _, x := range h.Executions {
			if x.Trigger == job.TriggerBackfill {
				if made[x.PlannedAt]++; x.State != job.ExecutionSucceeded {
					t.Errorf("%s of %s is %s", x.ID, x.PlannedAt, x.State)
				}
			}
		}
		if len(made) != hours {
			t.Errorf("%d instants ran, want %d", len(made), hours)
		}
		for at, n := range made {
			if n != 1 {
				t.Errorf("%s has %d executions", at, n)
			}
		}
	})
}
