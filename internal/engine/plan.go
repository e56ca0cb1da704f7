package engine

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// dueBook holds the schedules that are due within the horizon; the others stay in the database.
type dueBook struct {
	entries map[dueKey]*dueEntry
	heap    dueHeap
	until   job.Instant      // every schedule with Next ≤ until is here, or was left out by the guard
	unsure  map[job.UID]bool // left out of the read that goes on
	from    *job.Cursor      // the read goes on behind it
	asking  job.Instant      // of the page on its way; 0: none
	askedAt time.Duration
}

type dueKey struct {
	job      job.UID
	schedule string
}

type dueEntry struct {
	def     *job.Definition
	sched   schedule.Schedule
	cursor  job.Cursor
	settled job.Instant // what was missed before it has been decided
	known   job.Instant // schedules of the same job that are due until then are here too
	index   int
}

type dueHeap []*dueEntry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return compareDue(h[i], h[j]) < 0 }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *dueHeap) Push(x any) {
	d := x.(*dueEntry)
	d.index = len(*h)
	*h = append(*h, d)
}
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}

func compareDue(x, y *dueEntry) int {
	a, b := x.cursor, y.cursor
	return cmp.Or(cmp.Compare(a.Next, b.Next), cmp.Compare(a.Job.String(), b.Job.String()), cmp.Compare(a.Schedule, b.Schedule))
}

func newDueBook() dueBook {
	return dueBook{entries: map[dueKey]*dueEntry{}, unsure: map[job.UID]bool{}}
}

// wake is when the next schedule is due, or the next page of them is wanted. Wall time is turned into
// monotonic time as of the newest step; a wall clock that stands still is looked at twice a second.
func (d *dueBook) wake(e *Engine) (time.Duration, bool) {
	at := d.until.Add(-e.cfg.Horizon / 2)
	if len(d.heap) > 0 {
		at = min(at, d.heap[0].cursor.Next)
	}
	in := max(at.Sub(e.now.Wall), 0)
	const standing = 50 * time.Millisecond
	if e.now.Mono-e.wallMoved > standing || d.asking != 0 && in == 0 {
		in = max(in, 500*time.Millisecond)
	}
	return e.now.Mono + in, true
}

// want asks for the schedules of the next horizon when half of it is used up.
func (d *dueBook) want(e *Engine) *WantDue {
	if !e.loaded || e.now.Wall < d.until.Add(-e.cfg.Horizon/2) && d.from == nil {
		return nil
	}
	if d.asking != 0 && e.now.Mono < d.askedAt+askAgain {
		return nil
	}
	if d.from == nil || d.asking == 0 {
		d.asking = e.now.Wall.Add(e.cfg.Horizon)
	}
	d.askedAt = e.now.Mono
	return &WantDue{Until: d.asking, After: d.from, Limit: e.cfg.PageSize}
}

func (e *Engine) duePage(ev DuePage) {
	d := &e.due
	if e.pages.tooOld(ev.Seq) {
		d.asking = 0
		return
	}
	for i := range ev.Items {
		e.takeDue(&ev.Items[i], &ev)
	}
	if ev.Partial && len(ev.Items) > 0 {
		last := ev.Items[len(ev.Items)-1].Cursor
		d.from, d.asking = &last, ev.Until
		d.askedAt = e.now.Mono - askAgain // the next part at once
	} else {
		d.from, d.asking = nil, 0
		d.until = max(d.until, ev.Until)
		if len(d.unsure) > 0 {
			d.until = min(d.until, e.now.Wall) // read again at once
			clear(d.unsure)
		}
	}
	e.pages.read(ev.Seq)
}

// takeDue takes one schedule of a page into the book.
func (e *Engine) takeDue(item *Due, page *DuePage) {
	c := item.Cursor
	here := e.due.entries[dueKey{c.Job, c.Schedule}]
	changed := e.cursorChanged(dueKey{c.Job, c.Schedule}, page.Seq)
	switch {
	case e.due.unsure[c.Job]:
	case changed && here == nil:
		// It went on since and is due later, or its job is being read anew: then its place in this page
		// is old, and the job's other schedules may not go on alone.
		if len(item.Definition.Spec.Schedules) > 1 {
			e.due.unsure[c.Job] = true
			e.unfollowJob(c.Job)
		}
	case !changed && c.Revision != item.Definition.Revision:
		// Its job_changed entry is on its way and decides what the old revision still owes, for all
		// schedules of the job together: none of them may go on alone.
		e.unfollowJob(c.Job)
	case here != nil:
		here.known = max(here.known, page.Until)
	default:
		e.follow(item.Definition, c, page.Until)
	}
}

// cursorChanged tells that a cursor is not any more as a page shows it: a batch behind the page has changed it, or an
// entry that this very step took before the page.
func (e *Engine) cursorChanged(k dueKey, seq int64) bool {
	_, written := e.step.cursors[k]
	_, dropped := e.step.dropped[k]
	return e.pages.cursorChanged(k, seq) || !e.pages.off && (written || dropped || e.step.handed[k.job])
}

// follow puts a schedule into the book, unless it does not parse (it was checked when it was written).
func (e *Engine) follow(def *job.Definition, c job.Cursor, known job.Instant) {
	if e.unfit(def, c.Schedule) {
		return
	}
	for _, s := range def.Spec.Schedules {
		if s.ID != c.Schedule {
			continue
		}
		entry := &dueEntry{def: def, cursor: c, known: known}
		if !e.parse(entry, s.Spec) {
			continue
		}
		e.due.entries[dueKey{c.Job, c.Schedule}] = entry
		heap.Push(&e.due.heap, entry)
	}
}

func (e *Engine) unfollow(k dueKey) {
	if entry := e.due.entries[k]; entry != nil {
		heap.Remove(&e.due.heap, entry.index)
		delete(e.due.entries, k)
	}
}

func (e *Engine) unfollowJob(u job.UID) {
	for k := range e.due.entries {
		if k.job == u {
			e.unfollow(k)
		}
	}
}

// plan turns every instant that is due into an execution or a decision, in the order of time. Missed
// ranges of all schedules are settled before anything fires, and all that is due at one instant fires in
// one step: two schedules of a job that are due together must meet here, for once their execution has
// ended nothing in memory tells that it was made (R4).
func (e *Engine) plan() {
	e.finish() // an end that arrived comes before what is due
	if !e.settleMissed() || !e.settleEnded() {
		return // bounded per step; NextWake is at once
	}
	var at job.Instant
	held := false
	for n := 0; len(e.due.heap) > 0 && e.due.heap[0].cursor.Next <= e.now.Wall; n++ {
		d := e.due.heap[0]
		wait, anew := e.incomplete(d)
		if held && d.cursor.Next != at {
			return // a pause lies behind at; what it held is settled first, in a step of its own
		}
		if wait || n >= e.cfg.CatchUpMax && d.cursor.Next != at {
			return
		}
		if anew {
			e.due.until = min(e.due.until, d.cursor.Next-1)
			e.unfollowJob(d.cursor.Job)
			continue
		}
		at = d.cursor.Next
		e.about = d.about()
		if d.def.Pause.Covers(at) {
			d.hold()
		} else {
			d.cursor.Revision = d.def.Revision
			e.fire(d, at)
			e.advance(d, at)
		}
		held = held || d.cursor.Held != 0
		e.moved(d)
	}
}

// moved writes how far d has come and finds its new place in the book.
func (e *Engine) moved(d *dueEntry) {
	e.writeCursor(d.cursor)
	if d.cursor.Next == 0 || d.cursor.Next > max(e.due.until, e.now.Wall.Add(e.cfg.Horizon)) {
		e.unfollow(dueKey{d.cursor.Job, d.cursor.Schedule})
	} else {
		heap.Fix(&e.due.heap, d.index)
	}
}

// incomplete tells that another schedule of d's job may be due at the same instant and not be here. In the
// next part of the page: planning waits for it. Or behind what was known when d came here (the wall clock
// or this engine jumped, or an edit that disables the job is on its way, for which pages leave it out):
// then the job is read anew.
func (e *Engine) incomplete(d *dueEntry) (wait, anew bool) {
	if len(d.def.Spec.Schedules) == 1 {
		return false, false
	}
	return e.due.from != nil, e.due.from == nil && d.cursor.Next > d.known
}

// settleMissed makes decisions of the instants that are later than the misfire grace, but for the newest
// of each schedule: that one fires (policy once). false: the bound of a step was reached, more is missed.
func (e *Engine) settleMissed() bool {
	missedBefore := e.now.Wall.Add(-e.cfg.MisfireGrace)
	done := true
	for len(e.due.heap) > 0 { // rare: nothing to do unless the oldest is late
		d := e.due.oldest(missedBefore)
		if d == nil || !done {
			break
		}
		if done = e.settle(d, missedBefore); done {
			d.settled = missedBefore
		}
	}
	return done
}

// oldest is the first schedule that has missed instants which were not settled yet; nil when there is none.
func (d *dueBook) oldest(missedBefore job.Instant) *dueEntry {
	if d.heap[0].cursor.Next >= missedBefore {
		return nil
	}
	var first *dueEntry
	for i, x := range d.heap {
		if x.cursor.Next < missedBefore && x.settled < missedBefore && (first == nil || d.heap.Less(i, first.index)) {
			first = x
		}
	}
	return first
}

func (e *Engine) settle(d *dueEntry, missedBefore job.Instant) bool {
	e.about = d.about()
	first := d.cursor.Next
	if !e.settleHeld(d.def, d.sched, &d.cursor, first) {
		e.writeCursor(d.cursor)
		return false
	}
	e.writeCursor(d.cursor) // what was held is decided now
	if p := d.def.Pause; p != nil && p.At > first && p.At < missedBefore {
		missedBefore = p.At // what is behind it was not missed: it is held
	}
	if d.def.Pause.Covers(first) {
		d.hold()
		e.moved(d)
		return true
	}
	before, until := first.Add(-time.Millisecond).Time(), missedBefore.Add(-time.Millisecond).Time()
	n, last, all := schedule.Count(d.sched, before, until, e.cfg.CatchUpMax)
	if all && n > 1 { // the newest one fires
		n--
		_, last, _ = schedule.Count(d.sched, before, last.Add(-time.Millisecond), e.cfg.CatchUpMax)
	} else if all {
		return true
	}
	d.cursor.Revision = d.def.Revision
	e.missed(d, first, job.InstantOf(last), int64(n))
	e.advance(d, job.InstantOf(last))
	e.moved(d)
	return all
}

// advance moves the cursor behind an instant that was decided.
func (e *Engine) advance(d *dueEntry, at job.Instant) {
	d.cursor.Last, d.cursor.Next = max(d.cursor.Last, at), 0
	if next, ok := d.sched.Next(at.Time()); ok {
		d.cursor.Next = job.InstantOf(next)
	}
	if d.cursor.Next != 0 && d.cursor.Next <= at {
		d.cursor.Next = 0
		e.leaveOut(d.about(), d.def.Namespace+"/"+d.def.Name, "it does not advance")
	}
	e.fact(Fact{Kind: FactPlanned, Job: d.def.Namespace + "/" + d.def.Name, PlannedAt: at, Until: d.cursor.Next})
	d.hold()
}

func (e *Engine) fire(d *dueEntry, at job.Instant) {
	def := d.def
	id := job.PlannedID(def.UID, at)
	if e.leftOut[About{Execution: id}] {
		e.fact(Fact{Kind: FactSetAside, Execution: id, PlannedAt: at, Note: "a planned execution that is left out is not made"})
		return
	}
	if e.executions[id] != nil || e.step.created[id] {
		return // two schedules of the job are due together: one execution (R4)
	}
	x, why := e.launch(job.Execution{
		ID: id, Partition: e.cfg.Partition, Namespace: def.Namespace, Job: def.Name, JobUID: def.UID, Revision: def.Revision,
		Pool: def.Spec.Pool, Handler: def.Spec.Handler, Trigger: job.TriggerSchedule, PlannedAt: at,
		Params: def.Spec.Params, ShardTotal: def.Spec.ShardTotal(),
	}, def)
	if x == nil {
		e.decide(def, d.cursor.Schedule, job.DecisionBlocked, why, at, at, 1)
	}
}

func (e *Engine) missed(d *dueEntry, from, to job.Instant, n int64) {
	e.decide(d.def, d.cursor.Schedule, job.DecisionMissed, job.ReasonMissedDown, from, to, n)
}
