package store

import "github.com/taktsched/takt/internal/job"

// Common is what the rows of many executions of one commit have in common. An adapter names it once for all of them: what a row
// costs is for a good part its columns, one by one.
type Common struct {
	Partition  int
	Namespace  string
	Job        string
	JobUID     job.UID
	Revision   int64
	Pool       string
	Handler    string
	Trigger    job.Trigger
	ShardTotal int
	State      job.ExecutionState
	Reason     job.Reason
	Cancel     job.Reason
	Round      int
	ShardState job.ShardState
}

// CommonRows are writes of rows that are alike, each with its shard. What differs: id, planned_at, request_key, params,
// created_at, started_at, ended_at, shard.
type CommonRows struct {
	Common
	Rows []RowWrite
}

// Worthwhile is how many rows must be alike, for each group is a statement of its own.
const Worthwhile = 8

// GroupCommon finds rows that are alike, at least so many; rest are the others. Their order is that of the first of each.
func GroupCommon(rows []RowWrite, least int) (groups []CommonRows, rest []RowWrite) {
	if len(rows) < least {
		return nil, rows
	}
	var all []CommonRows
	at := map[Common]int{}
	for i := range rows {
		w := rows[i]
		if w.ExecutionWrite == nil || w.Shard == nil {
			rest = append(rest, w)
			continue
		}
		k := common(&w)
		n, known := at[k]
		if !known {
			n = len(all)
			at[k] = n
			all = append(all, CommonRows{Common: k})
		}
		all[n].Rows = append(all[n].Rows, w)
	}
	for _, g := range all {
		if len(g.Rows) < least {
			rest = append(rest, g.Rows...)
			continue
		}
		groups = append(groups, g)
	}
	return groups, rest
}

func common(w *RowWrite) Common {
	e := &w.Row
	return Common{Partition: e.Partition, Namespace: e.Namespace, Job: e.Job, JobUID: e.JobUID, Revision: e.Revision, Pool: e.Pool,
		Handler: e.Handler, Trigger: e.Trigger, ShardTotal: e.ShardTotal, State: e.State, Reason: e.Reason, Cancel: e.Cancel,
		Round: e.Round, ShardState: w.Shard.Row.State}
}
