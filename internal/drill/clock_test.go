package drill_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// TestWallClockSteps sets the wall clock an hour forth, back, back and forth, while schedules fire, shards run
// and the server is replaced: no instant fires twice, and no lease notices.
func TestWallClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, partition.Lease{})
		var off atomic.Int64
		c.wall = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
		c.start()
		c.put("every", takt.JobSpec{Pool: "p", Handler: "work", Schedule: &takt.ScheduleSpec{Every: takt.Duration(20 * time.Second)},
			Params: raw(t, work{Steps: 1, StepMs: 200})})
		c.put("cron", takt.JobSpec{Pool: "p", Handler: "work", Schedule: &takt.ScheduleSpec{Cron: "* * * * *"},
			Params: raw(t, work{Steps: 1, StepMs: 200})})
		c.put("long", takt.JobSpec{Pool: "p", Handler: "work", Shards: &takt.ShardsSpec{Count: 4},
			Params: raw(t, work{Steps: 200, StepMs: 2000, Checkpoint: 10})})
		c.join("A", 8)
		c.join("B", 8)
		long := c.mustTrigger("long", "long")
		for i, step := range []time.Duration{time.Hour, -time.Hour, -time.Hour, time.Hour} {
			time.Sleep(90 * time.Second)
			off.Add(int64(step))
			if i == 1 || i == 2 {
				time.Sleep(10 * time.Second)
				c.end(true)
				c.start()
			}
		}
		time.Sleep(90 * time.Second)
		c.ended(long)
		c.settled(time.Minute)
		h := c.close()
		sound(t, h)

		fired := map[string]map[job.Instant]int{"every": {}, "cron": {}}
		for _, x := range h.Executions {
			if x.Trigger != job.TriggerRequest {
				fired[x.Job][x.PlannedAt]++
			}
			if x.State != job.ExecutionSucceeded {
				t.Errorf("%s %s is %s", x.Job, x.ID, x.State)
			}
		}
		for name, instants := range fired {
			if len(instants) < 5 {
				t.Errorf("%s fired %d times: this proves nothing", name, len(instants))
			}
			for at, n := range instants {
				if n != 1 {
					t.Errorf("%s fired %d times for %s", name, n, at)
				}
			}
		}
		effects := map[string]int{}
		for _, e := range h.Effects {
			effects[e.Key]++
		}
		for key, n := range effects {
			if n != 1 {
				t.Errorf("%d effects of %s, want 1", n, key)
			}
		}
		for _, e := range h.Events {
			if e.Kind == engine.FactLeaseExpired || e.Kind == engine.FactLeaseGranted && e.Attempt > 1 {
				t.Errorf("a lease noticed the clock: %s of %s shard %d at %s", e.Kind, e.Job, e.Shard, e.When)
			}
		}
	})
}
