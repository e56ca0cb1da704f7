package engine

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// soonBook holds executions that wait for the instant that they were asked for (scheduled, job.WaitDelay): those that are
// due within the horizon, nearest first when they do not all fit. The others stay in the database and are read page by
// page in the order of their instants (R14).
type soonBook struct {
	wheel   *schedule.Wheel[job.ExecutionID]
	held    map[job.ExecutionID]*execution // that are in the wheel
	ripe    []*execution                   // due on time …
	late    []*execution                   // … and when they came here: they give way
	through Place                          // what is planned up to here is in memory
	unseen  []unseen                       // left in the database where a page that is read now may not show it
	askedAt time.Duration                  // of the page on its way; 0: none
	from    time.Duration                  // monotonic instant from which what is due may be admitted, see stalled
}

// An owner that stood still (its machine was suspended, or its process stopped) for less than its lease finds what came due meanwhile in
// memory, and what people asked meanwhile in the inbox: a reschedule or a cancel that was stored before the instant. So a step that comes
// late by stallAfter asks for the inbox and lets nothing that waited for its instant begin before a page of it has come (heard), for stallWait
// at most; and stallEach lies between, so that who is always late is not kept from it. A page that was on its way when the owner stood still
// counts as well, and so does the first of several: what lies behind it comes too late.
const (
	stallAfter = 250 * time.Millisecond
	stallWait  = time.Second
	stallEach  = 2 * time.Second
)

func (b *soonBook) stalled(e *Engine) {
	if b.kept() == 0 {
		return
	}
	e.step.inbox = true
	if b.from == 0 || e.now.Mono >= b.from+stallEach {
		b.from = e.now.Mono + stallWait
	}
}

// heard tells that a page of the inbox has come.
func (b *soonBook) heard(now time.Duration) { b.from = min(b.from, now) }

// Place is a place in the order of planned instants.
type Place struct {
	At job.Instant
	ID job.ExecutionID
}

// unseen is the first place at which a batch left an execution in the database.
type unseen struct {
	seq   int64
	first Place
}

// Compare orders places.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.At, o.At), bytes.Compare(p.ID[:], o.ID[:]))
}

// EndOf is the place behind all that is planned at an instant.
func EndOf(at job.Instant) Place {
	return Place{at, job.ExecutionID(bytes.Repeat([]byte{0xff}, len(job.ExecutionID{})))}
}

func (p Place) before() Place { return Place{At: p.At - 1} }

func placeOf(x *job.Execution) Place { return Place{x.PlannedAt, x.ID} }

// delay makes an execution that waits for its instant.
func (e *Engine) delay(row job.Execution, def *job.Definition) *execution {
	x := e.postpone(row, def, job.WaitDelay)
	e.putOff(x)
	return x
}

// putOff puts an execution that waits for its instant into the wheel, or leaves it in the database.
func (e *Engine) putOff(x *execution) {
	b, at := &e.soon, placeOf(&x.row)
	keep := at.At <= e.now.Wall.Add(e.cfg.Horizon)
	switch {
	case !keep:
	case len(b.held) >= e.cfg.SoonMax:
		keep = at.Compare(e.shrink()) <= 0
	case at.Compare(b.through) > 0: // it may not take the room that those before it in the database need
		keep = b.kept() < e.cfg.SoonMax/2
	}
	if keep {
		e.executions[x.row.ID], b.held[x.row.ID] = x, x
		x.timer = b.wheel.Insert(int64(at.At), x.row.ID)
		delete(e.step.left, x.row.ID)
		return
	}
	e.leaveBehind(x)
}

// leaveBehind leaves an execution in the database, with the batch of this step, until whose end it is known here.
func (e *Engine) leaveBehind(x *execution) {
	if e.step.left == nil {
		e.step.left = map[job.ExecutionID]*execution{}
	}
	e.executions[x.row.ID], e.step.left[x.row.ID] = x, x
	b, at := &e.soon, placeOf(&x.row)
	if at.At > e.now.Wall.Add(2*e.cfg.Horizon) {
		return // no page that is under way looks so far ahead
	}
	if at.Compare(b.through) <= 0 {
		b.through = at.before()
	}
	const most = 1024
	switch n := len(b.unseen); {
	case n > 0 && (b.unseen[n-1].seq == e.seq+1 || n >= most):
		u := &b.unseen[n-1]
		u.seq = e.seq + 1
		if at.Compare(u.first) < 0 {
			u.first = at
		}
	default:
		b.unseen = append(b.unseen, unseen{e.seq + 1, at})
	}
}

// shrink leaves the later half of what is held to the database, and gives the last place that stays.
func (e *Engine) shrink() Place {
	b := &e.soon
	all := make([]*execution, 0, len(b.held))
	for _, x := range b.held {
		all = append(all, x)
	}
	slices.SortFunc(all, func(x, y *execution) int { return placeOf(&x.row).Compare(placeOf(&y.row)) })
	half := len(all) / 2
	for _, x := range all[half:] {
		b.drop(x)
		e.leaveBehind(x)
	}
	if half == 0 {
		return Place{}
	}
	return placeOf(&all[half-1].row)
}

// drop takes an execution out of the wheel and of what is due; one that is in neither is left alone.
func (b *soonBook) drop(x *execution) {
	if b.held[x.row.ID] == x {
		b.wheel.Cancel(x.timer)
		delete(b.held, x.row.ID)
	}
	x.ripe = false
}

// admitRipe admits what is due: what is on time first, then what came too late, as many as a page in one step.
func (e *Engine) admitRipe() {
	b := &e.soon
	if b.wheel == nil {
		return
	}
	var due []*execution
	b.wheel.Advance(int64(e.now.Wall), func(_ int64, id job.ExecutionID) {
		x := b.held[id]
		delete(b.held, id)
		x.ripe = true
		due = append(due, x)
	})
	slices.SortFunc(due, func(x, y *execution) int { return placeOf(&x.row).Compare(placeOf(&y.row)) })
	lateBefore := e.now.Wall.Add(-lateRipe)
	for _, x := range due {
		if x.row.PlannedAt < lateBefore {
			b.late = append(b.late, x)
		} else {
			b.ripe = append(b.ripe, x)
		}
	}
	if e.now.Mono < b.from {
		return
	}
	left := e.cfg.PageSize
	left, b.ripe = e.admitSome(b.ripe, left)
	_, b.late = e.admitSome(b.late, left)
	e.about = About{}
}

// lateRipe is how late an execution may come here and not give way.
const lateRipe = 2 * time.Second

// admitSome admits up to n; one that was cancelled or put off since is passed over.
func (e *Engine) admitSome(all []*execution, n int) (int, []*execution) {
	for ; len(all) > 0 && n > 0; all = all[1:] {
		x := all[0]
		if !x.ripe {
			continue
		}
		x.ripe = false
		if x.row.State != job.ExecutionScheduled || x.row.Cancel != "" {
			continue
		}
		e.at(x.row.ID)
		e.admit(x)
		n--
	}
	if len(all) == 0 {
		return n, nil
	}
	return n, all
}

// reschedule moves an execution that waits for its instant to another one. It keeps its id and its key.
func (e *Engine) reschedule(x *execution, entry Entry) {
	if entry.Request == nil {
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Note: "reschedule that names no instant"})
		return
	}
	if x == nil || x.row.State != job.ExecutionScheduled || x.row.Reason != job.WaitDelay || x.row.Cancel != "" {
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Reason: job.ReasonNotScheduled, Note: "reschedule of an execution that waits for no instant"})
		return // its instant came, or it was cancelled, before this was taken in: the caller hears the same reason
	}
	e.soon.drop(x)
	was := x.row.PlannedAt
	x.row.PlannedAt = entry.Request.At
	e.touch(x)
	e.fact(Fact{Kind: FactRescheduled, Job: x.name(), Execution: x.row.ID, PlannedAt: x.row.PlannedAt, Until: was, Note: entry.Note})
	e.putOff(x)
}

// hasRoom tells whether another page of executions can be held.
func (b *soonBook) hasRoom(e *Engine) bool {
	return b.kept() <= e.cfg.SoonMax/2
}

func (b *soonBook) kept() int { return len(b.held) + len(b.ripe) + len(b.late) }

// wantScheduled asks for what comes behind, when less than half of the horizon is in memory.
func (e *Engine) wantScheduled() *WantScheduled {
	b := &e.soon
	until := e.now.Wall.Add(e.cfg.Horizon)
	if !e.loaded || b.askedAt > 0 && e.now.Mono < b.askedAt+askAgain || b.through.At > until.Add(-e.cfg.Horizon/2) || !b.hasRoom(e) {
		return nil
	}
	b.askedAt = max(e.now.Mono, 1)
	return &WantScheduled{Until: until, After: b.through, Limit: e.cfg.PageSize}
}

// scheduledPage takes what waits for its instant out of the database. A page that does not go on where memory ends is an
// answer to an earlier question.
func (e *Engine) scheduledPage(ev ScheduledPage) {
	b, p := &e.soon, &e.pages
	b.askedAt = 0
	if p.tooOld(ev.Seq) || ev.After != b.through {
		return // asked again by want
	}
	if slices.ContainsFunc(ev.Rows, func(r Row) bool { return p.left(r.Execution.JobUID, ev.Seq) }) {
		return
	}
	for _, row := range ev.Rows {
		x := &row.Execution
		if e.executions[x.ID] != nil || e.step.created[x.ID] || p.changed(x.ID, ev.Seq) || x.State != job.ExecutionScheduled ||
			x.Reason != job.WaitDelay || !e.usable(&row) {
			continue
		}
		held := e.hold(row)
		b.held[x.ID] = held
		held.timer = b.wheel.Insert(int64(x.PlannedAt), x.ID)
		if goesWithJob(row.Definition) {
			e.cancel(held, Entry{Definition: row.Definition})
		}
		e.heldNow(row)
	}
	b.through = ev.Through
	b.unseen = slices.DeleteFunc(b.unseen, func(u unseen) bool { return u.seq <= ev.Seq })
	for _, u := range b.unseen {
		if u.first.Compare(b.through) <= 0 {
			b.through = u.first.before()
		}
	}
	p.read(ev.Seq)
}

// wake is when the next one is due, or the next page is wanted; false when neither will be.
func (b *soonBook) wake(e *Engine) (at time.Duration, some bool) {
	if len(b.ripe)+len(b.late) > 0 {
		return max(e.now.Mono, b.from), true
	}
	if next, has := b.wheel.Next(); has {
		at, some = e.wallAt(job.Instant(next)), true
	}
	if !b.hasRoom(e) {
		return at, some
	}
	page := e.wallAt(b.through.At.Add(-e.cfg.Horizon / 2))
	if b.askedAt > 0 {
		page = b.askedAt + askAgain
	}
	if !some || page < at {
		at = page
	}
	return at, true
}

// wallAt is the monotonic instant at which the wall clock may show at. One that stands still is looked at twice a second.
func (e *Engine) wallAt(at job.Instant) time.Duration {
	in := max(at.Sub(e.now.Wall), 0)
	const standing = 50 * time.Millisecond
	if e.now.Mono-e.wallMoved > standing {
		in = max(in, 500*time.Millisecond)
	}
	return e.now.Mono + in
}
