package engine

import (
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// Overlap: what becomes of an execution that comes while another one of its job has not ended. All executions of a job
// are decided by the partition that plans it, so what is kept here is the whole truth (move.go: a job with such
// executions moves when they have ended). Which of them the database holds is told by Loaded.Waiting.
//
// One that waits is scheduled, with the reason job.WaitOverlap or job.WaitReplace. Memory knows all of them by id; their
// rows are held as far as there is room, the others are read when their turn comes (R14).

// overlap decides what becomes of an execution that trigger makes: queued or scheduled, with the reason for its row; no
// state: it is dropped for that reason. again: it is a rerun, which waits without a bound.
func (e *Engine) overlap(def *job.Definition, trigger job.Trigger, again bool) (job.ExecutionState, job.Reason) {
	policy, t := def.Spec.OverlapOf(), e.turns.jobs[def.UID]
	switch {
	case !e.knownToAll(levelTime):
		return job.ExecutionQueued, job.ReasonNone
	case !def.Spec.Obeys(trigger) && policy == job.OverlapAllow && trigger != job.TriggerRequest:
		return job.ExecutionQueued, job.ReasonOverlapFree
	case !def.Spec.Obeys(trigger):
		return job.ExecutionQueued, job.ReasonNone
	case t == nil && trigger == job.TriggerRequest:
		return job.ExecutionQueued, job.ReasonOverlapTurn
	case t == nil:
		return job.ExecutionQueued, job.ReasonNone
	case again, policy == job.OverlapQueue && t.queued() < def.Spec.MayWait():
		return job.ExecutionScheduled, job.WaitOverlap
	case policy == job.OverlapReplace:
		return job.ExecutionScheduled, job.WaitReplace
	case policy == job.OverlapSkip:
		return "", job.ReasonOverlapSkip
	default:
		return "", job.ReasonOverlapFull
	}
}

// overlapRoom tells whether an execution of the past that trigger makes would run now. Who catches up or fills back asks first, and
// keeps its place while there is no room: the places in which one may wait are left to what is due, and what is older
// replaces nothing that is newer.
func (e *Engine) overlapRoom(def *job.Definition, trigger job.Trigger) bool {
	state, _ := e.overlap(def, trigger, false)
	return state == job.ExecutionQueued
}

// launch makes an execution as the overlap policy of its job has it: it stands in line or waits for its turn. nil: it is
// dropped, for the reason given, and nothing was made.
func (e *Engine) launch(row job.Execution, def *job.Definition) (*execution, job.Reason) {
	state, why := e.overlap(def, row.Trigger, false)
	switch state {
	case job.ExecutionQueued:
		x := e.insert(row, def, state, why)
		e.lineUp(x)
		return x, ""
	case job.ExecutionScheduled:
		x := e.postpone(row, def, why)
		e.park(x)
		e.replace(def.UID, x.row.ID)
		return x, ""
	default:
		return nil, why
	}
}

// create is launch for what no schedule plans. What is dropped is a decision about its instant, or, when a person asked for
// it, an execution that ends at once (R5).
func (e *Engine) create(row job.Execution, def *job.Definition) *execution {
	x, why := e.launch(row, def)
	switch {
	case x != nil:
	case row.Trigger == job.TriggerRequest:
		x = e.insert(row, def, job.ExecutionScheduled, job.ReasonNone)
		e.cancelFor(x, why, "")
	default:
		e.decide(def, "", job.DecisionBlocked, why, row.PlannedAt, row.PlannedAt, 1)
	}
	return x
}

// admit takes in an execution in memory whose instant has come, as the overlap policy of its job has it.
func (e *Engine) admit(x *execution) {
	if e.strays(x.home, x.def, x.row.Trigger) {
		e.send(x)
		return
	}
	switch state, why := e.overlap(x.def, x.row.Trigger, x.row.Round > 0); state {
	case job.ExecutionQueued:
		e.standIn(x)
	case job.ExecutionScheduled:
		x.row.Reason = why
		e.touch(x)
		e.fact(Fact{Kind: FactExecutionState, Job: x.name(), Execution: x.row.ID, From: string(state), To: string(state), Reason: why})
		e.mind(x)
		e.park(x)
		e.replace(x.row.JobUID, x.row.ID)
	default:
		e.cancelFor(x, why, "")
	}
}

// standIn puts a scheduled execution in line, whatever else of its job runs.
func (e *Engine) standIn(x *execution) {
	why := job.ReasonNone
	switch obeys := x.def.Spec.Obeys(x.row.Trigger); {
	case obeys && x.row.Trigger == job.TriggerRequest:
		why = job.ReasonOverlapTurn
	case !obeys && x.row.Trigger != job.TriggerRequest:
		why = job.ReasonOverlapFree
	}
	e.setExecution(x, job.ExecutionQueued, why)
	e.lineUp(x)
}

// park holds the row of an execution that waits in memory, when there is room.
func (e *Engine) park(x *execution) {
	const row = 1024 // of a shard, more or less
	size := len(x.row.Params) + row*len(x.shards)
	if e.turns.parked+size > e.cfg.ReadyBytes/4 {
		e.forget(x)
		return
	}
	x.parked = size
	e.turns.parked += size
	e.executions[x.row.ID] = x
}

// wakeNext gives the turn to the next one of each job of which nothing runs any more.
func (e *Engine) wakeNext() {
	freed := e.turns.freed
	e.turns.freed = nil
	for _, u := range freed {
		if t := e.turns.jobs[u]; t != nil && len(t.running) == 0 && len(t.waiting) > 0 {
			e.wake(u, t.waiting[0].id)
		}
	}
}

// wake lets an execution that waits stand in line: at once when memory has its row, else as soon as that has been read.
func (e *Engine) wake(u job.UID, id job.ExecutionID) {
	e.turns.run(u, id)
	if x := e.executions[id]; x != nil {
		e.standIn(x)
		return
	}
	e.askTurn(u, id)
}

func (e *Engine) askTurn(u job.UID, id job.ExecutionID) {
	e.turns.asked[id] = u
	e.pages.asked.ask(id)
}

// replace stops what an execution that waits replaces, if it does: what runs, and what waits to do the same.
func (e *Engine) replace(u job.UID, by job.ExecutionID) {
	t := e.turns.jobs[u]
	if t == nil || !slices.ContainsFunc(t.waiting, func(w waiter) bool { return w.id == by && w.replaces }) {
		return
	}
	ids := slices.Clone(t.running)
	for i := range t.waiting {
		if w := &t.waiting[i]; w.replaces && !w.again && w.id != by {
			ids, w.dropped = append(ids, w.id), true
		}
	}
	for _, id := range ids {
		if x := e.executions[id]; x != nil {
			e.cancelFor(x, job.ReasonReplaced, "")
		} else {
			e.askTurn(u, id)
		}
	}
}

// turnRow goes on with an execution that was read for its job's turn.
func (e *Engine) turnRow(id job.ExecutionID, row Row) {
	u, is := e.turns.asked[id]
	if !is {
		return
	}
	delete(e.turns.asked, id)
	t, x := e.turns.jobs[u], e.executions[id]
	switch {
	case t == nil || x != nil && (x.row.State.Ended() || x.row.Cancel != ""):
		return
	case x == nil && (row.Execution.State == "" || row.Execution.State.Ended() || !e.usable(&row)):
		e.turnOver(u, id) // it is gone, or left out: nothing waits for it
		return
	}
	place := slices.IndexFunc(t.waiting, func(w waiter) bool { return w.id == id })
	replaced := t.runs(id) && t.replacing() >= 0 || place >= 0 && t.superseded(place)
	admitted := t.runs(id) || t.open
	if x == nil && (replaced || admitted && row.Execution.State == job.ExecutionScheduled) {
		x = e.holdQueued(row)
	}
	switch {
	case replaced:
		e.cancelFor(x, job.ReasonReplaced, "")
	case x != nil && admitted && x.row.WaitsItsTurn():
		e.standIn(x)
		e.step.inbox = e.step.inbox || t.open && len(t.waiting) == 0 // an entry waits for this
	}
}

// turnsOpen lets all that waits stand in line once the policy of their job is allow. false: some have to be read first; the
// entry stays in the inbox.
func (e *Engine) turnsOpen(entry *Entry) bool {
	def := entry.Definition
	if entry.Kind == EntryJobDeleted || def == nil || e.turns.jobs[def.UID] == nil {
		return true
	}
	t := e.turns.jobs[def.UID]
	if t.open = def.Spec.OverlapOf() == job.OverlapAllow; !t.open {
		return true
	}
	for _, w := range slices.Clone(t.waiting) {
		if x := e.executions[w.id]; x != nil {
			e.standIn(x)
		} else {
			e.askTurn(def.UID, w.id)
		}
	}
	return len(t.waiting) == 0
}

// moveDrains tells that a job has to move to another partition while executions of it live here that obey its overlap
// policy. Nothing new is planned for it until they have ended; what comes due meanwhile is the new planner's, as missed.
func (e *Engine) moveDrains(entry *Entry) bool {
	def := entry.Definition
	waited := e.turns.moving[entry.Job]
	delete(e.turns.moving, entry.Job)
	if entry.Kind == EntryJobDeleted || def == nil || def.Deleted != nil || entry.Place == e.cfg.Partition || e.cfg.Switches.PlannerIgnored {
		return false
	}
	if !e.knownToAll(levelTime) || def.Spec.OverlapOf() == job.OverlapAllow {
		return false
	}
	e.rehome(entry, e.cfg.Partition)
	e.plan() // what was due before the move is planned here
	if e.dueStill(def.UID) {
		e.step.inbox = true // behind the bound of a step
		return true
	}
	if e.turns.jobs[def.UID] == nil {
		return false
	}
	e.turns.moving[def.UID] = true
	if !waited {
		e.traceFact(Fact{Kind: FactSetAside, Job: def.Namespace + "/" + def.Name, Execution: e.turns.jobs[def.UID].first(), Reason: job.WaitOverlap,
			Note: "its move to another partition waits until its executions here have ended"})
	}
	e.unfollowJob(def.UID)
	return true
}

// waitsMax bounds the parameters of a request that waits as an entry for its job to come, in bytes.
const waitsMax = 1 << 10

// mustWaitForPlanner tells that a person's request belongs to a job that moves here and has not come yet: executions of it
// may live in the partition that plans it still. It waits as an entry, which keeps its place before what comes due then; when its
// parameters are large, as an execution on its way (follow.go), for entries that wait take the room of others in each page.
func (e *Engine) mustWaitForPlanner(entry *Entry) bool {
	def := entry.Definition
	return def != nil && def.Deleted == nil && def.Spec.Obeys(job.TriggerRequest) && e.knownToAll(levelTime) &&
		entry.Place == e.cfg.Partition && entry.Planner != e.cfg.Partition && !e.cfg.Switches.PlannerIgnored &&
		(entry.Request == nil || len(entry.Request.Params) <= waitsMax || !e.knownToAll(levelFollow) || e.cfg.Switches.NothingFollows)
}
