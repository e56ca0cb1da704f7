package engine

import (
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// The audit looks at what a step is about to write, not at how it came to it: every planned instant that a cursor has
// moved over has an execution or a decision in this batch, or is owed, or held by a pause (R5). What has none of them is
// unexplained: it is counted, told to the journal, and should not be.

// auditMax bounds the instants that the audit of one cursor walks, in times of CatchUpMax.
const auditMax = 10

// audited notes that a cursor in the book is written in this step.
func (e *Engine) audited(k dueKey) {
	d := e.due.entries[k]
	if d == nil {
		return
	}
	if e.step.audit == nil {
		e.step.audit = map[dueKey]*dueEntry{}
	}
	e.step.audit[k] = d
}

// audit looks at all cursors that the step moves.
func (e *Engine) audit() {
	if len(e.step.audit) == 0 {
		return
	}
	made := map[job.UID]map[job.Instant]bool{}
	for i := range e.step.batch.Executions {
		x := &e.step.batch.Executions[i].Row
		if !x.OfInstant() {
			continue
		}
		if made[x.JobUID] == nil {
			made[x.JobUID] = map[job.Instant]bool{}
		}
		made[x.JobUID][x.PlannedAt] = true
	}
	decided := map[dueKey][]*job.Decision{}
	for i := range e.step.batch.Decisions {
		d := &e.step.batch.Decisions[i]
		k := dueKey{d.Job, d.Schedule}
		decided[k] = append(decided[k], d)
	}
	for _, c := range sortedCursors(e.step.cursors) {
		k := dueKey{c.Job, c.Schedule}
		d := e.step.audit[k]
		if d == nil {
			continue
		}
		before := d.told
		d.told = c
		if d.spec.Delay == 0 && before.Job == c.Job && before.Revision == c.Revision && before.Stamp == c.Stamp && !e.step.handed[c.Job] {
			e.auditOne(d, &before, &c, made[c.Job], decided[k])
		}
	}
}

// auditOne looks at what one cursor has moved over.
func (e *Engine) auditOne(d *dueEntry, before, after *job.Cursor, made map[job.Instant]bool, decided []*job.Decision) {
	open := before.Next
	if before.Held != 0 {
		open = before.Held
	}
	from, owes := open, after.OwedRanges()
	if before.Owed != 0 {
		from = before.Owed
	}
	spans := paidOf(before.OwedRanges(), owes)
	if open != 0 && open <= after.Last {
		end := after.Last
		if after.Next != 0 {
			end = min(end, after.Next-1)
		}
		spans = append(spans, job.InstantRange{From: open, To: end})
	}
	fate := func(at job.Instant) bool {
		if made[at] || e.executions[job.PlannedID(before.Job, at)] != nil || after.Held != 0 && at >= after.Held && (after.Next == 0 || at < after.Next) ||
			slices.ContainsFunc(owes, func(r job.InstantRange) bool { return r.From <= at && at <= r.To }) {
			return true
		}
		for _, x := range decided {
			if x.From <= at && at <= x.To {
				return true
			}
		}
		return false
	}
	unexplained, walked := int64(0), 0
	var first, last job.Instant
	for _, span := range spans {
		for at := span.From; at != 0 && at <= span.To && walked < auditMax*e.cfg.CatchUpMax; walked++ {
			if !fate(at) {
				if unexplained++; first == 0 {
					first = at
				}
				last = at
			}
			at = d.behind(at, decided)
		}
	}
	for _, x := range decided { // a range says how many it has
		if x.To < from {
			continue // under what the job said before
		}
		if n, _, done := schedule.Count(d.sched, x.From.Add(-time.Millisecond).Time(), x.To.Time(), auditMax*e.cfg.CatchUpMax); done && int64(n) > x.Count {
			unexplained, first, last = unexplained+int64(n)-x.Count, x.From, x.To
		}
	}
	e.audits += walked
	if unexplained > 0 {
		e.fact(Fact{Kind: FactUnexplained, Job: d.def.Namespace + "/" + d.def.Name, PlannedAt: first, Until: last, Count: unexplained, Note: "schedule " + after.Schedule})
	}
}

// paidOf are the parts of what was owed that is not owed any more, as far as a step may have changed them: debts are paid from the
// first on, so that of the first that is left only the begin is gone. What lies between them was decided before.
func paidOf(owed, owes []job.InstantRange) (spans []job.InstantRange) {
	for _, r := range owed {
		switch {
		case slices.Contains(owes, r):
		case len(owes) > 0 && owes[0].To == r.To:
			spans = append(spans, job.InstantRange{From: r.From, To: owes[0].From - 1})
		default:
			spans = append(spans, r)
		}
	}
	return spans
}

// behind is the next instant of d that no decision has, for ranges may be long; 0: there is none.
func (d *dueEntry) behind(at job.Instant, decided []*job.Decision) job.Instant {
	for _, x := range decided {
		if x.From <= at && at < x.To {
			at = x.To
		}
	}
	next, ok := d.sched.Next(at.Time())
	if !ok {
		return 0
	}
	return job.InstantOf(next)
}
