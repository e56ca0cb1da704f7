package engine

import (
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// Misfire: what becomes of the planned instants that nobody planned in time. M is, of all schedules of a job together,
// the instants that are later than the grace and inside of the window, and that no pause holds. The newest
// Misfire.CatchesUp of M run, as debts (debt.go); the others, and those older than the window, are decisions. So no
// instant has both, and several schedules that share an instant make one execution of it.
//
// A job is settled as a whole: up to the cut, the oldest instant that runs, in as many steps as the bound of a step
// wants; then what it owes, of all its schedules in one commit.

// graceOf is how late an instant may be and still be on time. A job's own grace has a floor: when a server dies another
// one needs its partition lease (P) and as much again to look, load and read, and all that would be missed otherwise.
func (e *Engine) graceOf(def *job.Definition) time.Duration {
	if own := def.Spec.Misfire.Grace; own > 0 {
		return max(own, 2*e.cfg.OwnerTTL)
	}
	return e.cfg.MisfireGrace
}

// lateBefore: instants before it are later than the grace.
func (e *Engine) lateBefore(def *job.Definition) job.Instant { return e.now.Wall.Add(-e.graceOf(def)) }

// walkMax bounds the instants that one step walks, in times of CatchUpMax.
const walkMax = 4

// settle decides what a job has missed. false: the bound of a step was reached, or what it owes is not known yet; none of
// its schedules may go on.
func (e *Engine) settle(u job.UID) bool {
	all := slices.Clone(e.due.jobs[u])
	def := all[0].def
	if e.step.walked >= walkMax*e.cfg.CatchUpMax || e.due.debts.unknown(u, all) {
		return false
	}
	late := e.lateBefore(def)
	cut := e.cut(all, late)
	done := true
	for _, x := range all {
		done = e.passOver(x, cut) && done
	}
	if !done {
		return false
	}
	if p := def.Pause; p != nil && p.Until != 0 && p.Until < late && cut < p.At {
		e.oweAll(all, p.At)
		for _, x := range all {
			x.hold()
			done = e.settleHeld(x.def, x.sched, &x.cursor, p.Until) && done
			for x.cursor.Held != 0 && x.cursor.Next == 0 { // the schedule ends in the pause: no later step comes back to it
				e.settleHeld(x.def, x.sched, &x.cursor, p.Until)
			}
			e.moved(x)
		}
		if !done {
			return false // settleEnded goes on with what is held
		}
	}
	e.oweAll(all, late)
	return true
}

// cut is the oldest missed instant that runs.
func (e *Engine) cut(all []*dueEntry, late job.Instant) job.Instant {
	def := all[0].def
	n := def.Spec.Misfire.CatchesUp()
	from := max(e.now.Wall.Add(-def.Spec.Misfire.WithinWindow()), 0)
	var newest []time.Time
	for _, x := range all {
		if c := &x.cursor; c.Next != 0 && c.Next < late {
			newest = append(newest, x.missed(max(from, c.Next), late, n)...)
		}
	}
	e.step.walked += 2 * len(newest)
	slices.SortFunc(newest, time.Time.Compare)
	newest = slices.CompactFunc(newest, time.Time.Equal)
	if len(newest) == 0 {
		return late
	}
	return job.InstantOf(newest[max(len(newest)-n, 0)])
}

// missed lists the newest n instants in [from, before) that no pause holds.
func (d *dueEntry) missed(from, before job.Instant, n int) []time.Time {
	p := d.def.Pause
	if p == nil {
		return schedule.Recent(d.sched, from.Time(), before.Time(), n)
	}
	var found []time.Time
	if p.Until != 0 {
		found = schedule.Recent(d.sched, max(from, p.Until).Time(), before.Time(), n)
	}
	return append(schedule.Recent(d.sched, from.Time(), min(before, p.At).Time(), n-len(found)), found...)
}

// passOver makes decisions of the instants before cut. false: the bound of a step was reached.
func (e *Engine) passOver(x *dueEntry, cut job.Instant) bool {
	e.about = x.about()
	if !x.missable() {
		return true
	}
	c, p := &x.cursor, x.def.Pause
	window := e.now.Wall.Add(-x.def.Spec.Misfire.WithinWindow())
	for c.Next != 0 && c.Next < cut {
		if !e.settleHeld(x.def, x.sched, c, c.Next) {
			e.writeCursor(*c)
			return false
		}
		if p.Covers(c.Next) {
			x.hold()
			e.moved(x)
			continue
		}
		until := cut
		kind, why := x.def.Spec.Misfire.Why()
		if c.Next < window {
			until, kind, why = min(until, window), job.DecisionMissed, job.ReasonMissedWindow
		}
		if p != nil && p.At > c.Next {
			until = min(until, p.At)
		}
		from := c.Next
		n, last, all := schedule.Count(x.sched, from.Add(-time.Millisecond).Time(), until.Add(-time.Millisecond).Time(), e.cfg.CatchUpMax)
		if n <= e.cfg.CatchUpMax { // else it was arithmetic
			e.step.walked += n
		}
		c.Revision = x.def.Revision
		e.decide(x.def, c.Schedule, kind, why, from, job.InstantOf(last), int64(n))
		e.advance(x, job.InstantOf(last))
		e.moved(x)
		if !all {
			return false
		}
	}
	if c.Held != 0 && c.Next != 0 && c.Next <= e.now.Wall { // a pause that ended behind the cut
		done := e.settleHeld(x.def, x.sched, c, c.Next)
		e.writeCursor(*c)
		return done
	}
	return true
}

// oweAll makes debts of a job's instants before until and before the pause that comes next.
func (e *Engine) oweAll(all []*dueEntry, until job.Instant) {
	end := func(x *dueEntry) job.Instant {
		if p := x.def.Pause; p != nil && p.At > x.cursor.Next {
			return min(until, p.At)
		}
		return until
	}
	var missed, apart []*dueEntry // apart: not right behind what they owe
	for _, x := range all {
		c := &x.cursor
		if c.Next == 0 || c.Next >= until || x.def.Pause.Covers(c.Next) || !x.missable() {
			continue
		}
		missed = append(missed, x)
		if r, n := x.owing(end(x)); !x.extends(r, n) {
			apart = append(apart, x)
		}
	}
	if len(apart) > 0 {
		e.roomForDebts(apart)
	}
	for _, x := range missed {
		e.owe(x, end(x))
	}
}

// owing is the range of the instants from the next one on and before until, as far as the schedule has runs left, with their number.
func (d *dueEntry) owing(until job.Instant) (r job.InstantRange, n int) {
	c := &d.cursor
	n, last, _ := schedule.Count(d.sched, c.Next.Add(-time.Millisecond).Time(), until.Add(-time.Millisecond).Time(), job.MaxCatchUp)
	if most := d.spec.MaxRuns - c.Runs; d.spec.MaxRuns > 0 && int64(n) > most {
		last = c.Next.Time()
		for n = 1; int64(n) < most; n++ {
			last, _ = d.sched.Next(last)
		}
	}
	return job.InstantRange{From: c.Next, To: job.InstantOf(last)}, n
}

// extends tells that nothing lies between a range of n instants and the newest that is owed: they become one, as far as one decision can
// count both.
func (d *dueEntry) extends(r job.InstantRange, n int) bool {
	owed := d.cursor.OwedRanges()
	if len(owed) == 0 {
		return false
	}
	newest := owed[len(owed)-1]
	before, _, done := schedule.Count(d.sched, newest.From.Add(-time.Millisecond).Time(), newest.To.Time(), job.MaxCatchUp)
	return done && before+n <= job.MaxCatchUp && nextAfter(d.sched, newest.To) == r.From
}

// owe makes a debt of the instants from the next one on and before until.
func (e *Engine) owe(x *dueEntry, until job.Instant) {
	e.about = x.about()
	c := &x.cursor
	r, n := x.owing(until)
	if x.extends(r, n) {
		c.OweOn(r.To)
	} else {
		c.Owe(r)
	}
	c.Runs += int64(n)
	c.Revision = x.def.Revision
	e.due.debts.of(c.Job, e.due.jobs[c.Job])
	e.advance(x, r.To)
	e.moved(x)
}
