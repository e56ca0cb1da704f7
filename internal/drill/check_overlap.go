package drill

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// checkSerial is I25 for what schedules make: of one job one execution runs at a time, wherever it is decided, unless the
// job lets them run side by side.
func checkSerial(ix *index, fail failFunc) {
	rows := map[job.ExecutionID]job.Execution{}
	for _, x := range ix.Executions {
		if x.Trigger != job.TriggerRequest && !ix.Beside[x.Job] {
			rows[x.ID] = x
		}
	}
	runs := map[job.UID]map[job.ExecutionID]bool{}
	for _, e := range ix.Events {
		x, of := rows[e.Execution]
		if !of || e.Kind != engine.FactExecutionState {
			continue
		}
		now := runs[x.JobUID]
		if now == nil {
			now = map[job.ExecutionID]bool{}
			runs[x.JobUID] = now
		}
		switch to := job.ExecutionState(e.To); {
		case to.Ended():
			delete(now, x.ID)
		case to == job.ExecutionRunning:
			for other := range now {
				fail(e.Seq, "execution %s of %s begins while %s runs", x.ID, x.Job, other)
			}
			now[x.ID] = true
		}
	}
}
