package engine

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// turn is what is known of the executions of one job that obey its overlap policy.
type turn struct {
	running []job.ExecutionID // in line or under way; also one whose row is being read so that it can be
	waiting []waiter          // in the order in which they will run
	open    bool              // the policy became allow: nothing waits any more
}

// waiter is an execution that waits for its turn.
type waiter struct {
	backlogKey
	replaces bool // it waits until the one that it replaces has really stopped
	again    bool // a rerun: it is neither counted nor dropped
	dropped  bool // a newer one replaces it, as soon as its row has been read
}

// turnBook is all turns; a job without such executions has none.
type turnBook struct {
	jobs   map[job.UID]*turn
	asked  map[job.ExecutionID]job.UID // rows that are read for a turn
	moving map[job.UID]bool            // their move to another partition waits for their executions: pages of schedules leave them out
	parked int                         // bytes of the rows of those that wait
	waits  int                         // executions, over all jobs
	freed  []job.UID                   // in this step nothing of theirs runs any more
}

func newTurnBook() turnBook {
	return turnBook{jobs: map[job.UID]*turn{}, asked: map[job.ExecutionID]job.UID{}, moving: map[job.UID]bool{}}
}

func (b *turnBook) of(u job.UID) *turn {
	t := b.jobs[u]
	if t == nil {
		t = &turn{}
		b.jobs[u] = t
	}
	return t
}

// queued counts those that wait within the bound of the policy.
func (t *turn) queued() (n int) {
	for i := range t.waiting {
		if !t.waiting[i].again {
			n++
		}
	}
	return n
}

func (t *turn) runs(id job.ExecutionID) bool { return slices.Contains(t.running, id) }

func (b *turnBook) wait(u job.UID, w waiter) {
	t := b.of(u)
	i, is := slices.BinarySearchFunc(t.waiting, w, func(a, b waiter) int {
		return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:]))
	})
	if !is {
		t.waiting = slices.Insert(t.waiting, i, w)
		b.waits++
	}
}

func (b *turnBook) run(u job.UID, id job.ExecutionID) {
	t := b.of(u)
	b.drop(t, id)
	t.running = append(t.running, id)
}

func (b *turnBook) drop(t *turn, id job.ExecutionID) {
	if i := slices.Index(t.running, id); i >= 0 {
		t.running[i] = t.running[len(t.running)-1]
		t.running = t.running[:len(t.running)-1]
	}
	n := len(t.waiting)
	t.waiting = slices.DeleteFunc(t.waiting, func(w waiter) bool { return w.id == id })
	b.waits -= n - len(t.waiting)
}

// superseded tells that one that waits has been replaced by another one that does.
func (t *turn) superseded(place int) bool {
	w := &t.waiting[place]
	return w.dropped || w.replaces && !w.again && place < t.replacing()
}

// replacing is the place of the newest one that waits to replace what runs; -1: none does.
func (t *turn) replacing() int {
	for i := len(t.waiting) - 1; i >= 0; i-- {
		if t.waiting[i].replaces {
			return i
		}
	}
	return -1
}

// mind keeps the book: x was made, or has changed its state.
func (e *Engine) mind(x *execution) {
	b, u, id := &e.turns, x.row.JobUID, x.row.ID
	if x.parked > 0 && !x.row.WaitsItsTurn() {
		b.parked -= x.parked
		x.parked = 0
	}
	switch {
	case x.row.State.Ended():
		e.turnOver(u, id)
	case x.row.WaitsItsTurn():
		b.wait(u, waiter{backlogKey: backlogKey{x.row.PlannedAt, id}, replaces: x.row.Reason == job.WaitReplace, again: x.row.Round > 0})
	case x.row.State == job.ExecutionQueued && x.def.Spec.Obeys(x.row.Trigger):
		b.run(u, id)
	}
}

// turnOver notes that an execution counts no more. When it was the last one that ran, the next one's turn comes (wake).
func (e *Engine) turnOver(u job.UID, id job.ExecutionID) {
	b := &e.turns
	t := b.jobs[u]
	if t == nil {
		return
	}
	switch b.drop(t, id); {
	case len(t.running) > 0:
	case len(t.waiting) > 0:
		b.freed = append(b.freed, u)
	default:
		delete(b.jobs, u)
		e.step.inbox = e.step.inbox || b.moving[u] // its entry waits for this
	}
}

// first is one that is in the way of those that wait; zero when nothing runs.
func (t *turn) first() (id job.ExecutionID) {
	if t != nil && len(t.running) > 0 {
		return t.running[0]
	}
	return id
}

// TurnView is what obeys the overlap policy of a job and has not ended.
type TurnView struct {
	Running []job.ExecutionID // in line or under way, at most TurnMax of them
	Waiting int               // for those to end
	Since   job.Instant       // planned instant of the oldest one that waits; 0: none does
	Moves   bool              // the job moves to another partition when all of them have ended
}

// TurnMax bounds TurnView.Running.
const TurnMax = 10

func (e *Engine) turnView(u job.UID) *TurnView {
	t := e.turns.jobs[u]
	if t == nil {
		return nil
	}
	v := &TurnView{Running: slices.Clone(t.running[:min(len(t.running), TurnMax)]), Waiting: len(t.waiting), Moves: e.turns.moving[u]}
	sortIDs(v.Running)
	if len(t.waiting) > 0 {
		v.Since = t.waiting[0].at
	}
	return v
}

// loadTurns takes up the turns where the rows left them. What is under way has been loaded before.
func (e *Engine) loadTurns(all []Waiting) {
	for i := range all {
		w := &all[i]
		if e.leftOut[About{Execution: w.ID}] {
			continue
		}
		if w.State == job.ExecutionQueued {
			t := e.turns.of(w.Job)
			t.running = append(t.running, w.ID)
		} else {
			e.turns.wait(w.Job, waiter{backlogKey: backlogKey{w.PlannedAt, w.ID}, replaces: w.Reason == job.WaitReplace, again: w.Round > 0})
		}
	}
	for _, u := range slices.SortedFunc(maps.Keys(e.turns.jobs), func(a, b job.UID) int { return bytes.Compare(a[:], b[:]) }) {
		switch t := e.turns.jobs[u]; {
		case len(t.running) == 0:
			e.turns.freed = append(e.turns.freed, u)
		case t.replacing() >= 0:
			e.replace(u, t.waiting[t.replacing()].id)
		}
	}
}
