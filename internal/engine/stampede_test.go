package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// TestStampede: thousands of jobs have missed an instant. A step makes a bounded number of their executions, and what is
// on time is made in the step of its instant, while they are paid.
func TestStampede(t *testing.T) {
	const missed, onTime = 1000, 20
	cfg := engine.Default()
	cfg.CatchUpRate = 500
	w := newWorld(cfg)
	put := func(n int, spec schedule.Spec) {
		def := &job.Definition{UID: job.UID{14: byte(n >> 8), 15: byte(n)}, Namespace: "default", Name: fmt.Sprint("j", n), Revision: 1, CreatedAt: w.wall(), UpdatedAt: w.wall()}
		def.Spec = job.Spec{Pool: "files", Handler: "index", Overlap: &job.Overlap{Policy: job.OverlapAllow}, Schedules: []job.Schedule{{ID: "main", Spec: spec}}}
		w.db.revisions[def.UID] = []*job.Definition{def}
		w.db.cursors[cursorKey{def.UID, "main"}] = job.Cursor{Job: def.UID, Schedule: "main", Revision: 1, Next: wallStart.Add(10 * time.Minute)}
		w.db.planners[def.UID] = 0
	}
	for n := range missed {
		put(n+1, schedule.Spec{Cron: "10 * * * *"})
	}
	for n := range onTime {
		put(missed+n+1, schedule.Spec{Cron: "*/2 * * * * *"})
	}
	caught, most, late := 0, 0, 0
	w.show = func(_ *world, r *engine.Result) {
		n := 0
		for _, x := range r.Batch.Executions {
			switch {
			case x.From != "":
			case x.Row.Trigger == job.TriggerCatchUp:
				n++
			case w.wall().Sub(x.Row.PlannedAt) > 50*time.Millisecond && x.Row.PlannedAt > wallStart.Add(30*time.Minute):
				late++
			}
		}
		caught, most = caught+n, max(most, n)
	}
	w.mono = 30 * time.Minute
	began := time.Now()
	if err := w.load(false); err != nil {
		t.Fatal(err)
	}
	for end := w.mono + 6*time.Second; w.mono < end; {
		if err := w.settle(); err != nil {
			t.Fatal(err)
		}
		at, _ := w.nextWake()
		w.mono = min(end, max(at, w.mono+time.Millisecond))
		if err := w.step(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d caught up, at most %d in a step, %d on time late, %v of real time", caught, most, late, time.Since(began))
	if caught != missed+onTime || most > 150 || late > 0 {
		t.Errorf("%d of %d caught up, at most %d in a step, %d instants on time were late", caught, missed+onTime, most, late)
	}
}
