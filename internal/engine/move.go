package engine

import (
	"fmt"
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// A job is planned by one partition: the one that its cursors name. Only that one writes them; while a job has none,
// only the partition that the job was created in may make them. So there is always exactly one writer, also while
// revisions are written faster than entries about them are consumed, and nobody has to look twice.
//
// When the newest revision has a pool of another partition, the planner computes the next instants under that
// revision, gives all cursors away and forwards the entry to the new planner, in one commit: the instants travel
// unchanged, and whoever crashes in between changes nothing. What came due and was not planned under the old revision
// goes along too (edit.go: owes); the new planner catches it up by the misfire rule. Executions that are in line, under way or
// wait for their turn stay where they are: their workers know the old pool. Those that obey the overlap policy of their job hold the move
// back until they have ended (moveDrains), for the new planner would not know of them. What waits for anything else follows
// (follow.go).
//
// DESIGN R10 says that the entry is made anew at the new owner; it is forwarded instead, for its id is what the
// caller waits for: the change is in force when the new planner has taken it in, not before.

// plannedElsewhere tells which partition an entry about a job belongs to, when that is not this one: the job moved
// since the entry was written, or since it was read, earlier in this step.
func (e *Engine) plannedElsewhere(entry *Entry) (partition int, elsewhere bool) {
	switch {
	case e.cfg.Switches.PlannerIgnored || entry.Definition == nil:
		return 0, false
	case e.step.handed[entry.Job]:
		return entry.Place, true
	default:
		return entry.Planner, entry.Planner != e.cfg.Partition
	}
}

// Cursors that were handed over are marked until their new planner has taken the job in. Its pages may show some of them
// before that, for they are read one after the other, and a schedule that goes on alone leaves behind what another one owes
// (takeDue). The mark is a stamp below zero, so that a page takes them for stale.
func marked(c job.Cursor) bool { return c.Stamp < 0 }

func turned(c job.Cursor) job.Cursor {
	c.Stamp = ^c.Stamp
	return c
}

func unmarked(c job.Cursor) job.Cursor {
	if marked(c) {
		return turned(c)
	}
	return c
}

// remark keeps the mark of cursors that were written although their job has not been taken in.
func (e *Engine) remark(entry *Entry) {
	if e.step.taken[entry.Job] || !slices.ContainsFunc(entry.Cursors, marked) {
		return
	}
	for k, c := range e.step.cursors {
		if k.job == entry.Job && !marked(c) {
			e.step.cursors[k] = turned(c)
		}
	}
}

// handOver gives the job away. Its cursors have been written for its newest revision.
func (e *Engine) handOver(def *job.Definition, to int) {
	e.unfollowJob(def.UID)
	for k, c := range e.step.cursors {
		if k.job == def.UID && e.knownToAll(levelFollow) && !marked(c) {
			e.step.cursors[k] = turned(c)
		}
	}
	if e.step.handed == nil {
		e.step.handed = map[job.UID]bool{}
	}
	e.step.handed[def.UID] = true
	e.pages.handed[def.UID] = e.seq + 1
	e.step.batch.Handovers = append(e.step.batch.Handovers, Handover{Job: def.UID, Partition: to})
	e.fact(Fact{Kind: FactJobHandedOver, Job: def.Namespace + "/" + def.Name, Count: def.Revision, Note: fmt.Sprintf("to partition %d", to)})
}

// forward gives an entry to the inbox of another partition.
func (e *Engine) forward(entry Entry, to int) {
	e.step.batch.Forwarded = append(e.step.batch.Forwarded, Forward{Entry: entry.ID, Partition: to})
	e.pages.consumed(entry.ID)
}
