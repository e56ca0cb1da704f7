package engine

import (
	"container/heap"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// jobChanged takes in the newest revision of a job, and whether it is paused. What was due under the old one
// is planned first; under the new one nothing of the past fires: next > max(cursor, now) (DESIGN §10.10). When the
// new one has a pool of another partition, that one plans from here on (move.go).
// false: more is left for the next step; the entry stays in the inbox.
func (e *Engine) jobChanged(entry Entry) bool {
	def := entry.Definition
	if def == nil || def.Deleted != nil {
		return true
	}
	e.plan()
	if !e.turnsOpened(def) {
		return false
	}
	cursors := e.cursorsOf(def.UID, entry)
	if !e.settlePauses(entry, cursors) {
		return false
	}
	var last job.Instant // no schedule of the job, under whatever name, goes back behind it
	for _, c := range cursors {
		last = max(last, c.Last)
	}
	for _, s := range def.Spec.Schedules {
		c := cursors[s.ID]
		delete(cursors, s.ID)
		e.replan(def, s, c, last)
	}
	kept := len(def.Spec.Schedules) > 0
	for _, c := range sortedCursors(cursors) {
		e.unfollow(dueKey{c.Job, c.Schedule})
		if kept {
			e.dropCursor(c)
			continue
		}
		// One stays, so that schedules that come later do not go back behind it, and the planner is still known.
		kept = true
		e.writeCursor(job.Cursor{Job: c.Job, Schedule: c.Schedule, Revision: def.Revision, Last: last})
	}
	if !kept && entry.Place != e.cfg.Partition && def.Spec.Obeys(job.TriggerRequest) {
		kept = true // it says who decides about the job's requests
		e.writeCursor(job.Cursor{Job: def.UID, Schedule: job.MainSchedule, Revision: def.Revision})
	}
	if kept && entry.Place != e.cfg.Partition {
		e.handOver(def, entry.Place)
	}
	e.plan() // what is owed on
	note := ""
	if def.Pause != nil && (def.Pause.Until == 0 || def.Pause.Until > e.now.Wall) {
		note = "paused"
	}
	e.fact(Fact{Kind: FactJobChanged, Job: def.Namespace + "/" + def.Name, Count: def.Revision, Note: note})
	return true
}

// replan sets the cursor of one schedule for a new revision: its next instant lies behind now and behind
// last, the newest one that any schedule of the job consumed (now may be earlier: another server's clock).
func (e *Engine) replan(def *job.Definition, s job.Schedule, c job.Cursor, last job.Instant) {
	e.unfollow(dueKey{def.UID, s.ID})
	d := &dueEntry{def: def}
	d.cursor = job.Cursor{Job: def.UID, Schedule: s.ID, Revision: def.Revision, Last: last}
	if !e.parse(d, s.Spec) {
		e.writeCursor(d.cursor) // without a next instant
		return
	}
	last = max(last, e.now.Wall, e.fillsPast(def.UID))
	if at := job.InstantOf(s.At); c.Job.IsZero() && at > 0 && at >= def.UpdatedAt && at <= last {
		last = at - 1 // a one-shot that came due between its writing and now is not of the past
	}
	owes := c.Next != 0 && c.Next <= e.now.Wall && e.owes(d, c.Next)
	switch {
	case owes:
		d.cursor.Next = c.Next
	case !def.Spec.Disabled:
		if next, ok := d.sched.Next(last.Time()); ok {
			d.cursor.Next = job.InstantOf(next)
		}
	}
	d.hold()
	e.writeCursor(d.cursor)
	d.known = max(e.due.until, e.now.Wall.Add(e.cfg.Horizon))
	if d.cursor.Next != 0 && d.cursor.Next <= d.known {
		e.due.entries[dueKey{def.UID, s.ID}] = d
		heap.Push(&e.due.heap, d)
	}
}

// owes tells what becomes of an instant that was due under the old revision and that nobody planned: the
// server was away. When the new revision has it too, it is caught up like any other, together with what
// followed it. Else it is a decision: what the old revision said is not known any more.
func (e *Engine) owes(d *dueEntry, at job.Instant) bool {
	if !d.def.Spec.Disabled {
		if next, ok := d.sched.Next(at.Add(-time.Millisecond).Time()); ok && job.InstantOf(next) == at {
			return true
		}
	}
	d.cursor.Last = max(d.cursor.Last, at)
	e.missed(d, at, at, 1)
	return false
}
