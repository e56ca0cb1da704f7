package engine

import (
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// A schedule that counts from the end of its last execution has no next instant while that lives: its cursor's Next is 0, and
// Last says which one it is. The job depends on itself, so the commit that ends the execution tells the planner (upstream.go),
// wherever it ran and whatever became of owners in between. What comes late because nobody was there is not missed: it runs.

// delay is the time from an end to the next instant; false for a schedule that has instants of its own.
func (d *dueEntry) delay() (time.Duration, bool) { return schedule.DelayOf(d.sched) }

// missable tells whether instants of a schedule are missed when nobody plans them in time.
func (d *dueEntry) missable() bool {
	_, counts := d.delay()
	return !counts
}

// replanDelay sets Next for a new revision.
func (e *Engine) replanDelay(d *dueEntry, c job.Cursor, delay time.Duration, runs bool) {
	next := e.now.Wall.Add(delay)
	d.cursor.Last = c.Last
	switch {
	case d.def.Spec.Disabled || d.spec.UsedUp(c.Runs):
	case c.Job.IsZero():
		if first := d.def.CreatedAt.Add(delay); first > e.now.Wall {
			next = first
		}
		d.cursor.Next = next
	case c.Next != 0:
		d.cursor.Next = min(c.Next, next) // a delay that became shorter counts from now
	case !runs:
		d.cursor.Next = next
	}
}

// advanceDelay leaves the next instant to the end of the execution that was made; when none was, it counts from now.
func (e *Engine) advanceDelay(d *dueEntry, at job.Instant, delay time.Duration) {
	id := job.PlannedID(d.def.UID, at)
	if e.executions[id] == nil && !e.step.created[id] && !d.spec.UsedUp(d.cursor.Runs) {
		d.cursor.Next = e.now.Wall.Add(delay)
	}
}

// ownEnd takes an entry that tells a job of the end of its own execution. false: it does not.
func (e *Engine) ownEnd(entry Entry) bool {
	def := entry.Definition
	for i := range def.Spec.Schedules {
		s := &def.Spec.Schedules[i]
		c := e.cursorsOf(def.UID, entry)[s.ID]
		if s.Delay == 0 || c.Last == 0 || job.PlannedID(def.UID, c.Last) != entry.Execution {
			continue
		}
		if to, elsewhere := e.plannedElsewhere(&entry); elsewhere {
			e.forward(entry, to)
			return true
		}
		handed := slices.ContainsFunc(entry.Cursors, marked) // its job_changed entry is on its way, and tells
		if !handed && c.Next == 0 && c.Held == 0 && c.Revision == def.Revision && !def.Spec.Disabled && !s.UsedUp(c.Runs) {
			e.afterEnd(def, s, c)
		}
		e.consume(entry)
		return true
	}
	return false
}

// afterEnd sets the next instant of a schedule whose execution has ended. (Under an older revision that is left to its
// job_changed entry.)
func (e *Engine) afterEnd(def *job.Definition, s *job.Schedule, c job.Cursor) {
	e.unfollow(dueKey{def.UID, s.ID})
	d := &dueEntry{def: def, spec: s, cursor: c}
	if !e.parse(d, s.Spec) {
		return
	}
	d.cursor.Next = e.now.Wall.Add(s.Delay)
	d.hold()
	e.fact(Fact{Kind: FactPlanned, Job: def.Namespace + "/" + def.Name, PlannedAt: c.Last, Until: d.cursor.Next})
	e.writeCursor(d.cursor)
	e.keepDue(d)
}

// keepDue takes a schedule whose cursor was set into the book when it is due soon.
func (e *Engine) keepDue(d *dueEntry) {
	d.told = d.cursor
	d.known = max(e.due.until, e.now.Wall.Add(e.cfg.Horizon))
	near := d.cursor.Next != 0 && d.cursor.Next <= d.known
	if near || d.cursor.Owed != 0 {
		e.due.add(d)
	}
	if near {
		e.due.push(d)
	}
}

// countsFromEnd tells that the entry may set a cursor of the job.
func (entry *Entry) countsFromEnd() bool {
	return entry.Kind == EntryParentEnded && entry.Definition != nil && entry.Definition.Spec.CountsFromEnd()
}

// runsStill tells whether the execution of a schedule's newest instant lives, as the store found it.
func (entry *Entry) runsStill(schedule string) bool { return slices.Contains(entry.Running, schedule) }
