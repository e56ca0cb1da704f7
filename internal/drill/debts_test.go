package drill_test

import (
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// TestDebtsOverRestarts: a job catches up for longer than its server lives. The next server goes on with what is owed, and
// plans what is due of the other jobs meanwhile.
func TestDebtsOverRestarts(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 121, classicLease)
		c.start()
		all := &takt.MisfireSpec{Policy: "all", Limit: 100}
		c.put("slow", takt.JobSpec{Pool: "p", Handler: "work", Params: raw(t, work{Steps: 10, StepMs: 1000}), Misfire: all,
			Overlap: &takt.OverlapSpec{Policy: "queue", MaxQueued: new(1)}, Schedule: &takt.ScheduleSpec{Every: takt.Duration(30 * time.Second)}})
		c.put("steady", takt.JobSpec{Pool: "p", Handler: "work", Params: raw(t, work{Steps: 1, StepMs: 100}), Misfire: all,
			Schedule: &takt.ScheduleSpec{Every: takt.Duration(10 * time.Second)}})
		c.join("A", 4)
		time.Sleep(time.Minute)
		c.end(true)
		time.Sleep(15 * time.Minute)
		c.start()
		for range 2 {
			time.Sleep(50 * time.Second)
			c.end(true)
			time.Sleep(time.Second)
			c.start()
		}
		back := job.InstantOf(time.Now())
		time.Sleep(2 * time.Minute)
		owing := job.InstantOf(time.Now())
		time.Sleep(20 * time.Minute)
		h := c.close()
		onTime, late := 0, 0
		for _, x := range h.Executions {
			switch {
			case x.Job == "steady" && x.PlannedAt > back && x.PlannedAt < owing && x.Trigger == job.TriggerSchedule:
				onTime++
			case x.Job == "slow" && x.Trigger == job.TriggerCatchUp:
				if late++; !x.State.Ended() {
					t.Errorf("%s of %s is %s", x.ID, x.PlannedAt, x.State)
				}
			}
		}
		if onTime < 11 {
			t.Errorf("%d instants of the steady job were planned in two minutes, want 12", onTime)
		}
		if late < 25 {
			t.Errorf("%d missed instants of the slow job ran, want all of about 28", late)
		}
		runs := spans(h, "slow")
		for i := 1; i < len(runs); i++ {
			if runs[i].begin.Before(runs[i-1].end) {
				t.Errorf("%s begins before %s has ended", runs[i].id, runs[i-1].id)
			}
		}
	})
}
