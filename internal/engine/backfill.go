package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// A backfill runs a job for planned instants of the past, in the revision that was the newest when it was asked for. Its
// executions have the ids that the planner's would have had (R4), so each instant is looked up first: one that succeeded
// is passed over, one that ended otherwise runs again, one that lives is waited for. All instants of the range had been
// planned when it was asked for, so the planner makes none of them later. What was decided of an instant stays beside.
//
// How far it has come is written in the commits that make it so: whoever owns the partition next goes on from there.

// Backfill is a backfill as it is stored, with the definition of its revision.
type Backfill struct {
	job.Backfill
	Definition *job.Definition
	Home       *Home // when the job has a newer revision, or is elsewhere
}

// lookAhead is how many instants of a backfill are looked up at a time.
const lookAhead = 64

// backfill is one that has not ended.
type backfill struct {
	job.Backfill
	def   *job.Definition
	home  *Home // where its executions belong
	sent  bool
	lines []schedule.Schedule
	open  map[job.ExecutionID]job.Instant
	ahead []*look // in the order of the backfill
	last  job.Instant
	over  bool // nothing of the range lies behind last
	again bool // the next step goes on with it at once
	dirty bool
}

// look is an instant that was looked up.
type look struct {
	at    job.Instant
	id    job.ExecutionID
	known bool
	seq   int64              // of the page
	row   Row                // zero: it was nowhere
	away  job.ExecutionState // in another partition
}

// takeBackfill takes in what a person asked for, or what another partition has sent. false: its entry stays in the inbox, or goes on.
func (e *Engine) takeBackfill(entry Entry) bool {
	in := entry.Backfill
	if in == nil || in.Progress.State.Ended() {
		return true
	}
	b := e.backfills[in.ID]
	if b == nil {
		begun, at := in.Progress.Started != 0, in.Partition
		if !begun && (e.strays(&Home{Place: entry.Place, Planner: entry.Place}, entry.Definition, job.TriggerBackfill) || at != e.cfg.Partition) {
			at = entry.Place
		}
		switch {
		case at != e.cfg.Partition:
			e.forward(entry, at)
			return false
		case e.awaitsPlanner(&entry) && entry.Definition.Spec.Obeys(job.TriggerBackfill):
			return false
		}
	}
	if b == nil {
		b = e.holdBackfill(*in, entry.Definition)
		b.home = &Home{Place: entry.Place, Pool: entry.Pool, Planner: e.cfg.Partition}
		if in.Progress.Started == 0 && in.Partition != e.cfg.Partition {
			b.Progress.Pool = entry.Pool // it was asked for in another partition
		}
		e.fact(Fact{Kind: FactBackfill, Job: b.name(), PlannedAt: b.From, Until: b.To, Count: b.Spec.Total, To: string(job.BackfillRunning), Note: b.ID.String()})
	}
	b.Cancel = in.Cancel
	e.stopBackfill(b)
	return true
}

// holdBackfill takes a backfill into memory. One whose definition cannot be used ends.
func (e *Engine) holdBackfill(in job.Backfill, def *job.Definition) *backfill {
	b := &backfill{Backfill: in, def: def, open: map[job.ExecutionID]job.Instant{}, last: in.Progress.Cursor}
	if b.Progress.State == job.BackfillPending || b.Progress.State == "" {
		b.Progress.State, b.Progress.Started = job.BackfillRunning, e.now.Wall
		b.dirty = true
	}
	b.Progress.ID = b.ID
	for _, at := range b.Progress.Open {
		b.open[job.PlannedID(b.JobUID, at)] = at
	}
	unfit := in.Unfit != "" || def == nil || def.Unfit != ""
	for i := 0; !unfit && i < len(def.Spec.Schedules); i++ {
		s, err := def.Parse(def.Spec.Schedules[i].Spec)
		if err == nil {
			b.lines = append(b.lines, s)
		}
		unfit = err != nil
	}
	if unfit && b.Cancel == nil {
		b.Cancel = &job.BackfillCancel{At: e.now.Wall, Reason: job.ReasonBadEntry}
	}
	if e.backfills == nil {
		e.backfills = map[job.ExecutionID]*backfill{}
	}
	e.backfills[b.ID] = b
	return b
}

func (b *backfill) name() string { return b.Namespace + "/" + b.Job }

// stopBackfill does what a cancel asks for: nothing more is started, and what runs may be cancelled too.
func (e *Engine) stopBackfill(b *backfill) {
	if b.Cancel == nil {
		return
	}
	if b.Progress.State == job.BackfillRunning {
		b.Progress.State, b.dirty = job.BackfillCancelling, true
		e.fact(Fact{Kind: FactBackfill, Job: b.name(), To: string(job.BackfillCancelling), Note: b.ID.String()})
	}
	b.ahead, b.over = nil, true
	if !b.Cancel.Running {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(b.open), compareIDs) {
		if x := e.executions[id]; x != nil {
			e.cancel(x, Entry{Note: b.Cancel.Note})
		} else {
			e.pages.asked.ask(id)
		}
	}
}

func compareIDs(a, b job.ExecutionID) int { return bytes.Compare(a[:], b[:]) }

// runBackfills goes on with what runs the past.
func (e *Engine) runBackfills() {
	if len(e.backfills) == 0 {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(e.backfills), compareIDs) {
		b := e.backfills[id]
		b.again = false
		switch {
		case !e.loaded || !e.knownToAll(levelTime):
		case (!b.over || len(b.ahead) > 0) && e.strays(b.home, b.def, job.TriggerBackfill):
			if len(b.open) == 0 {
				e.sendBackfill(b)
			}
			continue
		default:
			e.lookAhead(b)
			e.takeAhead(b)
			b.again = !b.over && len(b.ahead) == 0
		}
		if b.over && len(b.ahead)+len(b.open) == 0 {
			e.endBackfill(b)
		}
	}
	e.about = About{}
}

// sendBackfill gives a backfill of which nothing is under way to the partition of its home, which goes on from its cursor.
func (e *Engine) sendBackfill(b *backfill) {
	to := b.home.Place
	b.Progress.Pool, b.dirty, b.sent = b.home.Pool, true, true
	e.step.batch.SentBackfills = append(e.step.batch.SentBackfills, SentBackfill{ID: b.ID, Job: b.JobUID, Namespace: b.Namespace, Revision: b.Revision, Partition: to})
	e.step.sent = append(e.step.sent, to)
	e.fact(Fact{Kind: FactBackfill, Job: b.name(), To: string(b.Progress.State), Reason: job.WaitMove, Note: fmt.Sprintf("%s to partition %d", b.ID, to)})
}

func (e *Engine) endBackfill(b *backfill) {
	b.Progress.State, b.Progress.Ended, b.dirty = job.BackfillDone, e.now.Wall, true
	if b.Cancel != nil {
		b.Progress.State, b.Progress.Reason = job.BackfillCancelled, job.ReasonCancelRequested
		if b.Cancel.Reason != "" {
			b.Progress.Reason = b.Cancel.Reason
		}
	}
	e.fact(Fact{Kind: FactBackfill, Job: b.name(), To: string(b.Progress.State), Reason: b.Progress.Reason, Count: b.Progress.Done(), Note: b.ID.String()})
}

// next is the planned instant behind (or, in reverse, before) the newest one that was looked at; false at the end.
func (b *backfill) next() (job.Instant, bool) {
	var best job.Instant
	for _, s := range b.lines {
		var at time.Time
		var ok bool
		switch {
		case b.Spec.Reverse && b.last == 0:
			at, ok = schedule.Prev(s, (b.To + 1).Time())
		case b.Spec.Reverse:
			at, ok = schedule.Prev(s, b.last.Time())
		case b.last == 0:
			at, ok = s.Next((b.From - 1).Time())
		default:
			at, ok = s.Next(b.last.Time())
		}
		i := job.InstantOf(at)
		if ok && i >= b.From && i <= b.To && (best == 0 || (i < best) != b.Spec.Reverse) {
			best = i
		}
	}
	return best, best != 0
}

// lookAhead looks up the next instants.
func (e *Engine) lookAhead(b *backfill) {
	if len(b.ahead) > lookAhead/2 {
		return
	}
	for !b.over && len(b.ahead) < lookAhead {
		at, ok := b.next()
		if !ok {
			b.over = true
			break
		}
		l := &look{at: at, id: job.PlannedID(b.JobUID, at)}
		b.last, b.ahead = at, append(b.ahead, l)
		e.pages.asked.ask(l.id)
	}
}

// Elsewhere is an execution that another partition has.
type Elsewhere struct {
	State     job.ExecutionState
	Partition int
}

// PutElsewhere notes an execution that another partition has.
func PutElsewhere(p *ExecutionPage, x *job.Execution) {
	if p.Elsewhere == nil {
		p.Elsewhere = map[job.ExecutionID]Elsewhere{}
	}
	p.Elsewhere[x.ID] = Elsewhere{x.State, x.Partition}
}

// looked notes what was read about an instant.
func (e *Engine) looked(id job.ExecutionID, row Row, page *ExecutionPage) {
	for _, k := range slices.SortedFunc(maps.Keys(e.backfills), compareIDs) { // two may wait for one execution: the first cancels it
		b := e.backfills[k]
		for _, l := range b.ahead {
			if l.id == id {
				l.known, l.seq, l.row, l.away = true, page.Seq, row, page.Elsewhere[id].State
				if s := row.Execution.State; !s.Ended() || s == job.ExecutionSucceeded { // only what runs again is needed whole
					l.row = Row{Execution: job.Execution{ID: row.Execution.ID, State: s}}
				}
			}
		}
		if _, open := b.open[id]; !open || b.Cancel == nil || !b.Cancel.Running {
			continue
		}
		switch x := e.executions[id]; {
		case x != nil: // another page has brought it since it was asked for
			e.cancel(x, Entry{Note: b.Cancel.Note})
		case !row.Execution.ID.IsZero() && !row.Execution.State.Ended() && e.usable(&row):
			e.cancel(e.holdQueued(row), Entry{Note: b.Cancel.Note})
		}
	}
}

// takeAhead starts what was looked up, as many at a time as the backfill may.
func (e *Engine) takeAhead(b *backfill) {
	for len(b.ahead) > 0 && b.ahead[0].known {
		l := b.ahead[0]
		x := e.executions[l.id]
		changed := x == nil && !e.step.created[l.id] && (e.pages.tooOld(l.seq) || e.pages.changed(l.id, l.seq))
		if changed || e.step.away[l.id] || x != nil && x.row.State.Ended() { // in this very step
			l.known = false // it changed since it was read
			e.pages.asked.ask(l.id)
			return
		}
		state := l.row.Execution.State
		switch {
		case state == job.ExecutionSucceeded || l.away == job.ExecutionSucceeded:
			b.Progress.Skipped++
		case l.away != "" || e.leftOut[About{Execution: l.id}]:
			b.Progress.Failed++ // where the job was before it moved: a rerun of that execution by itself
		case len(b.open) >= b.Spec.Parallel() || !e.runInstant(b, l):
			return
		}
		b.ahead, b.Progress.Cursor, b.dirty = b.ahead[1:], l.at, true
	}
}

// runInstant makes the execution of an instant, runs it again, or waits for the one that lives. false: the overlap policy of
// the job has no room for it now.
func (e *Engine) runInstant(b *backfill, l *look) bool {
	e.at(l.id)
	row := &l.row
	switch {
	case e.executions[l.id] != nil || e.step.created[l.id]:
	case !row.Execution.ID.IsZero() && !row.Execution.State.Ended():
	case !e.overlapRoom(b.def, job.TriggerBackfill):
		return false
	case row.Execution.ID.IsZero():
		d := b.def
		if x, _ := e.launch(job.Execution{
			ID: l.id, Partition: e.cfg.Partition, Namespace: b.Namespace, Job: b.Job, JobUID: b.JobUID, Revision: b.Revision,
			Pool: cmp.Or(b.Progress.Pool, d.Spec.Pool), Handler: d.Spec.Handler, Trigger: job.TriggerBackfill, PlannedAt: l.at, Params: d.Spec.Params, ShardTotal: d.Spec.ShardTotal(),
		}, d); x == nil {
			return false
		}
	case !e.usable(row) || goesWithJob(row.Definition):
		b.Progress.Failed++
		return true
	default:
		if e.rerun(*row, Entry{Note: "backfill " + b.ID.String()}); e.step.away[l.id] {
			b.Progress.Failed++
			return true
		}
	}
	b.open[l.id] = l.at
	b.Progress.Open = append(slices.Clone(b.Progress.Open), l.at)
	return true
}

// ranPast takes in the end of an execution that a backfill has started or waits for.
func (e *Engine) ranPast(x *execution) {
	for _, b := range e.backfills {
		at, open := b.open[x.row.ID]
		b.again = b.again || b.JobUID == x.row.JobUID
		if !open {
			continue
		}
		delete(b.open, x.row.ID)
		b.Progress.Open = slices.DeleteFunc(slices.Clone(b.Progress.Open), func(o job.Instant) bool { return o == at })
		if x.row.State == job.ExecutionSucceeded {
			b.Progress.Succeeded++
		} else {
			b.Progress.Failed++
		}
		b.dirty = true
	}
}

// goneFrom: an execution that backfills wait for goes to another partition, where its end is not seen from here. It counts like
// those that were there before.
func (e *Engine) goneFrom(x *execution) {
	for _, b := range e.backfills {
		at, open := b.open[x.row.ID]
		if !open {
			continue
		}
		delete(b.open, x.row.ID)
		b.Progress.Open = slices.DeleteFunc(slices.Clone(b.Progress.Open), func(o job.Instant) bool { return o == at })
		b.Progress.Failed++
		b.again, b.dirty = true, true
	}
}

// writeBackfills puts what changed into the batch, and forgets those that have ended.
func (e *Engine) writeBackfills() {
	for _, id := range slices.SortedFunc(maps.Keys(e.backfills), compareIDs) {
		b := e.backfills[id]
		if b.dirty {
			b.dirty = false
			e.step.batch.Backfills = append(e.step.batch.Backfills, b.Progress)
		}
		if b.Progress.State.Ended() || b.sent {
			delete(e.backfills, id)
		}
	}
}

// backfillsWait tells that the next step goes on with some backfill at once.
func (e *Engine) backfillsWait() bool {
	for _, b := range e.backfills {
		if b.again {
			return true
		}
	}
	return false
}

// fillsPast tells the newest instant of a job that a backfill may yet run: its schedules do not go back behind it.
func (e *Engine) fillsPast(u job.UID) (last job.Instant) {
	for _, b := range e.backfills {
		if b.JobUID == u {
			last = max(last, b.To)
		}
	}
	return last
}
