package store

import (
	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
)

// Selects tells whether an execution is one that f asks for. A store may leave more of the work to an index.
func (f *ExecutionFilter) Selects(e *job.Execution) bool {
	return e.Namespace == f.Namespace && (f.Job == "" || e.Job == f.Job) && (f.Pool == "" || e.Pool == f.Pool) &&
		(f.State == "" || e.State == f.State) && f.Query.Matches(&filter.Row{
		State: string(e.State), Job: e.Job, Pool: e.Pool, Handler: e.Handler, Trigger: string(e.Trigger), Reason: string(e.Reason),
		Shards: int64(e.ShardTotal), Round: int64(e.Round), Created: int64(e.CreatedAt), Planned: int64(e.PlannedAt),
		Started: int64(e.StartedAt), Ended: int64(e.EndedAt),
	})
}
