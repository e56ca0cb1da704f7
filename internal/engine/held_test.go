package engine_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// TestPausedWhileAway: a pause that a person makes while nobody plans holds what falls into it, however much of it is late
// when somebody comes; what was missed before it and behind it runs.
func TestPausedWhileAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := engine.Default()
		cfg.CatchUpMax = rapid.IntRange(3, 100).Draw(t, "bound of a step")
		w := &outages{world: newWorld(cfg), t: t, seen: wallStart}
		w.must(w.load(false))
		def := &job.Definition{UID: job.UID{15: 1}, Namespace: "default", Name: "a", Revision: 1, CreatedAt: w.wall(), UpdatedAt: w.wall()}
		def.Spec.Pool, def.Spec.Handler, def.Spec.Overlap = "files", "index", &job.Overlap{Policy: job.OverlapAllow}
		def.Spec.Misfire.Policy, def.Spec.Misfire.Limit = job.MisfireAll, 1000
		const every = 20 * time.Second
		def.Spec.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: every}}}
		w.put(def)
		w.run(time.Second)

		second := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Second
		}
		w.mono += second("before", 300)
		p := &job.Pause{At: w.wall()}
		if rapid.Bool().Draw(t, "ends") {
			p.Until = p.At.Add(second("length", 400))
		}
		paused := *def
		paused.Pause = p
		w.db.revisions[def.UID] = []*job.Definition{&paused}
		w.db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: def.UID})
		w.mono += second("behind", 300)
		now := w.wall()
		w.fail("restart")
		w.run(time.Minute)

		for at := def.CreatedAt.Add(every); at <= now; at = at.Add(every) {
			id := job.PlannedID(def.UID, at)
			ran := w.db.live[id] != nil || w.db.history[id] != nil
			if ran == p.Covers(at) {
				t.Fatalf("pause %s to %s, now %s: %s runs: %v", instant(p.At), instant(p.Until), instant(now), instant(at), ran)
			}
		}
	})
}
