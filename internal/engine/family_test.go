package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// newFamilyTown is a busy town where some jobs run after others and move as they do: a child, a grandchild, one after the newest
// of two parents, and one with instants of its own.
func newFamilyTown(seed uint64, sw engine.Switches) *town {
	t := newBusyTown(seed, sw)
	t.jobs = append(t.jobs,
		&resident{name: "f", steady: true, after: []job.After{{Job: "a", On: job.OnFinished}}},
		&resident{name: "g", steady: true, after: []job.After{{Job: "f", On: job.OnFinished}}},
		&resident{name: "h", steady: true, after: []job.After{{Job: "a", On: job.OnFinished, Match: job.MatchLatest}, {Job: "b", On: job.OnFinished, Match: job.MatchLatest}}},
		&resident{name: "i", steady: true, after: []job.After{{Job: "a", On: job.OnFinished, Match: job.MatchLatest, Within: 10 * time.Second}}, every: 4 * time.Second},
	)
	return t
}

// grow makes the job of a resident that runs after others what it is.
func (j *resident) grow(spec *job.Spec) {
	spec.After, spec.Schedules = j.after, nil
	if j.every > 0 {
		spec.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: j.every}}}
	}
}

// heirs tells whether every end of an only parent led to something: an execution somewhere, or a decision. It returns how many did.
func (t *town) heirs() (n int, err error) {
	for _, j := range t.jobs {
		def := t.db().newest(j.uid)
		if def == nil || len(j.after) != 1 || j.after[0].Matching() != job.MatchPlanned {
			continue
		}
		for _, w := range t.worlds {
			for id, r := range w.db.history {
				if r.row.JobUID != t.db().named(j.after[0].Job) || r.row.EndedAt <= def.CreatedAt || t.justEnded(&r.row) {
					continue
				}
				child, at := engine.TargetOf(def, &r.row, nil)
				if t.db().anywhere(child) == nil && !t.decided(j.uid, at) {
					return n, fmt.Errorf("R5: %s of job %s ended at %s, and nothing came of it in job %s", id, r.row.Job, instant(r.row.EndedAt), j.name)
				}
				n++
			}
		}
	}
	return n, nil
}

// fresh tells that an entry is about the end of a parent that has just ended: with the policy replace some do until the last moment.
func (t *town) fresh(e engine.Entry) bool {
	r := t.db().anywhere(e.Execution)
	return e.Kind == engine.EntryParentEnded && r != nil && t.justEnded(&r.row)
}

func (t *town) justEnded(x *job.Execution) bool { return x.EndedAt > t.wall().Add(-5*time.Second) }

func (t *town) decided(u job.UID, at job.Instant) bool {
	for _, w := range t.worlds {
		for _, d := range w.db.decisions {
			if d.Job == u && d.From <= at && at <= d.To {
				return true
			}
		}
	}
	return false
}

// TestMovesOfFamilies: what runs after others obeys its overlap policy and is not lost, wherever parents and children have moved.
func TestMovesOfFamilies(t *testing.T) {
	born, sent := 0, 0
	for _, seed := range someSeeds(*seedsFlag) {
		if *seedFlag != 0 {
			seed = *seedFlag
		}
		town := newFamilyTown(seed, engine.Switches{})
		err := town.play(3*time.Minute, 90*time.Second)
		if err == nil {
			var n int
			n, err = town.heirs()
			born += n
		}
		if err != nil {
			t.Fatalf("seed %d (go test ./internal/engine -run MovesOfFamilies -seed %d): %v", seed, seed, err)
		}
		for _, w := range town.worlds {
			sent += w.db.arrivals
		}
	}
	if born == 0 {
		t.Error("no parent's end led to anything")
	}
	t.Logf("%d ends of parents led to something, %d executions were sent", born, sent)
}
