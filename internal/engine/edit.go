package engine

import (
	"reflect"
	"slices"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
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
	if e.plan(); e.dueStill(def.UID) {
		return false // behind the bound of a step: no schedule of the job may get ahead of another one
	}
	cursors := e.cursorsOf(def.UID, entry)
	held := anyHeld(cursors)
	if e.lacksBefore(&entry, cursors) || !e.settlePauses(entry, cursors) {
		return false
	}
	from, still, done := e.settlePast(entry, cursors, held)
	if !done {
		return false
	}
	delete(e.due.aside, def.UID)
	e.settleDebts(entry, cursors)
	e.rehome(&entry, entry.Place)
	var last job.Instant // no schedule of the job, under whatever name, goes back behind it
	failures := 0
	for _, c := range cursors {
		last, failures = max(last, c.Last), max(failures, c.Failures)
	}
	if entry.Kind == EntryJobResumed || def.Spec.AutoPause.AfterFailures == 0 && failures > 0 {
		failures = 0
		e.streak(Streak{Job: def.UID, Reset: true})
	}
	for i := range def.Spec.Schedules {
		s := &def.Spec.Schedules[i]
		c := cursors[s.ID]
		delete(cursors, s.ID)
		c.Failures = failures
		begin := from
		if still && c.Next != 0 && c.Next <= from {
			begin = 0
		}
		e.replan(def, s, c, last, begin, entry.runsStill(s.ID))
	}
	e.due.debts.of(def.UID, e.due.jobs[def.UID])
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
	if !kept && entry.Place != e.cfg.Partition {
		kept = true // it says who decides about the job's requests, and makes what its parents' ends lead to
		e.writeCursor(job.Cursor{Job: def.UID, Schedule: job.MainSchedule, Revision: def.Revision})
	}
	if kept && entry.Place != e.cfg.Partition {
		e.handOver(def, entry.Place)
	}
	e.plan() // what is owed on
	if e.watch(def); entry.Place != e.cfg.Partition {
		e.unwatch(def.UID) // its new planner is told
	}
	e.pokeWaits(def.UID)
	note := ""
	if def.Pause != nil && (def.Pause.Until == 0 || def.Pause.Until > e.now.Wall) {
		note = "paused"
	}
	e.fact(Fact{Kind: FactJobChanged, Job: def.Namespace + "/" + def.Name, Count: def.Revision, Note: note})
	return true
}

// dueStill tells that something of a job is due and was not planned yet.
func (e *Engine) dueStill(u job.UID) bool {
	return slices.ContainsFunc(e.due.jobs[u], func(d *dueEntry) bool { return d.cursor.Next != 0 && d.cursor.Next <= e.now.Wall })
}

// replan sets the cursor of one schedule for a new revision: its next instant lies behind from, as settlePast says, and behind
// last, the newest one that any schedule of the job consumed.
func (e *Engine) replan(def *job.Definition, s *job.Schedule, c job.Cursor, last, from job.Instant, runs bool) {
	e.unfollow(dueKey{def.UID, s.ID})
	d := &dueEntry{def: def, spec: s}
	d.cursor = job.Cursor{Job: def.UID, Schedule: s.ID, Revision: def.Revision, Stamp: def.Stamp(), Last: last,
		Owed: c.Owed, OwedTo: c.OwedTo, OwedLater: c.OwedLater, Runs: c.Runs, Failures: c.Failures}
	if !e.parse(d, s.Spec) {
		e.writeCursor(d.cursor) // without a next instant
		return
	}
	if delay, is := d.delay(); is {
		e.replanDelay(d, c, delay, runs)
		d.hold()
		e.writeCursor(d.cursor)
		e.keepDue(d)
		return
	}
	since := e.now.Wall
	if from != 0 {
		since = min(since, from)
	}
	at := job.InstantOf(s.At)
	switch {
	case at == 0 || at > since:
	case c.Job.IsZero() && at >= def.UpdatedAt:
		since = at - 1 // a one-shot for the instant of its writing is not of the past
	case c.Last < at && c.Next == 0 && !c.Job.IsZero() && !def.Spec.Disabled:
		e.decide(def, s.ID, job.DecisionMissed, job.ReasonPassed, at, at, 1) // a one-shot that nothing fired
		d.cursor.Last = max(d.cursor.Last, at)
	}
	switch {
	case s.UsedUp(c.Runs) || def.Spec.Disabled:
	case from == 0 && c.Next != 0 && c.Next <= e.now.Wall && schedule.Matches(d.sched, c.Next.Time()):
		d.cursor.Next, d.cursor.Last = c.Next, min(last, c.Next-1)
	default:
		d.cursor.Next = nextAfter(d.sched, max(last, since, e.fillsPast(def.UID)))
	}
	if at := c.Next; c.Revision == def.Revision && at > c.Last && at <= e.now.Wall && at != d.cursor.Next && !hasInstant(def, at) {
		e.closed(d, &c)
	}
	d.hold()
	e.writeCursor(d.cursor)
	e.keepDue(d)
}

// lacksBefore tells that this very step made a debt or a hold under a revision, or under calendars, that the entry does not bring: the
// next page has them.
func (e *Engine) lacksBefore(entry *Entry, cursors map[string]job.Cursor) bool {
	for _, c := range cursors {
		_, written := e.step.cursors[dueKey{c.Job, c.Schedule}]
		if !written {
			continue
		}
		if entry.Before == nil && (c.Held != 0 || c.Owed != 0) && c.Revision != entry.Definition.Revision || entry.Past == nil && entry.leftOld(&c) {
			return true
		}
	}
	return false
}

// settleDebts decides what a job owes and will not run: it is paused or disabled, or the schedule that owes it is not
// there any more as it was. What an unchanged schedule owes runs on; that has no decision, whoever owed it as well (R4).
func (e *Engine) settleDebts(entry Entry, cursors map[string]job.Cursor) {
	def := entry.Definition
	type keeps struct {
		owed []job.InstantRange
		s    schedule.Schedule
	}
	var goes []job.Cursor
	var stay []keeps
	olds := map[string]*job.Definition{}
	known := !slices.ContainsFunc(sortedCursors(cursors), func(c job.Cursor) bool { return c.Owed != 0 && entry.forgot(&c) })
	for _, c := range sortedCursors(cursors) {
		if c.Owed == 0 {
			continue
		}
		old := entry.then(&c)
		if known && !def.Pause.Covers(e.now.Wall) && !def.Spec.Disabled && sameSchedule(def, old, c.Schedule) && e.owesSame(&c, old, def) {
			stay = append(stay, keeps{c.OwedRanges(), scheduleOf(def, c.Schedule)})
			continue
		}
		goes, olds[c.Schedule] = append(goes, c), old
	}
	runs := func(at job.Instant) bool {
		return slices.ContainsFunc(stay, func(k keeps) bool {
			return slices.ContainsFunc(k.owed, func(r job.InstantRange) bool { return r.From <= at && at <= r.To }) && k.s != nil && schedule.Matches(k.s, at.Time())
		})
	}
	for _, c := range goes {
		old := olds[c.Schedule]
		e.giveUp(old, entry.line(&c), &c, job.DecisionMissed, job.ReasonMisfireGiven, runs)
		cursors[c.Schedule] = c
		e.unfollow(dueKey{c.Job, c.Schedule})
		e.writeCursor(c)
	}
}

// owesSame tells that what a cursor owes are instants also by the calendars of the newest revision, and all of them. Who pays steps
// from one to the next by those: what they close, or open, in between would get no fate, or one that it should not have.
func (e *Engine) owesSame(c *job.Cursor, old, newest *job.Definition) bool {
	s := &newest.Spec.Schedules[slices.IndexFunc(newest.Spec.Schedules, func(s job.Schedule) bool { return s.ID == c.Schedule })]
	changed := slices.ContainsFunc(s.Calendars, func(name string) bool {
		x, y := old.Calendars[name], newest.Calendars[name]
		return x == nil || y == nil || x.Revision != y.Revision
	})
	if !changed {
		return true
	}
	x, y := scheduleOf(old, c.Schedule), scheduleOf(newest, c.Schedule)
	return !slices.ContainsFunc(c.OwedRanges(), func(r job.InstantRange) bool {
		left := job.MaxCatchUp + 1 // a range has no more
		return !e.sameInstants(x, y, r.From-1, r.To, &left)
	})
}

// under is the revision that a cursor was computed from. (An earlier entry of the page may have taken the newest one in.)
func (entry *Entry) under(c *job.Cursor) *job.Definition {
	if entry.Before != nil && c.Revision != entry.Definition.Revision {
		return entry.Before
	}
	return entry.Definition
}

// leftOld tells that a cursor holds or owes instants and that calendars have changed since.
func (entry *Entry) leftOld(c *job.Cursor) bool {
	return (c.Held != 0 || c.Owed != 0) && c.Stamp != entry.under(c).Stamp()
}

// then is the revision that what a cursor holds or owes is of, with its calendars as they were then.
func (entry *Entry) then(c *job.Cursor) *job.Definition {
	old := entry.under(c)
	if entry.Past != nil && c.Stamp != old.Stamp() {
		return entry.Past.byName().stamped(old, c.Stamp)
	}
	return old
}

// forgot tells that calendars were changed so often since a cursor came to owe that those of then are not known any more (CalendarsMax). Then
// all that the job owes is given up: which instants its schedules share can not be told.
func (entry *Entry) forgot(c *job.Cursor) bool { return entry.then(c).Stamp() != c.Stamp }

// line is the schedule by which a cursor owes, with its calendars as they were then; nil: it is not known.
func (entry *Entry) line(c *job.Cursor) schedule.Schedule {
	if entry.forgot(c) {
		return nil
	}
	return scheduleOf(entry.then(c), c.Schedule)
}

// sameSchedule tells whether two revisions of a job mean the same by a schedule's name, whatever bounds its runs.
func sameSchedule(x, y *job.Definition, id string) bool {
	find := func(d *job.Definition) *job.Schedule {
		i := slices.IndexFunc(d.Spec.Schedules, func(s job.Schedule) bool { return s.ID == id })
		if i < 0 {
			return nil
		}
		s := d.Spec.Schedules[i]
		s.MaxRuns = 0
		return &s
	}
	return reflect.DeepEqual(find(x), find(y)) && find(x) != nil
}

// closed tells what became of the instant that came next before a calendar was changed, and came due when the change, which
// closes it, was written already and not taken in.
func (e *Engine) closed(d *dueEntry, c *job.Cursor) {
	if d.cursor.Next == 0 || d.cursor.Next > c.Next {
		d.cursor.Last = max(d.cursor.Last, c.Next)
	}
	e.decide(d.def, d.cursor.Schedule, job.DecisionSkipped, job.ReasonClosed, c.Next, c.Next, 1)
}

// hasInstant tells that some schedule of a revision has an instant.
func hasInstant(def *job.Definition, at job.Instant) bool {
	return slices.ContainsFunc(def.Spec.Schedules, func(s job.Schedule) bool {
		sched := scheduleOf(def, s.ID)
		return sched != nil && schedule.Matches(sched, at.Time())
	})
}
