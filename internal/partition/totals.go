package partition

import "github.com/taktsched/takt/internal/job"

// Executions counts what became of executions. An execution that is rerun ends again.
type Executions struct {
	Created            int64
	Succeeded          int64
	PartiallySucceeded int64
	Failed             int64
	TimedOut           int64
	Cancelled          int64
}

// ended counts an end; other states are none.
func (e *Executions) ended(state string) {
	switch job.ExecutionState(state) {
	case job.ExecutionSucceeded:
		e.Succeeded++
	case job.ExecutionPartiallySucceeded:
		e.PartiallySucceeded++
	case job.ExecutionFailed:
		e.Failed++
	case job.ExecutionTimedOut:
		e.TimedOut++
	case job.ExecutionCancelled:
		e.Cancelled++
	}
}
