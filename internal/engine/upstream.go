package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// Jobs that run after others. Their parents may be in other partitions: the commit that ends an execution puts an entry
// (parent_ended) into the inbox of the planner of each job that runs after its job, and of each partition where an
// execution of such a job waits. What it says is only to look: the owner reads what all parents did in one snapshot and
// judges by that (after.go), so that entries may come late, doubled or in any order, and the last of them sees all. What an
// end leads to has one identity, so it is made once.
//
// An execution that waits is scheduled with the reason job.WaitUpstream. It stays in the database (R14); memory keeps its
// id and when its wait is over.

// wait is an execution that waits for its parents.
type wait struct {
	id    job.ExecutionID
	child job.UID
	until job.Instant // look at it then, whatever happens
	alarm alarm
}

func (w *wait) armed() *alarm { return &w.alarm }

// look asks for what the parents did; what comes is judged by the deadline.
func (w *wait) look(e *Engine) {
	if e.now.Wall >= w.until {
		e.pages.askUpstream(UpstreamAsk{Child: w.child, Waiting: w.id})
	}
}

func (w *wait) next(e *Engine) time.Duration {
	const again = 10 * time.Second // also when the wall clock stands still
	if e.upstream[w.id] != w {
		return 0
	}
	if left := w.until.Sub(e.now.Wall); left > 0 {
		return e.now.Mono + left
	}
	return e.now.Mono + again
}

// awaitParents makes an execution of a planned instant that waits for its parents.
func (e *Engine) awaitParents(row job.Execution, def *job.Definition) {
	e.postpone(row, def, job.WaitUpstream)
	e.watchWait(row.ID, def, e.now.Wall)
	e.pages.askUpstream(UpstreamAsk{Child: def.UID, Waiting: row.ID})
}

func (e *Engine) watchWait(id job.ExecutionID, def *job.Definition, began job.Instant) {
	until := deadlineOf(def.Spec.After, began)
	if w := e.upstream[id]; w != nil && w.until == until {
		return
	}
	e.unwait(id)
	w := &wait{id: id, child: def.UID, until: until}
	e.upstream[id] = w
	e.arm(w)
}

func (e *Engine) unwait(id job.ExecutionID) {
	if w := e.upstream[id]; w != nil {
		e.timers.disarm(w)
		delete(e.upstream, id)
	}
}

// pokeWaits looks again at what waits of a job.
func (e *Engine) pokeWaits(child job.UID) {
	for id, w := range e.upstream {
		if w.child == child {
			e.pages.askUpstream(UpstreamAsk{Child: child, Waiting: id})
		}
	}
}

// watch notes that ends of the parents of a job, and its own when it counts from them, are told to this partition. When
// one of them happens here the inbox is read at once; else the next look finds the entry (R11).
func (e *Engine) watch(def *job.Definition) {
	e.unwatch(def.UID)
	var names []string
	for i := range def.Spec.After {
		names = append(names, def.Namespace+"/"+def.Spec.After[i].Job)
	}
	if def.Spec.CountsFromEnd() {
		names = append(names, def.Namespace+"/"+def.Name)
	}
	for _, name := range names {
		e.watched[name]++
	}
	if len(names) > 0 {
		e.watchers[def.UID] = names
	}
}

// unwatch forgets whom a job watched: it was edited, was deleted, or moved away.
func (e *Engine) unwatch(u job.UID) {
	for _, name := range e.watchers[u] {
		if e.watched[name]--; e.watched[name] == 0 {
			delete(e.watched, name)
		}
	}
	delete(e.watchers, u)
}

func (e *Engine) endSeen(x *execution) {
	if len(e.watched) > 0 && e.watched[x.name()] > 0 {
		e.step.inbox = true
	}
}

// parentEnded takes an entry about the end of a parent. false: it stays in the inbox until the parents have been read.
func (e *Engine) parentEnded(entry Entry) bool {
	if !e.knownToAll(levelTime) {
		if e.pages.strange(entry.ID) {
			e.traceFact(Fact{Kind: FactSetAside, Note: fmt.Sprintf("inbox entry %d tells of a parent's end, which a server of an older build does not know; it waits until that server is gone", entry.ID)})
		}
		return false
	}
	e.pokeWaits(entry.Job)
	def := entry.Definition
	if def == nil || def.Deleted != nil || e.unfit(def, "") {
		e.unwatch(entry.Job)
		return true
	}
	if e.watch(def); entry.Planner != e.cfg.Partition {
		e.unwatch(def.UID) // it would not be told when the job is deleted
	}
	switch {
	case e.ownEnd(entry):
		return false // it has been consumed, or forwarded
	case len(def.Spec.After) == 0:
		return true
	case entry.Planner == e.cfg.Partition && entry.Place != e.cfg.Partition:
		return false // the job is about to move: what this leads to is its new planner's, and until then nothing is to be asked
	}
	ask := UpstreamAsk{Child: entry.Job, Ended: entry.Execution}
	e.pages.ends[ask] = append(e.pages.ends[ask], entry)
	e.pages.askUpstream(ask)
	return false
}

// askUpstream asks for what the parents have done by now: a page that is on its way may be older.
func (p *pageBook) askUpstream(ask UpstreamAsk) {
	if p.upstream[ask] > 0 {
		p.stale[ask] = true
	}
	p.upstream.ask(ask)
}

// awaitingPage takes in what waits here, after a load. Each is judged: what told of the last end may be consumed.
func (e *Engine) awaitingPage(ev AwaitingPage) {
	p := &e.pages
	for _, w := range ev.Items {
		if p.changed(w.Execution, ev.Seq) || e.step.created[w.Execution] {
			continue // it came or went since: memory knows
		}
		p.askUpstream(UpstreamAsk{Child: w.Child, Waiting: w.Execution})
	}
	if p.scanned = !ev.Partial; ev.Partial {
		p.scanFrom = ev.Items[len(ev.Items)-1].Execution
	}
	p.scanAsked = 0
	p.read(ev.Seq)
}

// upstreamPage judges what was asked for.
func (e *Engine) upstreamPage(ev UpstreamPage) {
	p := &e.pages
	found := map[UpstreamAsk]*Upstream{}
	for i := range ev.Items {
		found[ev.Items[i].UpstreamAsk] = &ev.Items[i]
	}
	for _, ask := range ev.Asked {
		u := found[ask]
		if p.stale[ask] || p.tooOld(ev.Seq) || u != nil && e.upstreamChanged(u, ev.Seq) {
			delete(p.stale, ask)
			p.upstream.again(ask)
			continue
		}
		delete(p.upstream, ask)
		entries := p.ends[ask]
		delete(p.ends, ask)
		if u != nil {
			e.at(u.Target)
		}
		if u == nil || e.settleUpstream(u, entries) {
			for _, entry := range entries {
				e.consume(entry)
			}
		}
	}
	e.about = About{}
	p.read(ev.Seq)
}

// upstreamChanged tells that a batch behind the page, or this step, changed the target or who plans the job.
func (e *Engine) upstreamChanged(u *Upstream, seq int64) bool {
	p := &e.pages
	return p.changed(u.Target, seq) || p.left(u.Child, seq) || e.step.created[u.Target] || p.cursorsChanged(u.Child, seq) && u.Row == nil || e.step.handed[u.Child]
}

// settleUpstream decides about the target. false: its entries went to another partition, or stay in the inbox.
func (e *Engine) settleUpstream(u *Upstream, entries []Entry) bool {
	waits := u.Row != nil && waitsUpstream(&u.Row.Execution)
	if !waits {
		e.unwait(u.Target)
	}
	_, held := e.executions[u.Target]
	switch row := u.Row; {
	case u.Definition == nil || u.Target.IsZero() || e.leftOut[About{Execution: u.Target}]:
	case row == nil && (!u.Waiting.IsZero() || u.Decided), held: // it is gone, or in hand already
	case row == nil && u.Planner != e.cfg.Partition:
		e.forwardAll(entries, u.Planner)
		return false
	case row == nil && u.Place != e.cfg.Partition && u.Definition.Deleted == nil && !e.unfit(u.Definition, ""):
		return false // the job is about to move, and what it runs next is its new planner's: its entries wait for that, and go there then
	case row == nil:
		e.beginUpstream(u)
	case !waits && !failedUpstream(&row.Execution):
	case row.Execution.Partition != e.cfg.Partition:
		e.forwardAll(entries, row.Execution.Partition)
		return false
	case !e.usable(row):
	case waits:
		e.endWait(u)
	default:
		e.reviveUpstream(u, entries)
	}
	return true
}

func (e *Engine) forwardAll(entries []Entry, to int) {
	for _, entry := range entries {
		e.forward(entry, to)
	}
}

func waitsUpstream(x *job.Execution) bool {
	return x.State == job.ExecutionScheduled && x.Reason == job.WaitUpstream
}

// failedUpstream tells that an execution never ran because a parent failed: when the parent is run again, it is as well.
func failedUpstream(x *job.Execution) bool {
	return x.State == job.ExecutionCancelled && x.Reason == job.ReasonUpstreamFailed
}

// beginUpstream makes the execution that a parent's end leads to, of a job without instants of its own.
func (e *Engine) beginUpstream(u *Upstream) {
	def := u.Definition
	if def.Deleted != nil || def.Spec.Disabled || def.Spec.OwnInstants() || e.unfit(def, "") {
		return
	}
	fate, why := FateOf(def.Spec.After, u.Parents, e.now.Wall, e.now.Wall)
	if fate == FateNone {
		return
	}
	if def.Pause.Covers(e.now.Wall) {
		if fate == FateRun {
			e.decide(def, "", job.DecisionSkipped, job.ReasonPaused, u.At, u.At, 1)
			e.passOn(u.Target)
		}
		return
	}
	row := job.Execution{
		ID: u.Target, Partition: e.cfg.Partition, Namespace: def.Namespace, Job: def.Name, JobUID: def.UID, Revision: def.Revision,
		Pool: def.Spec.Pool, Handler: def.Spec.Handler, Trigger: job.TriggerAfter, PlannedAt: u.At, Params: def.Spec.Params, ShardTotal: def.Spec.ShardTotal(),
	}
	switch fate {
	case FateRun:
		if e.create(row, def) == nil {
			e.passOn(u.Target)
			return
		}
		e.matched(u, why)
	case FateWait:
		e.postpone(row, def, job.WaitUpstream)
		e.watchWait(row.ID, def, e.now.Wall)
	default:
		e.dropUpstream(e.postpone(row, def, job.WaitUpstream), u, why)
	}
}

// passOn notes that a decision stands for an execution: the end of another parent, or the same one told twice, finds it settled.
func (e *Engine) passOn(id job.ExecutionID) {
	if e.step.created == nil {
		e.step.created = map[job.ExecutionID]bool{}
	}
	e.step.created[id] = true // no page shows it as this step leaves it
	e.pages.passed = append(e.pages.passed, id)
}

// endWait decides about an execution that waits.
func (e *Engine) endWait(u *Upstream) {
	row := u.Row
	fate, why := FateOf(u.Definition.Spec.After, u.Parents, row.Execution.CreatedAt, e.now.Wall)
	if u.Definition.Deleted != nil {
		fate, why = FateNever, job.ReasonJobDeleted
	}
	if fate == FateWait {
		e.watchWait(u.Target, u.Definition, row.Execution.CreatedAt)
		return
	}
	e.unwait(u.Target)
	x := e.hold(*row)
	if fate == FateRun {
		x.home = &Home{Place: u.Place, Pool: u.Definition.Spec.Pool, Planner: u.Planner}
		e.admit(x)
		e.matched(u, why)
		return
	}
	e.dropUpstream(x, u, why)
}

// dropUpstream ends an execution whose parents did not do what it runs after.
func (e *Engine) dropUpstream(x *execution, u *Upstream, why job.Reason) {
	x.row.Cancel = why
	e.touch(x)
	for _, s := range x.shards {
		e.cancelShard(s, why)
	}
	e.matched(u, why)
}

// reviveUpstream runs what failed by its parents, once they have done what it runs after: one of them was run again.
func (e *Engine) reviveUpstream(u *Upstream, entries []Entry) {
	def := u.Definition
	if fate, _ := FateOf(def.Spec.After, u.Parents, e.now.Wall, e.now.Wall); fate != FateRun || len(entries) == 0 || def.Deleted != nil {
		return
	}
	entry := entries[0]
	entry.Note = "its parents were run again"
	row := *u.Row
	row.Home = &Home{Place: u.Place, Pool: def.Spec.Pool, Planner: u.Planner}
	e.rerun(row, entry)
	e.matched(u, job.ReasonNone)
}

// matched records by which executions of its parents a job's execution was decided.
func (e *Engine) matched(u *Upstream, why job.Reason) {
	e.step.batch.Matched = append(e.step.batch.Matched, Matched{Execution: u.Target, Parents: u.Parents})
	e.fact(Fact{Kind: FactUpstream, Job: u.Definition.Namespace + "/" + u.Definition.Name, Execution: u.Target, PlannedAt: u.At, Reason: why,
		Note: theParents(u.Parents)})
}

// wantUpstream says what to read of what waits.
func (e *Engine) wantUpstream(w *Want) {
	p := &e.pages
	w.Upstream = p.upstream.due(e.now.Mono, e.cfg.PageSize, func(a, b UpstreamAsk) int {
		return cmp.Or(bytes.Compare(a.Child[:], b.Child[:]), compareIDs(a.Waiting, b.Waiting), compareIDs(a.Ended, b.Ended))
	})
	if e.loaded && !p.scanned && (p.scanAsked == 0 || e.now.Mono >= p.scanAsked+askAgain) {
		p.scanAsked = max(e.now.Mono, 1)
		w.Awaiting = &WantAwaiting{After: p.scanFrom, Limit: e.cfg.PageSize}
	}
}
