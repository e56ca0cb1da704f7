package engine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/taktsched/takt/internal/job"
)

// inboxPage takes the entries of people in the given order. One whose rows are needed first (an
// execution that is not in memory) stays in the inbox until they have been read.
func (e *Engine) inboxPage(ev InboxPage) {
	if e.pages.tooOld(ev.Seq) {
		e.step.inbox = true
		return
	}
	e.soon.heard(e.now.Mono)
	for _, entry := range ev.Entries {
		switch {
		case e.pages.entryTaken(ev.Seq, entry):
			// consumed by a batch of ours since the page was read, or it waits for rows
		case (entry.Kind.aboutCursors() || entry.countsFromEnd()) && e.pages.cursorsChanged(entry.Job, ev.Seq):
			e.step.inbox = true // its cursors moved since: the next page has newer ones
		case entry.Kind == EntryBackfill && e.pages.changed(entry.Execution, ev.Seq),
			(entry.Kind.Triggers() || entry.Kind == EntryArrived || entry.Kind == EntryBackfill) && e.pages.left(entry.Job, ev.Seq):
			e.step.inbox = true // it was sent away since, or its job was
		default:
			e.takeEntry(entry)
		}
	}
	e.pages.read(ev.Seq)
}

func (e *Engine) takeEntry(entry Entry) {
	switch entry.Kind {
	case EntryJobChanged, EntryJobResumed, EntryJobDeleted:
		if entry.Kind != EntryJobDeleted && e.unfit(entry.Definition, "") {
			break // its cursors stay where they are, until a revision is fit
		}
		if to, elsewhere := e.plannedElsewhere(&entry); elsewhere {
			e.forward(entry, to)
			return
		}
		if e.moveMustWait(&entry) {
			if e.pages.strange(entry.ID) {
				e.traceFact(Fact{Kind: FactSetAside, Note: fmt.Sprintf("inbox entry %d moves a job, which a server of an older build does not know; it waits until that server is gone", entry.ID)})
			}
			return
		}
		if !e.turnsOpen(&entry) || e.moveDrains(&entry) {
			return // in force later
		}
		take := e.jobChanged
		if entry.Kind == EntryJobDeleted {
			take = e.jobDeleted
		}
		if e.step.compared >= walkMax*e.cfg.CatchUpMax || !take(entry) {
			e.remark(&entry)
			e.step.inbox = true // more is left of it, for the next step
			return
		}
		if e.step.handed[entry.Job] {
			e.forward(entry, entry.Place)
			return
		}
		if e.step.taken == nil {
			e.step.taken = map[job.UID]bool{}
		}
		e.step.taken[entry.Job] = true
	case EntryCancelJob:
		if !e.cancelJob(entry) {
			return
		}
	case EntryParentEnded:
		if !e.parentEnded(entry) {
			return
		}
	case EntryTrigger, EntryDelayed:
		if e.mustWaitForPlanner(&entry) || e.delayMustWait(&entry) {
			return
		}
		e.trigger(entry)
	case EntryBackfill:
		if !e.knownToAll(levelTime) {
			if e.pages.strange(entry.ID) {
				e.traceFact(Fact{Kind: FactSetAside, Note: fmt.Sprintf("inbox entry %d is about a backfill, which a server of an older build does not know; it waits until that server is gone", entry.ID)})
			}
			return
		}
		if !e.takeBackfill(entry) {
			return
		}
	case EntryCancel, EntryRerun, EntryReschedule, EntryArrived:
		if entry.Kind == EntryArrived && e.awaitsPlanner(&entry) {
			return
		}
		x := e.executions[entry.Execution]
		if x == nil {
			e.pages.askEntry(entry)
			return
		}
		switch entry.Kind { // a live execution has nothing to rerun: the entry is consumed
		case EntryCancel:
			e.cancel(x, entry)
		case EntryReschedule:
			e.reschedule(x, entry)
		}
	default:
		if e.pages.strange(entry.ID) {
			e.traceFact(Fact{Kind: FactSetAside, Note: fmt.Sprintf("inbox entry %d of unknown kind %q is left alone", entry.ID, entry.Kind)})
		}
		return
	}
	e.consume(entry)
}

func (e *Engine) consume(entry Entry) {
	e.step.batch.Consumed = append(e.step.batch.Consumed, entry.ID)
	e.pages.consumed(entry.ID)
}

// trigger makes a requested execution. The identity came with the request, so that its key leads here.
func (e *Engine) trigger(entry Entry) {
	def, req := entry.Definition, entry.Request
	if def == nil || req == nil {
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Note: "trigger of a job that is gone"})
		return
	}
	if def.Unfit != "" {
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Note: "trigger of a job that is unfit: " + def.Unfit})
		return
	}
	if e.executions[entry.Execution] != nil {
		return
	}
	if e.leftOut[About{Execution: entry.Execution}] {
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Note: "trigger of an execution that is left out"})
		return
	}
	params := req.Params
	if params == nil {
		params = def.Spec.Params
	}
	row := job.Execution{
		ID: entry.Execution, Partition: e.cfg.Partition, Namespace: def.Namespace, Job: def.Name, JobUID: def.UID,
		Revision: def.Revision, Pool: def.Spec.Pool, Handler: def.Spec.Handler, Trigger: job.TriggerRequest,
		PlannedAt: req.At, RequestKey: req.Key, Params: params, ShardTotal: def.Spec.ShardTotal(),
	}
	begin, later := e.create, req.Delayed && req.At > e.now.Wall
	home := homeOf(&entry)
	switch {
	case later:
		begin = e.delay
	case e.strays(home, def, job.TriggerRequest):
		begin = func(row job.Execution, def *job.Definition) *execution { return e.postpone(row, def, job.WaitMove) }
	}
	x := begin(row, def)
	if x.home = home; x.row.Reason == job.WaitMove {
		e.send(x)
	}
	if goesWithJob(def) {
		e.cancel(x, entry)
	}
}

// cancel accepts a cancel: final from this commit on. What has not started ends at once; what runs is
// told to stop and ends when its holder confirms, or when grace and lease are over.
func (e *Engine) cancel(x *execution, entry Entry) {
	why := job.ReasonCancelRequested
	if entry.Definition != nil && entry.Definition.Deleted != nil {
		why = job.ReasonJobDeleted
	}
	e.cancelFor(x, why, entry.Note)
}

// cancelFor cancels an execution for a reason of a person's or of its job's policy.
func (e *Engine) cancelFor(x *execution, why job.Reason, note string) {
	if x.row.Cancel != "" || x.row.State.Ended() {
		return
	}
	x.row.Cancel = why
	e.touch(x)
	e.fact(Fact{Kind: FactCancelRequested, Job: x.name(), Execution: x.row.ID, Reason: why, Note: note})
	if why == job.ReasonJobDeleted {
		why = job.ReasonCancelRequested
	}
	for _, s := range x.shards {
		if !s.State.Ended() {
			e.cancelShard(s, why)
		}
	}
	if x.open > 0 {
		e.setExecution(x, job.ExecutionCancelling, x.row.Cancel)
	}
}

// rerun begins another round of an ended execution: new tokens, fresh retry budget, same keys, and only
// for the shards that did not succeed.
func (e *Engine) rerun(row Row, entry Entry) {
	x := e.hold(row)
	if x.row.State == job.ExecutionSucceeded {
		e.forget(x)
		return
	}
	e.fact(Fact{Kind: FactRerun, Job: x.name(), Execution: x.row.ID, Reason: job.ReasonRerun, Note: entry.Note, Count: int64(x.row.Round + 1)})
	state, why := e.overlap(x.def, x.row.Trigger, true)
	away := e.strays(x.home, x.def, x.row.Trigger)
	switch {
	case away:
		state, why = job.ExecutionScheduled, job.WaitMove
	case why == job.ReasonNone:
		why = job.ReasonRerun
	}
	x.row.Round++
	x.row.Cancel, x.row.EndedAt = "", 0
	e.setExecution(x, state, why)
	for _, s := range x.shards {
		if s.State == job.ShardSucceeded {
			continue
		}
		s.Faults, s.Losses, s.Error = 0, 0, nil
		s.Closed = true // what the old rounds' holders still say changes nothing
		e.setShard(s, job.ShardQueued, job.ReasonRerun)
	}
	switch {
	case away:
		e.send(x)
	case state == job.ExecutionScheduled:
		e.park(x)
	}
}

// hold takes rows into memory, but for the values of shards that have ended.
func (e *Engine) hold(row Row) *execution {
	x := &execution{row: row.Execution, stored: row.Execution.State, def: row.Definition, home: row.Home}
	x.shards = make([]*shard, len(row.Shards))
	for i, r := range row.Shards {
		x.shards[i] = &shard{Shard: r, exec: x, stored: r.State}
		switch ended := r.State.Ended(); {
		case !ended:
			x.open++
		case r.State == job.ShardSucceeded || !row.Execution.State.Ended():
			x.shards[i].strip() // no rerun will go on from it
		}
	}
	e.executions[x.row.ID] = x
	if x.row.Moves() {
		e.fact(Fact{Kind: FactArrived, Job: x.name(), Execution: x.row.ID, PlannedAt: x.row.PlannedAt, To: string(x.row.State)})
	}
	return x
}

// holdQueued takes an execution that waited in the database into memory, in line unless it is scheduled.
func (e *Engine) holdQueued(row Row) *execution {
	x := e.hold(row)
	for _, s := range x.shards {
		if s.State == job.ShardQueued && x.row.State == job.ExecutionQueued {
			e.enqueue(s)
		}
	}
	return x
}

// executionPage goes on with the entries that waited for rows.
func (e *Engine) executionPage(ev ExecutionPage) {
	p := &e.pages
	found := map[job.ExecutionID]Row{}
	for _, row := range ev.Rows {
		found[row.Execution.ID] = row
	}
	for _, id := range ev.Asked {
		row := found[id]
		if e.executions[id] == nil && (p.tooOld(ev.Seq) || p.changed(id, ev.Seq) || e.step.created[id] || p.left(row.Execution.JobUID, ev.Seq)) {
			p.asked.again(id) // it changed since the page was read
			continue
		}
		entries, other := p.answeredEntries(id), ev.Elsewhere[id]
		e.looked(id, row, &ev)
		for _, entry := range entries {
			switch held := e.executions[id] != nil; {
			case !held && e.step.created[id]:
				p.askEntry(entry) // an entry before this one has sent it away
			case !held && other.State != "":
				e.forward(entry, other.Partition) // it was sent there
			default:
				e.entryWithRow(entry, row)
			}
		}
		if e.step.created[id] && e.executions[id] == nil {
			continue
		}
		if len(entries) == 0 {
			e.cancelRow(row)
		}
		e.turnRow(id, row)
	}
	p.read(ev.Seq)
}

// heldNow takes the entries that wait for the row of an execution that a page of another kind has brought: what arrived before it comes
// before what is due. The row that was asked for is waited for still: a backfill, or a turn of its job, may have asked for it, too.
func (e *Engine) heldNow(row Row) {
	id := row.Execution.ID
	entries := e.pages.entries[id]
	delete(e.pages.entries, id)
	for _, entry := range entries {
		e.entryWithRow(entry, row)
	}
}

func (e *Engine) entryWithRow(entry Entry, row Row) {
	x := e.executions[entry.Execution]
	switch {
	case x == nil && row.Execution.ID.IsZero():
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Note: string(entry.Kind) + " of an execution that is not here"})
	case x == nil && !e.usable(&row):
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Note: string(entry.Kind) + " of an execution that is left out"})
	case entry.Kind == EntryRerun && goesWithJob(row.Definition):
		e.fact(Fact{Kind: FactSetAside, Execution: entry.Execution, Note: "rerun of an execution whose job was deleted with it"})
	case entry.Kind == EntryRerun && x == nil && row.Execution.State.Ended():
		e.rerun(row, entry)
	case entry.Kind == EntryArrived:
		if x == nil {
			e.arrived(row)
		}
	case entry.Kind == EntryReschedule:
		if x == nil && row.Execution.State == job.ExecutionScheduled && row.Execution.Reason == job.WaitDelay {
			x = e.hold(row)
		}
		e.reschedule(x, entry)
	case entry.Kind == EntryCancel:
		if x == nil && !row.Execution.State.Ended() {
			x = e.holdQueued(row)
		}
		if x != nil {
			e.cancel(x, entry)
		}
	}
	e.consume(entry)
}

// setAside records an event that alone made a step or its commit fail (R3). The event is kept in a form
// that no database can refuse, cut to its head.
func (e *Engine) setAside(ev SetAside) {
	kind := fmt.Sprintf("%T", ev.Event)
	raw, err := json.Marshal(ev.Event)
	if err != nil {
		raw = fmt.Appendf(nil, "%.4096q", fmt.Sprintf("%+v", ev.Event))
	}
	head := raw[:min(len(raw), 8<<10)]
	kept, _ := json.Marshal(struct {
		Bytes int    `json:"bytes"`
		Head  string `json:"headBase64"`
	}{len(raw), base64.StdEncoding.EncodeToString(head)})
	p := Poison{Kind: kind, Event: kept, Error: fmt.Sprintf("%.2048q", ev.Error)}
	e.counters.Poisoned++
	e.fact(Fact{Kind: FactSetAside, Reason: job.ReasonBadEntry, Note: kind})
	page, ok := ev.Event.(InboxPage)
	if !ok {
		e.step.batch.Poison = append(e.step.batch.Poison, p)
		return
	}
	for _, entry := range page.Entries {
		p.Entry = entry.ID
		e.step.batch.Poison = append(e.step.batch.Poison, p)
		e.consume(entry)
	}
}
