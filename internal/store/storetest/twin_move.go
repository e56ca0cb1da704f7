package storetest

import (
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
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
