package engine

import "github.com/taktsched/takt/internal/job"

// An execution that may not be given out yet is scheduled: it exists with its shards and stands in no line. Its reason
// says what it waits for: its instant (job.WaitDelay) or another execution of its job (job.WaitOverlap). A cancel ends it
// like any other. What ends the wait for its instant calls admit (overlap.go).

// postpone makes a new execution that has to wait for why. Whoever calls it says whether memory holds it.
func (e *Engine) postpone(row job.Execution, def *job.Definition, why job.Reason) *execution {
	return e.insert(row, def, job.ExecutionScheduled, why)
}
