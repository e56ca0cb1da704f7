package engine

import (
	"container/heap"

	"github.com/taktsched/takt/internal/job"
)

// plan turns every instant that is due into an execution, a debt or a decision, in the order of time. All that is due at
// one instant fires in one step: two schedules of a job that are due together must meet here, for once their execution
// has ended nothing in memory tells that it was made (R4). So a job of which a step can decide only a part, or of which
// a part is not here, is left aside with all its schedules; the others go on.
func (e *Engine) plan() {
	e.finish() // an end that arrived comes before what is due
	var at job.Instant
	var aside []*dueEntry
	jobs := map[job.UID]bool{}
	for n := 0; len(e.due.heap) > 0 && e.due.heap[0].cursor.Next <= e.now.Wall; n++ {
		d := e.due.heap[0]
		if n >= e.cfg.CatchUpMax && d.cursor.Next != at {
			break // bounded per step; NextWake is at once
		}
		wait := jobs[d.cursor.Job]
		if !wait {
			var moved bool
			if moved, wait = e.prepare(d); moved {
				continue
			}
		}
		if wait {
			jobs[d.cursor.Job] = true
			if d.index >= 0 { // else it came far
				heap.Remove(&e.due.heap, d.index)
				aside = append(aside, d)
			}
			continue
		}
		at = d.cursor.Next
		e.about = d.about()
		d.cursor.Revision = d.def.Revision
		if e.fire(d, at, job.TriggerSchedule) {
			d.cursor.Runs++
		}
		e.advance(d, at)
		e.moved(d)
	}
	for _, d := range aside {
		if e.due.entries[dueKey{d.cursor.Job, d.cursor.Schedule}] == d {
			e.due.push(d)
		}
	}
}

// prepare does what comes before the next instant of d fires: what its job owes to pauses that have ended and to outages
// is settled. moved: d is not due any more. wait: its job can not go on in this step.
func (e *Engine) prepare(d *dueEntry) (moved, wait bool) {
	e.about = d.about()
	wait, anew := e.incomplete(d)
	switch {
	case wait:
		return false, true
	case anew:
		e.due.until = min(e.due.until, d.cursor.Next-1)
		e.reread(d.cursor.Job)
		return true, false
	case !e.settleEnded(d.cursor.Job):
		return false, true
	case d.heldOnly():
		d.cursor.Next = 0
		e.moved(d)
		return true, false
	case d.def.Pause.Covers(d.cursor.Next):
		d.hold()
		e.moved(d)
		return true, false
	case d.autoPaused():
		e.autoPause(d)
		return true, false
	case d.cursor.Next < e.lateBefore(d.def) && d.missable():
		done := e.settle(d.cursor.Job)
		return done, !done
	}
	return false, false
}

// moved writes how far d has come and finds its new place in the book.
func (e *Engine) moved(d *dueEntry) {
	e.writeCursor(d.cursor)
	near := d.cursor.Next != 0 && d.cursor.Next <= max(e.due.until, e.now.Wall.Add(e.cfg.Horizon))
	switch {
	case d.index < 0:
	case near:
		heap.Fix(&e.due.heap, d.index)
	default:
		heap.Remove(&e.due.heap, d.index)
	}
	if !near && d.cursor.Owed == 0 {
		e.due.drop(d)
	}
}

// incomplete tells that another schedule of d's job may be due at the same instant, or be missed as well, and not be here. In
// what the read has yet to bring, which is in the order of time: planning waits for it. Or behind what was known when d came
// here (the wall clock or this engine jumped, or an edit that disables the job is on its way, for which pages leave it out):
// then the job is read anew.
func (e *Engine) incomplete(d *dueEntry) (wait, anew bool) {
	if len(d.def.Spec.Schedules) == 1 {
		return false, false
	}
	until := max(d.cursor.Next, min(e.lateBefore(d.def), e.now.Wall)-1)
	if e.due.from != nil {
		return e.due.from.Next <= until, false
	}
	return false, until > d.known
}

// advance moves the cursor behind an instant that was decided.
func (e *Engine) advance(d *dueEntry, at job.Instant) {
	d.cursor.Last, d.cursor.Next = max(d.cursor.Last, at), 0
	if next, ok := d.sched.Next(at.Time()); ok && !d.spec.UsedUp(d.cursor.Runs) {
		d.cursor.Next = job.InstantOf(next)
	}
	if delay, is := d.delay(); is {
		e.advanceDelay(d, at, delay)
	}
	if d.cursor.Next != 0 && d.cursor.Next <= at {
		d.cursor.Next = 0
		e.leaveOut(d.about(), d.def.Namespace+"/"+d.def.Name, "it does not advance")
	}
	e.fact(Fact{Kind: FactPlanned, Job: d.def.Namespace + "/" + d.def.Name, PlannedAt: at, Until: d.cursor.Next})
	d.hold()
}

// fire makes the execution of an instant. false: none was made.
func (e *Engine) fire(d *dueEntry, at job.Instant, trigger job.Trigger) bool {
	def := d.def
	id := job.PlannedID(def.UID, at)
	if e.leftOut[About{Execution: id}] {
		e.fact(Fact{Kind: FactSetAside, Execution: id, PlannedAt: at, Note: "a planned execution that is left out is not made"})
		e.decide(def, d.cursor.Schedule, job.DecisionMissed, job.ReasonBadEntry, at, at, 1)
		return false
	}
	if e.executions[id] != nil || e.step.created[id] {
		return true // two schedules of the job are due together: one execution (R4)
	}
	row := job.Execution{
		ID: id, Partition: e.cfg.Partition, Namespace: def.Namespace, Job: def.Name, JobUID: def.UID, Revision: def.Revision,
		Pool: def.Spec.Pool, Handler: def.Spec.Handler, Trigger: trigger, PlannedAt: at,
		Params: def.Spec.Params, ShardTotal: def.Spec.ShardTotal(),
	}
	if len(def.Spec.After) > 0 {
		e.awaitParents(row, def)
		return true
	}
	x, why := e.launch(row, def)
	if x == nil {
		e.decide(def, d.cursor.Schedule, job.DecisionBlocked, why, at, at, 1)
	}
	return x != nil
}
