package engine

import "fmt"

// Level is the newest kinds of entries, states and habits that this engine knows. A server's row states it; what a
// level brought is written only when the row of every server has stated that level or a newer one, so that servers of two
// builds can share a database (DESIGN §7). The database remembers that first (store.Partitions.RaiseFloor): from then on no older
// server is let in.
//
//	0  all that there was before rows stated levels
//	1  jobs move: a planner hands its cursors over to another partition (move.go)
//	2  time: scheduled executions, entries, triggers and reasons of overlap, catch-up, delayed requests, dependencies, backfill and calendars
//	3  rows: the shard of an unsharded execution lies in its execution's row (Batch.Level), triggers of one request in one row of the inbox
//	4  blocks: shards of an execution that has several lie many in a row (Batch.Level)
//	5  what waits follows its job to another partition (follow.go), and cursors that were handed over are marked (move.go)
//	6  lots: executions that one commit grants lie many in a row (Batch.Level)
//	7  waiting lots: so do requested ones that one commit puts in line (Batch.Level)
//	8  debts of several outages: cursors owe more than one range (debt.go)
const Level = 8

const (
	levelMoves = 1
	// LevelMoves is for who deletes a job with its executions.
	LevelMoves = levelMoves
	levelTime  = 2
	// LevelCalendars is for who writes calendars, and jobs that name them.
	LevelCalendars = levelTime
	// LevelRows is for stores, see Batch.Level.
	LevelRows = 3
	// LevelBlocks is for stores, too.
	LevelBlocks = 4
	levelFollow = 5
	// LevelLots is for stores, too.
	LevelLots = 6
	// LevelWaitingLots is for stores, too.
	LevelWaitingLots = 7
	levelDebts       = 8
)

// knownToAll tells whether every server knows what a level brought.
func (e *Engine) knownToAll(level int) bool { return Level-e.behind >= level }

// levels takes in how far the oldest server is behind. What waited for it is in the inbox.
func (e *Engine) levels(ev LevelOfAll) {
	e.behind = ev.Behind
	e.step.inbox = true
}

// delayMustWait tells that a request is to wait for its instant and that a server would not understand it: the entry stays
// in the inbox until the last such server is gone.
func (e *Engine) delayMustWait(entry *Entry) bool {
	if entry.Request == nil || !entry.Request.Delayed || e.knownToAll(levelTime) {
		return false
	}
	if e.pages.strange(entry.ID) {
		e.traceFact(Fact{Kind: FactSetAside, Note: fmt.Sprintf("inbox entry %d asks for a later instant, which a server of an older build does not know; it waits until that server is gone", entry.ID)})
	}
	return true
}

// moveMustWait tells that a job has to move and that a server would not understand it: the entry stays in the inbox, and
// the change is in force when the last such server is gone.
func (e *Engine) moveMustWait(entry *Entry) bool {
	return entry.Kind.aboutCursors() && entry.Kind != EntryJobDeleted && entry.Place != e.cfg.Partition && !e.knownToAll(levelMoves)
}
