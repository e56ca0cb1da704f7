package engine

import "github.com/taktsched/takt/internal/job"

// A job may be deleted together with its executions. They may be in several partitions, for a job moves and they
// stay; so each partition has an entry about them, which it works off in steps: what is in memory, then what waits in
// the database, a page at a time. The entry stays in the inbox until nothing is left, so a new owner goes on with it.

// cancelMax bounds the shards that one step cancels for one entry; one execution always goes.
const cancelMax = 1000

// goesWithJob tells that an execution that comes into memory belongs to a job that was deleted together
// with its executions.
func goesWithJob(def *job.Definition) bool {
	return def != nil && def.Deleted != nil && def.Deleted.Cancel
}

// cancelJob cancels the executions of a deleted job here. false: more is left; the entry stays in the inbox.
func (e *Engine) cancelJob(entry Entry) bool {
	if !goesWithJob(entry.Definition) {
		return true
	}
	var ids []job.ExecutionID
	for id, x := range e.executions {
		if x.row.JobUID == entry.Definition.UID && x.row.Cancel == "" && !x.row.State.Ended() {
			ids = append(ids, id)
		}
	}
	sortIDs(ids)
	n := 0
	for _, id := range ids {
		x := e.executions[id]
		if n += len(x.shards); n > cancelMax && n > len(x.shards) {
			e.step.inbox = true
			return false
		}
		e.cancel(x, entry)
	}
	left := false
	for _, id := range entry.Queued {
		if e.executions[id] != nil || e.leftOut[About{Execution: id}] {
			continue
		}
		left = true
		e.pages.asked.ask(id)
	}
	return !left
}

// cancelRow cancels an execution that was read because its job was deleted with it.
func (e *Engine) cancelRow(row Row) {
	id := row.Execution.ID
	if id.IsZero() || e.executions[id] != nil || row.Execution.State.Ended() || !goesWithJob(row.Definition) || !e.usable(&row) {
		return
	}
	e.cancel(e.holdQueued(row), Entry{Definition: row.Definition, Note: row.Definition.Deleted.Reason})
	e.step.inbox = true // there may be more
}
