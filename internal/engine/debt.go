package engine

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// Debts are missed instants that will run yet: the cursors of a job keep their range, and go on with what is on time.
// So after an outage nothing that is due waits behind what was missed, and what was missed comes at a rate that leaves
// room: so many executions a second, and of each job no more than its overlap policy would let wait. All schedules of a
// job are in the book when it owes, for those that share an instant make one execution (R4).
type debtBook struct {
	jobs    map[job.UID]*debt
	heap    debtHeap         // those that may be paid
	blocked map[job.UID]bool // there is no room for them: until an execution of the job ends, or for a second
	look    time.Duration    // when the blocked ones are looked at again
	free    time.Duration    // the next one may be paid; up to a burst ago

	unread bool        // the database may hold debts that are not here
	from   *job.Cursor // their read goes on behind it
	askAt  time.Duration
	waits  bool // a page is on its way
	turn   bool // of the due page
}

// debt is what a job owes.
type debt struct {
	job   job.UID
	at    job.Instant // the oldest instant
	index int         // in the heap; -1: blocked
}

type debtHeap []*debt

func (h debtHeap) Len() int { return len(h) }
func (h debtHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), bytes.Compare(h[i].job[:], h[j].job[:])) < 0
}
func (h debtHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *debtHeap) Push(x any) {
	d := x.(*debt)
	d.index = len(*h)
	*h = append(*h, d)
}
func (h *debtHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	d.index = -1
	return d
}

func newDebtBook() debtBook {
	return debtBook{jobs: map[job.UID]*debt{}, blocked: map[job.UID]bool{}}
}

const (
	debtBurst = 200 * time.Millisecond // what may be paid at once after a rest
	debtLook  = time.Second
)

// of notes what a job owes, with the schedules that are in the book.
func (b *debtBook) of(u job.UID, all []*dueEntry) {
	var at job.Instant
	for _, x := range all {
		if o := x.cursor.Owed; o != 0 && (at == 0 || o < at) {
			at = o
		}
	}
	d := b.jobs[u]
	switch {
	case at == 0 && d == nil:
	case at == 0:
		if d.index >= 0 {
			heap.Remove(&b.heap, d.index)
		}
		delete(b.jobs, u)
		delete(b.blocked, u)
	case d == nil:
		d = &debt{job: u, at: at}
		b.jobs[u] = d
		heap.Push(&b.heap, d)
	default:
		d.at = at
		if d.index >= 0 {
			heap.Fix(&b.heap, d.index)
		}
	}
}

// unknown tells that what a job owes is in the database and was not read with all its schedules yet.
func (b *debtBook) unknown(u job.UID, all []*dueEntry) bool {
	if b.jobs[u] != nil || !slices.ContainsFunc(all, func(x *dueEntry) bool { return x.cursor.Owed != 0 }) {
		return false
	}
	if !b.unread { // it came from another partition
		b.again()
	}
	return true
}

// block lets a job wait until there may be room.
func (b *debtBook) block(d *debt, now time.Duration) {
	if len(b.blocked) == 0 {
		b.look = now + debtLook
	}
	heap.Remove(&b.heap, d.index)
	b.blocked[d.job] = true
}

// unblock: an execution of the job has ended.
func (b *debtBook) unblock(u job.UID) {
	if b.blocked[u] {
		delete(b.blocked, u)
		heap.Push(&b.heap, b.jobs[u])
	}
}

func (b *debtBook) unblockAll(now time.Duration) {
	if len(b.blocked) == 0 || now < b.look {
		return
	}
	b.look = now + debtLook
	for u := range b.blocked {
		b.unblock(u)
	}
}

// wake is when the next debt may be paid, or a page has to be asked for again.
func (b *debtBook) wake(now time.Duration) (at time.Duration, is bool) {
	earlier := func(t time.Duration) {
		if !is || t < at {
			at, is = max(t, now), true
		}
	}
	if len(b.heap) > 0 {
		earlier(b.free)
	}
	if len(b.blocked) > 0 {
		earlier(b.look)
	}
	if b.asked(now) {
		earlier(b.askAt + askAgain)
	}
	return at, is
}

// again reads all debts from the start.
func (b *debtBook) again() { b.unread, b.from = true, nil }

func (b *debtBook) asked(now time.Duration) bool { return b.waits && now < b.askAt+askAgain }

// want asks for the next page of debts, and leaves every other turn to the due page.
func (b *debtBook) want(e *Engine) *WantDue {
	if !e.loaded || !b.unread || b.asked(e.now.Mono) || e.due.asking != 0 && e.now.Mono < e.due.askedAt+askAgain {
		return nil
	}
	if b.turn && e.due.from != nil {
		b.turn = false
		return nil
	}
	b.waits, b.turn, b.askAt = true, true, e.now.Mono
	return &WantDue{Owed: true, After: b.from, Limit: max(e.cfg.PageSize, job.MaxSchedules)}
}

// owedPage takes jobs that owe into the book, each with all its schedules that do.
func (e *Engine) owedPage(ev DuePage) {
	b := &e.due.debts
	b.waits = false
	if e.pages.tooOld(ev.Seq) || !b.unread || !samePlace(ev.After, b.from) {
		return
	}
	items := ev.Items
	if n := len(items); ev.Partial && n > 0 { // the last job may go on in the next page, unless it is the only one
		first := n - 1
		for first > 0 && items[first-1].Cursor.Job == items[n-1].Cursor.Job {
			first--
		}
		if first > 0 {
			items = items[:first]
		}
	}
	b.unread = false
	for i := 0; i < len(items); {
		n := i + 1
		for n < len(items) && items[n].Cursor.Job == items[i].Cursor.Job {
			n++
		}
		if !e.takeOwed(items[i:n], ev.Seq) {
			b.again()
		}
		i = n
	}
	if last := ev.last(items); last != nil && !b.unread {
		b.unread, b.from = true, last
	}
	e.pages.read(ev.Seq)
}

// takeOwed takes one job. false: it went on since the page was read, and has to be read again.
func (e *Engine) takeOwed(items []Due, seq int64) bool {
	u := items[0].Cursor.Job
	for i := range items {
		k := dueKey{u, items[i].Cursor.Schedule}
		if e.due.entries[k] == nil && (e.cursorChanged(k, seq) || e.streakOn(u, seq)) {
			return false
		}
		if items[i].stale() {
			return true // its job_changed entry is on its way, and brings it
		}
	}
	for i := range items {
		if e.due.entries[dueKey{u, items[i].Cursor.Schedule}] == nil {
			e.follow(items[i].Definition, items[i].Cursor, 0)
		}
	}
	e.due.debts.of(u, e.due.jobs[u])
	return true
}

// catchUp pays debts, the oldest first, as far as the rate and the overlap policies of the jobs let it.
func (e *Engine) catchUp() {
	b := &e.due.debts
	b.unblockAll(e.now.Mono)
	bounded := e.knownToAll(levelTime) // a server that does not know of debts would leave them for ever
	b.free = max(b.free, e.now.Mono-debtBurst)
	for len(b.heap) > 0 && (!bounded || b.free <= e.now.Mono) {
		d := b.heap[0]
		switch x := e.due.jobs[d.job][0]; {
		case x.autoPaused():
			e.giveUpAll(d.job)
		case !bounded:
			e.pay(d)
		case !e.overlapRoom(x.def, job.TriggerCatchUp):
			b.block(d, e.now.Mono)
		default:
			e.pay(d)
			b.free += time.Second / time.Duration(max(e.cfg.CatchUpRate, 1))
		}
	}
}

// pay makes the execution of the oldest instant that a job owes.
func (e *Engine) pay(d *debt) {
	trigger := job.TriggerCatchUp
	if !e.knownToAll(levelTime) {
		trigger = job.TriggerSchedule
	}
	e.oldest(d, func(x *dueEntry, at job.Instant) bool { return e.fire(x, at, trigger) })
}

// forgo decides that the oldest instant that a job owes does not run.
func (e *Engine) forgo(d *debt) {
	e.oldest(d, func(x *dueEntry, at job.Instant) bool {
		e.decide(x.def, x.cursor.Schedule, job.DecisionMissed, job.ReasonMisfireGiven, at, at, 1)
		return false
	})
}

// oldest takes the oldest instant that a job owes off all schedules that owe it; settle tells whether it runs.
func (e *Engine) oldest(d *debt, settle func(x *dueEntry, at job.Instant) bool) {
	all, at := slices.Clone(e.due.jobs[d.job]), d.at
	for _, x := range all {
		c := &x.cursor
		if c.Owed != at {
			continue
		}
		e.about = x.about()
		if !settle(x, at) {
			c.Runs--
		}
		c.OwesOn(nextAfter(x.sched, at))
		e.writeCursor(*c)
	}
	e.paid(d.job, all)
}

// paid notes what a job still owes.
func (e *Engine) paid(u job.UID, all []*dueEntry) {
	e.due.debts.of(u, all)
	for _, x := range all {
		if x.cursor.Owed == 0 && x.index < 0 {
			e.due.drop(x)
		}
	}
}

// roomForDebts lets schedules of a job owe one range more each. Who has MaxOwed outages behind him and found no room for the first
// yet gets that one's now, by his overlap policy, but that the past replaces nothing: then it is given up. A server of an older build
// knows of one range only, and would lose others.
func (e *Engine) roomForDebts(need []*dueEntry) {
	u, most := need[0].def.UID, job.MaxOwed
	if !e.knownToAll(levelDebts) {
		most = 1
	}
	full := func(x *dueEntry) bool { return len(x.cursor.OwedRanges()) >= most }
	for d := e.due.debts.jobs[u]; d != nil && slices.ContainsFunc(need, full); d = e.due.debts.jobs[u] {
		if x := need[0]; x.def.Spec.OverlapOf() == job.OverlapReplace && !e.overlapRoom(x.def, job.TriggerCatchUp) {
			e.forgo(d)
		} else {
			e.pay(d)
		}
		e.step.walked++
	}
}

// giveUpAll decides what a job owes, for it will not run.
func (e *Engine) giveUpAll(u job.UID) {
	all := slices.Clone(e.due.jobs[u])
	for _, x := range all {
		if x.cursor.Owed != 0 {
			e.about = x.about()
			e.giveUp(x.def, x.sched, &x.cursor, job.DecisionMissed, job.ReasonMisfireGiven, nil)
			e.writeCursor(x.cursor)
		}
	}
	e.paid(u, all)
}

// giveUp decides what one schedule owes, but for instants that run all the same (nil: none does). Those that it does not run do not
// count as its runs.
func (e *Engine) giveUp(def *job.Definition, s schedule.Schedule, c *job.Cursor, kind job.DecisionKind, why job.Reason, runs func(at job.Instant) bool) {
	for c.Owed != 0 {
		part, n := job.InstantRange{From: c.Owed, To: c.OwedTo}, 1 // when the schedule is not known any more
		if s != nil {
			part.To, n = 0, 0
		}
		flush := func() {
			if n > 0 {
				e.decide(def, c.Schedule, kind, why, part.From, part.To, int64(n))
				c.Runs -= int64(n)
			}
			n = 0
		}
		for at := c.Owed; s != nil && at != 0 && at <= c.OwedTo; at = nextAfter(s, at) {
			if runs != nil && runs(at) {
				flush()
				continue
			}
			if n++; n == 1 {
				part.From = at
			}
			part.To = at
		}
		flush()
		c.OwesOn(0)
	}
}
