package store

import (
	"fmt"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// The shard of an unsharded execution lies in its execution's row: its state in a column, the rest as one text
// (job.AppendShard). Such a run is one row that comes, goes and comes to history. Rows of earlier versions lie in a table of
// shards; so do all shards of larger executions, many in a row (blocks.go).

// RowWrite is what a commit does to the row of an execution.
type RowWrite struct {
	*engine.ExecutionWrite                    // nil: only the shard changes
	Shard                  *engine.ShardWrite // that lies in the row; nil: it stays as it is, or lies apart
}

// ID is the execution's.
func (w *RowWrite) ID() job.ExecutionID {
	if w.ExecutionWrite != nil {
		return w.Row.ID
	}
	return w.Shard.Row.Execution
}

// ShardFrom is the state that the shard in the row must have; "" when it is not written.
func (w *RowWrite) ShardFrom() job.ShardState {
	if w.Shard == nil {
		return ""
	}
	return w.Shard.From
}

// RowWrites tells what a batch does to rows of executions, and which writes of shards go to the table of shards; late are
// of those the new ones of executions that are not new. A change of a shard that may lie in its row is taken to do so
// unless apart says otherwise: guards find out.
func RowWrites(b *engine.Batch, apart map[job.ExecutionID]bool) (rows []RowWrite, shards, late []*engine.ShardWrite) {
	rows = make([]RowWrite, len(b.Executions), len(b.Executions)+len(b.Shards))
	at := make(map[job.ExecutionID]int, len(b.Executions))
	for i := range b.Executions {
		rows[i].ExecutionWrite = &b.Executions[i]
		at[b.Executions[i].Row.ID] = i
	}
	for i := range b.Shards {
		w := &b.Shards[i]
		n, known := at[w.Row.Execution]
		fresh := known && rows[n].From == ""
		switch {
		case w.From == "" && !fresh:
			late = append(late, w)
		case w.Row.Index != 0 || w.Total > 1 || apart[w.Row.Execution] || known && rows[n].Row.ShardTotal != 1,
			fresh && (w.From != "" || b.Level < engine.LevelRows):
			shards = append(shards, w)
		case known:
			rows[n].Shard = w
		default:
			rows = append(rows, RowWrite{Shard: w})
		}
	}
	return rows, shards, late
}

// MayLieApart are the executions whose shard RowWrites takes to lie in their row.
func MayLieApart(b *engine.Batch) (all []job.ExecutionID) {
	rows, _, _ := RowWrites(b, nil)
	for i := range rows {
		if rows[i].ShardFrom() != "" {
			all = append(all, rows[i].ID())
		}
	}
	return all
}

// ReadShardInRow is the shard that lies in the row of an execution, marked when it cannot be used.
func ReadShardInRow(id job.ExecutionID, state string, text []byte) job.Shard {
	s := job.Shard{Execution: id, State: job.ShardState(state)}
	if err := job.ReadShard(text, &s); err != nil {
		s = job.Shard{Execution: id, State: s.State, Unfit: fmt.Sprintf("its stored shard cannot be read: %v", err)}
	}
	if !s.State.Known() {
		s.Unfit = fmt.Sprintf("the stored state of shard 0 is %.40q", s.State)
	}
	return s
}

// SizeOfRow is what may be large in an execution and its shards.
func SizeOfRow(row *engine.Row) int {
	size := SizeOf(&row.Execution)
	for i := range row.Shards {
		size += SizeOfShard(&row.Shards[i])
	}
	return size
}

// EndedShard is what a load needs of a shard that has ended while its execution goes on.
func EndedShard(s job.Shard) job.Shard {
	if !s.State.Ended() {
		return s
	}
	return job.Shard{Execution: s.Execution, Index: s.Index, State: s.State, Reason: s.Reason, Token: s.Token, Closed: s.Closed,
		ReportSeq: s.ReportSeq, EndedAt: s.EndedAt, Unfit: s.Unfit}
}
