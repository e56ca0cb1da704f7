package engine_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// sent moves what a batch sends to other partitions.
func (d *database) sent(b *engine.Batch) {
	for i := range b.Executions {
		row := &b.Executions[i].Row
		to := d.mate(row.Partition)
		if r := d.live[row.ID]; b.Executions[i].Sent && r != nil {
			delete(d.live, row.ID)
			to.live[row.ID] = r
			to.arrivals++
			to.post(engine.Entry{Kind: engine.EntryArrived, Job: row.JobUID, Execution: row.ID})
		}
	}
}

// home is where executions of a job belong by now; nil when that is here, and the newest revision is the one given.
func (d *database) home(u job.UID, revision int64) *engine.Home {
	def := d.newest(u)
	if def == nil {
		return nil
	}
	h := engine.HomeOf(def, place(def.Spec.Pool), d.planner(u), len(d.cursorsOf(u)) > 0)
	if h != nil && def.Revision == revision && h.Place == d.partition && h.Planner == d.partition {
		return nil
	}
	return h
}

// asked is the revision that was triggered here: the newest one whose pool is of this partition.
func (d *database) asked(u job.UID) *job.Definition {
	for _, def := range slices.Backward(d.revisions[u]) {
		if place(def.Spec.Pool) == d.partition {
			return def
		}
	}
	return d.newest(u)
}

// errands are what people ask of jobs that move, besides: requests for later instants, reruns and backfills.
func (t *town) errands() {
	j := t.jobs[t.r.IntN(len(t.jobs))]
	def := t.db().newest(j.uid)
	if def == nil {
		return
	}
	to := t.db().mate(place(def.Spec.Pool))
	if t.chance(25) { // written when the job was elsewhere
		old := t.db().revisions[j.uid][t.r.IntN(len(t.db().revisions[j.uid]))]
		to = t.db().mate(place(old.Spec.Pool))
	}
	switch {
	case t.chance(8):
		t.asked++
		at := t.wall().Add(time.Duration(t.r.IntN(9000)) * time.Millisecond)
		to.post(engine.Entry{Kind: engine.EntryDelayed, Job: j.uid, Execution: job.ExecutionID{0: 0xee, 14: byte(t.asked >> 8), 15: byte(t.asked)},
			Request: &engine.Request{At: at, Delayed: true}})
	case t.chance(9):
		w := t.worlds[t.r.IntN(3)]
		if all := slices.SortedFunc(maps.Keys(w.db.history), compareExecutions); len(all) > 0 {
			w.db.post(engine.Entry{Kind: engine.EntryRerun, Execution: all[t.r.IntN(len(all))]})
		}
	case t.chance(4) && len(def.Spec.Schedules) > 0:
		t.asked++
		b := job.Backfill{ID: job.ExecutionID{0: 0xff, 14: byte(t.asked >> 8), 15: byte(t.asked)}, Partition: place(def.Spec.Pool), Namespace: def.Namespace, Job: def.Name,
			JobUID: def.UID, Revision: def.Revision, At: t.wall()}
		b.To = t.wall().Add(-time.Duration(10+t.r.IntN(20)) * time.Second)
		b.From = b.To.Add(-time.Duration(t.r.IntN(30)) * time.Second)
		for _, o := range *t.db().backfills {
			if o.JobUID == j.uid && !o.Progress.State.Ended() {
				return // as the store refuses it
			}
		}
		for _, c := range t.db().cursorsOf(j.uid) {
			if c.Revision != def.Revision || c.Next != 0 && c.Next <= b.To || c.Owed != 0 && c.Owed <= b.To {
				return // as the store refuses it
			}
		}
		t.db().keepBackfill(b)
		t.db().mate(b.Partition).post(engine.Entry{Kind: engine.EntryBackfill, Job: j.uid, Execution: b.ID})
	}
}

func compareExecutions(a, b job.ExecutionID) int { return bytes.Compare(a[:], b[:]) }

// settled tells whether everything that was asked for has come to an end.
func (t *town) settled() error {
	for p, w := range t.worlds {
		for id, r := range w.db.live {
			if x := &r.row; x.Reason == job.WaitMove || x.Reason == job.WaitDelay || x.Partition != p {
				return fmt.Errorf("execution %s of partition %d is left in partition %d: %s (%s)", id, x.Partition, p, x.State, x.Reason)
			}
		}
	}
	for _, b := range *t.db().backfills {
		if !b.Progress.State.Ended() {
			return fmt.Errorf("backfill %s of partition %d has not ended: %+v", b.ID, b.Partition, b.Progress)
		}
	}
	return nil
}

func newBusyTown(seed uint64, sw engine.Switches) *town {
	t := newTown(seed, sw)
	t.serial, t.busy = true, true
	return t
}

// TestMovesFollow: what waits for its instant, what is run again and what fills back obeys the overlap policy of its job
// wherever the job has moved, and is not lost on the way.
func TestMovesFollow(t *testing.T) {
	sent := 0
	for _, seed := range someSeeds(*seedsFlag, 41, 194) {
		if *seedFlag != 0 {
			seed = *seedFlag
		}
		town := newBusyTown(seed, engine.Switches{})
		if err := town.play(3*time.Minute, 60*time.Second); err != nil {
			t.Fatalf("seed %d (go test ./internal/engine -run MovesFollow -seed %d): %v", seed, seed, err)
		}
		for _, w := range town.worlds {
			sent += w.db.arrivals
		}
	}
	if sent == 0 {
		t.Error("nothing was sent to another partition")
	}
	t.Logf("%d executions were sent", sent)
}

// TestMovesFollowMutant: when what waits stays where its job was, two of one job run at once.
func TestMovesFollowMutant(t *testing.T) {
	for seed := range uint64(20) {
		if err := newBusyTown(seed, engine.Switches{NothingFollows: true}).play(3*time.Minute, 60*time.Second); err != nil {
			t.Logf("killed by seed %d: %v", seed, err)
			return
		}
	}
	t.Error("twenty towns without this part, and nothing was found")
}
