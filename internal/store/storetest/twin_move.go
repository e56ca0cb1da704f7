package storetest

import (
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// lives are all jobs, deleted ones too.
func (w *twin) lives() []twinJob {
	return slices.Concat(slices.Collect(maps.Values(w.jobs)), w.deleted)
}

// planner is the partition that plans a job; -1 when there is no such job.
func (w *twin) planner(uid job.UID) int {
	for k, c := range w.cursors {
		if k.job == uid {
			return c.partition
		}
	}
	for _, j := range w.lives() {
		if j.revisions[0].UID == uid {
			return j.home
		}
	}
	return -1
}

func (w *twin) place(uid job.UID) int {
	for _, j := range w.lives() {
		if j.revisions[0].UID == uid {
			return j.partition
		}
	}
	return 0
}

// mayPlan tells whether a partition may write the cursors of a batch and hand over what it does.
func (w *twin) mayPlan(partition int, b *engine.Batch) bool {
	for _, c := range b.Cursors {
		if w.planner(c.Job) != partition {
			return false
		}
	}
	for _, x := range b.Handovers {
		has := map[string]bool{}
		for k, c := range w.cursors {
			has[k.schedule] = has[k.schedule] || k.job == x.Job && c.partition == partition
		}
		for _, c := range b.Cursors {
			has[c.Schedule] = has[c.Schedule] || c.Job == x.Job
		}
		for _, c := range b.DropCursors {
			if c.Job == x.Job {
				has[c.Schedule] = false
			}
		}
		if !slices.Contains(slices.Collect(maps.Values(has)), true) {
			return false
		}
	}
	return true
}

// home is where what was made under a revision of a job, and is in a partition, belongs by now.
func (w *twin) home(uid job.UID, revision int64, partition int) *engine.Home {
	d := w.definition(uid, 0)
	if d == nil {
		return nil
	}
	at := store.JobAt{Revision: d.Revision, Place: w.place(uid), Planner: w.planner(uid), Cursors: len(w.cursorsOf(uid)) > 0}
	h, _ := at.Home(revision, partition, func() (*job.Definition, error) { return d, nil })
	return h
}

// sent is what a batch gives to other partitions.
func (w *twin) sent(b *engine.Batch) {
	for i := range b.Executions {
		if x := &b.Executions[i]; x.Sent {
			w.addEntry(x.Row.Partition, x.Row.Namespace, false, engine.Entry{Kind: engine.EntryArrived, Job: x.Row.JobUID, Execution: x.Row.ID})
			w.told++
		}
	}
	for _, s := range b.SentBackfills {
		of := w.backfills[s.ID]
		of.Partition = s.Partition
		w.backfills[s.ID] = of
		w.addEntry(s.Partition, s.Namespace, false, engine.Entry{Kind: engine.EntryBackfill, Job: s.Job, Execution: s.ID})
		w.inbox[len(w.inbox)-1].revision = s.Revision
		w.told++
	}
}
