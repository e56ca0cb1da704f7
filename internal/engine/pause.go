package engine

import (
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// The instants of a pause are not walked one by one: the cursor keeps the first of them as Held and its Next
// jumps behind the pause (0 when that has no end). When the pause ends, by a person or by its time, all of
// them become one decision with their count (R5), or several when they are more than a step may walk.

// hold moves the cursor over the pause that its next instant falls into.
func (d *dueEntry) hold() {
	c, p := &d.cursor, d.def.Pause
	if c.Held != 0 || c.Next == 0 || !p.Covers(c.Next) {
		return
	}
	c.Held, c.Next = c.Next, 0
	if p.Until == 0 {
		return
	}
	if !d.missable() {
		c.Next = p.Until
		return
	}
	if next, ok := d.sched.Next(p.Until.Add(-time.Millisecond).Time()); ok {
		c.Next = job.InstantOf(next)
		return
	}
	c.Next = p.Until // nothing follows, yet what was held is to be decided then; see heldOnly
}

// heldOnly tells that nothing is due at the cursor's Next but the end of a pause, behind which the schedule has no instant.
func (d *dueEntry) heldOnly() bool {
	p := d.def.Pause
	return p != nil && d.cursor.Next == p.Until && d.missable() && !schedule.Matches(d.sched, p.Until.Time())
}

// autoPaused tells that failures in a row hold the schedules of the job. What is due from then on is held like by a pause
// without an end, until a person resumes the job.
func (d *dueEntry) autoPaused() bool { return d.def.Spec.AutoPause.Paused(d.cursor.Failures) }

// autoPause holds what is due.
func (e *Engine) autoPause(d *dueEntry) {
	e.fact(Fact{Kind: FactAutoPaused, Job: d.def.Namespace + "/" + d.def.Name, Reason: job.ReasonAutoPaused, PlannedAt: d.cursor.Next, Count: int64(d.cursor.Failures)})
	d.cursor.Held, d.cursor.Next = d.cursor.Next, 0
	e.moved(d)
}

// settleHeld decides what a pause held back before the given instant. false: the bound of a step was
// reached; Held is the first of what is left.
func (e *Engine) settleHeld(def *job.Definition, s schedule.Schedule, c *job.Cursor, before job.Instant) bool {
	if c.Held == 0 {
		return true
	}
	why := job.ReasonPaused
	if def.Spec.AutoPause.Paused(c.Failures) {
		why = job.ReasonAutoPaused
	}
	var done bool
	c.Held, done = e.pass(def, s, c, c.Held, before, job.DecisionSkipped, why)
	return done
}

// settleEnded decides what a pause of a job held back that has ended by its time. It comes before anything of the job
// fires: a step that can walk only a part of one schedule must not let another one go on alone (R4). false: the bound of
// a step was reached, more is held.
func (e *Engine) settleEnded(u job.UID) bool {
	done := true
	for _, d := range e.due.jobs[u] {
		if d.cursor.Held != 0 && d.cursor.Next != 0 && d.cursor.Next <= e.now.Wall {
			done = e.settleHeld(d.def, d.sched, &d.cursor, d.cursor.Next) && done
			e.writeCursor(d.cursor)
		}
	}
	return done
}

// pass makes one decision of the planned instants in [from, before), of which from is one. left is the first
// that was not decided, for the bound of a step was reached; 0 when done.
func (e *Engine) pass(def *job.Definition, s schedule.Schedule, c *job.Cursor, from, before job.Instant,
	kind job.DecisionKind, why job.Reason,
) (left job.Instant, done bool) {
	n, last, done := schedule.Count(s, from.Add(-time.Millisecond).Time(), before.Add(-time.Millisecond).Time(), e.cfg.CatchUpMax)
	if _, alone := schedule.DelayOf(s); alone && from < before {
		n, last, done = 1, from.Time(), true
	}
	if n > 0 {
		to := job.InstantOf(last)
		c.Last = max(c.Last, to)
		e.decide(def, c.Schedule, kind, why, from, to, int64(n))
	}
	if !done {
		if next, ok := s.Next(last); ok {
			return job.InstantOf(next), false
		}
	}
	return 0, true
}

// decide records that planned instants become no execution.
func (e *Engine) decide(def *job.Definition, schedule string, kind job.DecisionKind, why job.Reason, from, to job.Instant, n int64) {
	if e.cfg.Switches.NoDecisions {
		return
	}
	e.step.batch.Decisions = append(e.step.batch.Decisions, job.Decision{
		Job: def.UID, Namespace: def.Namespace, Name: def.Name, Schedule: schedule,
		Kind: kind, Reason: why, From: from, To: to, Count: n, At: e.now.Wall,
	})
	e.fact(Fact{Kind: FactDecided, Job: def.Namespace + "/" + def.Name, Reason: why, PlannedAt: from, Until: to, Count: n, To: string(kind)})
}

// cursorsOf joins the cursors that came with an entry with those in memory and those of this step, which are
// newer: several entries of one page may be about one job.
func (e *Engine) cursorsOf(u job.UID, entry Entry) map[string]job.Cursor {
	all := map[string]job.Cursor{}
	for _, c := range entry.Cursors {
		all[c.Schedule] = unmarked(c)
	}
	for _, d := range e.due.jobs[u] {
		all[d.cursor.Schedule] = d.cursor
	}
	for k, c := range e.step.cursors {
		if k.job == u {
			all[k.schedule] = unmarked(c)
		}
	}
	for k := range e.step.dropped {
		if k.job == u {
			delete(all, k.schedule)
		}
	}
	return all
}

// settlePauses decides what pauses of a job have held back until now, whatever becomes of the job: an edit
// closes such a range and, when the job is still paused, another one begins behind it. false: more is left
// for the next step; the entry stays in the inbox.
func (e *Engine) settlePauses(entry Entry, cursors map[string]job.Cursor) bool {
	done := true
	for _, c := range sortedCursors(cursors) {
		if c.Held == 0 {
			continue
		}
		def := entry.then(&c)
		before := e.now.Wall + 1
		if c.Next != 0 && c.Next <= e.now.Wall {
			before = c.Next // the pause had ended by itself
		}
		if entry.leftOld(&c) {
			if all := entry.Past.versions(&c, entry.Definition); len(all) > 0 {
				before = min(before, all[0].to+1) // what is due behind a change is of the calendars since (settlePast)
			}
		}
		if s := scheduleOf(def, c.Schedule); s == nil {
			c.Held = 0 // its definition is not known any more
		} else if !e.settleHeld(def, s, &c, before) {
			done = false
		}
		cursors[c.Schedule] = c
		e.unfollow(dueKey{c.Job, c.Schedule}) // its place in memory is old now
		e.writeCursor(c)
	}
	return done
}

// scheduleOf finds a schedule of a definition; nil when it has none of that name, or one that does not parse
// any more.
func scheduleOf(def *job.Definition, id string) schedule.Schedule {
	for _, s := range def.Spec.Schedules {
		if s.ID != id {
			continue
		}
		if parsed, err := def.Parse(s.Spec); err == nil {
			return parsed
		}
	}
	return nil
}

// jobDeleted ends the life of a job: its schedules plan nothing more, and what was due and not planned yet
// becomes a decision. Its executions run to their end or are cancelled, as the person said. false: more is
// left for the next step; the entry stays in the inbox.
func (e *Engine) jobDeleted(entry Entry) bool {
	def := entry.Definition
	if def == nil || def.Deleted == nil {
		return true
	}
	cursors := e.cursorsOf(def.UID, entry)
	held := anyHeld(cursors)
	if e.lacksBefore(&entry, cursors) || !e.settlePauses(entry, cursors) {
		return false
	}
	withNew(def, cursors)
	from, _, done := e.settlePast(entry, cursors, held)
	if !done {
		return false
	}
	e.unfollowJob(def.UID)
	e.unwatch(def.UID)
	e.pokeWaits(def.UID)
	for _, c := range sortedCursors(cursors) {
		if c.Owed != 0 {
			e.giveUp(def, scheduleOf(entry.then(&c), c.Schedule), &c, job.DecisionSkipped, job.ReasonJobDeleted, nil)
		}
		if left := e.deletedLeft(def, &c, from); left != 0 {
			c.Next, done = left, false
			e.writeCursor(c)
			continue
		}
		e.dropCursor(c)
	}
	if !done {
		return false
	}
	if !e.cancelJob(entry) {
		return false
	}
	e.fact(Fact{Kind: FactJobDeleted, Job: def.Namespace + "/" + def.Name, Count: def.Revision, Note: def.Deleted.Reason})
	return true
}

// deletedLeft decides what was due of a schedule when its job was deleted. left is the first instant that is left for the
// next step; 0: none is.
func (e *Engine) deletedLeft(def *job.Definition, c *job.Cursor, from job.Instant) (left job.Instant) {
	i := slices.IndexFunc(def.Spec.Schedules, func(s job.Schedule) bool { return s.ID == c.Schedule })
	sched := scheduleOf(def, c.Schedule)
	if i < 0 || sched == nil {
		return 0
	}
	if at := oldestOf(def, &def.Spec.Schedules[i], c, from); at != 0 && at <= e.now.Wall {
		left, _ = e.pass(def, sched, c, at, e.now.Wall+1, job.DecisionSkipped, job.ReasonJobDeleted)
	}
	return left
}

// anyHeld tells that a pause holds back what was due.
func anyHeld(cursors map[string]job.Cursor) bool {
	for _, c := range cursors {
		if c.Held != 0 {
			return true
		}
	}
	return false
}
