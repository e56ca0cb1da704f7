package engine

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// dueBook holds the schedules that are due within the horizon, and those that owe missed instants; the others stay in the
// database.
type dueBook struct {
	entries map[dueKey]*dueEntry
	jobs    map[job.UID][]*dueEntry // the same, in the order of their names
	heap    dueHeap                 // those that are due within the horizon
	until   job.Instant             // every schedule with Next ≤ until is here, or was left out by the guard
	unsure  map[job.UID]bool        // left out of the read that goes on, and read again
	aside   map[job.UID]bool        // left out of it: an entry on its way brings them
	from    *job.Cursor             // the read goes on behind it
	asking  job.Instant             // of the page on its way; 0: none
	askedAt time.Duration
	debts   debtBook
}

type dueKey struct {
	job      job.UID
	schedule string
}

type dueEntry struct {
	def    *job.Definition
	spec   *job.Schedule
	sched  schedule.Schedule
	cursor job.Cursor
	told   job.Cursor  // as the database has it once every batch so far is committed
	known  job.Instant // schedules of the same job that are due until then are here too
	index  int         // in the heap; -1: not there
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
	d.index = -1
	return d
}

func compareDue(x, y *dueEntry) int {
	a, b := x.cursor, y.cursor
	return cmp.Or(cmp.Compare(a.Next, b.Next), cmp.Compare(a.Job.String(), b.Job.String()), cmp.Compare(a.Schedule, b.Schedule))
}

func newDueBook() dueBook {
	return dueBook{entries: map[dueKey]*dueEntry{}, jobs: map[job.UID][]*dueEntry{}, unsure: map[job.UID]bool{}, aside: map[job.UID]bool{}, debts: newDebtBook()}
}

// add takes a schedule in; push lets it be planned.
func (d *dueBook) add(x *dueEntry) {
	x.index = -1
	d.entries[dueKey{x.cursor.Job, x.cursor.Schedule}] = x
	of := d.jobs[x.cursor.Job]
	of = append(of, x)
	slices.SortFunc(of, func(a, b *dueEntry) int { return cmp.Compare(a.cursor.Schedule, b.cursor.Schedule) })
	d.jobs[x.cursor.Job] = of
}

func (d *dueBook) push(x *dueEntry) {
	if x.index < 0 && x.cursor.Next != 0 {
		heap.Push(&d.heap, x)
	}
}

// drop forgets a schedule.
func (d *dueBook) drop(x *dueEntry) {
	k := dueKey{x.cursor.Job, x.cursor.Schedule}
	if d.entries[k] != x {
		return
	}
	if x.index >= 0 {
		heap.Remove(&d.heap, x.index)
	}
	delete(d.entries, k)
	of := slices.DeleteFunc(d.jobs[k.job], func(y *dueEntry) bool { return x == y })
	if d.jobs[k.job] = of; len(of) == 0 {
		delete(d.jobs, k.job)
	}
	if x.cursor.Owed != 0 {
		d.debts.of(k.job, of)
	}
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
	if e.now.Mono-e.wallMoved > standing || in == 0 && (d.asking != 0 || d.debts.asked(e.now.Mono)) {
		in = max(in, 500*time.Millisecond)
	}
	wake := e.now.Mono + in
	if at, is := d.debts.wake(e.now.Mono); is {
		wake = min(wake, at)
	}
	return wake, true
}

// Undecided is the first instant that may be due and have become nothing yet; what was set aside does not count, and what was
// missed counts until it is a debt or a decision. It lies ahead of the wall clock while planning goes on. 0: nothing was
// read yet.
func (e *Engine) Undecided() job.Instant {
	d := &e.due
	if len(d.heap) > 0 && (d.until == 0 || d.heap[0].cursor.Next <= d.until) {
		return d.heap[0].cursor.Next
	}
	if d.until == 0 {
		return 0
	}
	return d.until + 1
}

// want asks for the schedules of the next horizon when half of it is used up, and in turn for those that owe. One page is
// on its way at a time.
func (d *dueBook) want(e *Engine) *WantDue {
	if w := d.debts.want(e); w != nil || d.debts.asked(e.now.Mono) {
		return w
	}
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

// last is where a page ended of which items were taken and behind which there are more; nil when there are not.
func (p DuePage) last(items []Due) *job.Cursor {
	switch n := len(items); {
	case !p.Partial:
		return nil
	case n < len(p.Items) || n > 0 && p.Through == nil:
		return &items[n-1].Cursor
	default:
		return p.Through
	}
}

// samePlace tells that a page goes on where the read is.
func samePlace(a, b *job.Cursor) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Next == b.Next && a.Job == b.Job && a.Schedule == b.Schedule
}

func (e *Engine) duePage(ev DuePage) {
	d := &e.due
	if ev.Owed {
		e.owedPage(ev)
		return
	}
	if e.pages.tooOld(ev.Seq) {
		d.asking = 0
		return
	}
	if !samePlace(ev.After, d.from) || d.from != nil && ev.Until != d.asking {
		return // of an earlier read, or asked for twice: it must not bring some schedules of a job alone
	}
	for i := range ev.Items {
		e.takeDue(&ev.Items[i], &ev)
	}
	if last := ev.last(ev.Items); last != nil {
		d.from, d.asking = last, ev.Until
		d.askedAt = e.now.Mono - askAgain // the next part at once
	} else {
		d.from, d.asking = nil, 0
		d.until = max(d.until, ev.Until)
		clear(d.aside)
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
	case e.due.unsure[c.Job], e.due.aside[c.Job], e.turns.moving[c.Job]:
	case here == nil && e.streakOn(c.Job, page.Seq):
		e.due.unsure[c.Job] = true
		e.reread(c.Job)
	case changed && here == nil:
		// It went on since and is due later, or its job is being read anew: then its place in this page
		// is old, and the job's other schedules may not go on alone.
		if len(item.Definition.Spec.Schedules) > 1 {
			e.due.unsure[c.Job] = true
			e.reread(c.Job)
		}
	case !changed && item.stale():
		// Its job_changed entry is on its way and decides what the old revision still owes, for all
		// schedules of the job together: none of them may go on alone.
		e.unfollowJob(c.Job)
		e.due.aside[c.Job] = true
	case here != nil:
		here.known = max(here.known, page.Until)
		if here.cursor.Next <= page.Until {
			e.due.push(here)
		}
	default:
		if x := e.follow(item.Definition, c, page.Until); x != nil {
			e.due.push(x)
		}
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
func (e *Engine) follow(def *job.Definition, c job.Cursor, known job.Instant) *dueEntry {
	if e.unfit(def, c.Schedule) {
		return nil
	}
	for i := range def.Spec.Schedules {
		s := &def.Spec.Schedules[i]
		if s.ID != c.Schedule {
			continue
		}
		entry := &dueEntry{def: def, spec: s, cursor: c, told: c, known: known}
		if !e.parse(entry, s.Spec) {
			continue
		}
		e.due.add(entry)
		return entry
	}
	return nil
}

func (e *Engine) unfollow(k dueKey) {
	if entry := e.due.entries[k]; entry != nil {
		e.due.drop(entry)
	}
}

func (e *Engine) unfollowJob(u job.UID) {
	for _, x := range slices.Clone(e.due.jobs[u]) {
		e.due.drop(x)
	}
}

// reread forgets a job that pages will bring again.
func (e *Engine) reread(u job.UID) {
	if e.due.debts.jobs[u] != nil {
		e.due.debts.again()
	}
	e.unfollowJob(u)
}
