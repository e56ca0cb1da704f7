package engine_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// TestEditMeetsOutage: an edit of a schedule arrives in the very step that finds what was missed before it. What the old
// schedule owes then is given up, and nothing is made of it by the new one.
func TestEditMeetsOutage(t *testing.T) {
	w := newWorld(engine.Default())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.load(false))
	def := &job.Definition{UID: job.UID{15: 1}, Namespace: "default", Name: "a", Revision: 1, CreatedAt: w.wall(), UpdatedAt: w.wall()}
	def.Spec.Pool, def.Spec.Handler, def.Spec.Overlap = "files", "index", &job.Overlap{Policy: job.OverlapAllow}
	def.Spec.Misfire.Policy, def.Spec.Misfire.Limit = job.MisfireAll, 1000
	def.Spec.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: 20 * time.Second}}}
	put := func(d *job.Definition) {
		w.db.revisions[d.UID] = append(w.db.revisions[d.UID], d)
		w.db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: d.UID})
		w.want.Inbox = true
	}
	put(def)
	must(w.step())
	must(w.settle())

	w.mono += 605 * time.Second
	edited := *def
	edited.Revision, edited.UpdatedAt = 2, w.wall()
	edited.Spec.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: 30 * time.Second}}}
	put(&edited)
	must(w.step(w.read()))
	must(w.settle())
	for range 20 {
		w.mono += time.Second
		must(w.step())
		must(w.settle())
	}

	for at := wallStart.Add(10 * time.Second); at <= wallStart.Add(600*time.Second); at = at.Add(10 * time.Second) {
		fates := 0
		if id := job.PlannedID(def.UID, at); w.db.live[id] != nil || w.db.history[id] != nil {
			fates++
		}
		old := at.Sub(wallStart)%(20*time.Second) == 0
		for _, d := range w.db.decisions {
			if old && d.From <= at && at <= d.To {
				fates++
			}
		}
		if want := map[bool]int{true: 1}[old]; fates != want {
			t.Errorf("%s has %d fates, should have %d", instant(at), fates, want)
		}
	}
}
