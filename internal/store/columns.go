package store

import (
	"encoding/json"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Column gives the columns of a row one behind the other, for adapters that read rows by the thousand.
type Column interface {
	Int() int64 // or a truth
	// Bytes are those of a text or blob, until the next row; nil for NULL.
	Bytes() []byte
}

// Columns reads rows. The texts that many of them have alike it keeps once.
type Columns struct {
	Column
	names map[string]string
}

// ColumnsOf reads what c gives.
func ColumnsOf(c Column) *Columns { return &Columns{Column: c, names: map[string]string{}} }

// name is a text that other rows have, too.
func (c *Columns) name() string { return c.named(c.Bytes()) }

func (c *Columns) named(b []byte) string {
	if known, ok := c.names[string(b)]; ok || len(b) == 0 {
		return known
	}
	s := string(b)
	c.names[s] = s
	return s
}

func (c *Columns) json() json.RawMessage {
	if b := c.Bytes(); b != nil {
		return append(make(json.RawMessage, 0, len(b)), b...)
	}
	return nil
}

func (c *Columns) number() int          { return int(c.Int()) }
func (c *Columns) instant() job.Instant { return job.Instant(c.Int()) }

// ActiveRow is what an owner needs of an execution that is under way, with its shard if that lies in the row. The columns:
// those of Execution, shard_state, shard.
func (c *Columns) ActiveRow() (row engine.Row) {
	row.Execution = c.Execution()
	state := c.Bytes()
	text := string(state)
	if shard := c.Bytes(); state != nil {
		row.Shards = []job.Shard{EndedShard(ReadShardInRow(row.Execution.ID, text, shard))}
	}
	return row
}

// Execution is the row of one. The columns:
//
//	id, partition, namespace, job, job_uid, revision, pool, handler, trigger, planned_at, request_key, params, shard_total,
//	state, reason, cancel, round, created_at, started_at, ended_at
func (c *Columns) Execution() (e job.Execution) {
	copy(e.ID[:], c.Bytes())
	e.Partition, e.Namespace, e.Job = c.number(), c.name(), c.name()
	copy(e.JobUID[:], c.Bytes())
	e.Revision, e.Pool, e.Handler, e.Trigger = c.Int(), c.name(), c.name(), job.Trigger(c.name())
	e.PlannedAt, e.RequestKey, e.Params, e.ShardTotal = c.instant(), string(c.Bytes()), c.json(), c.number()
	e.State, e.Reason, e.Cancel, e.Round = job.ExecutionState(c.name()), job.Reason(c.name()), job.Reason(c.name()), c.number()
	e.CreatedAt, e.StartedAt, e.EndedAt = c.instant(), c.instant(), c.instant()
	CheckExecution(&e)
	return e
}

// ActiveShards are what an owner needs of shards of such an execution: of one, or of a block of them. The columns:
//
//	execution, idx, state, reason, token, closed, report_seq, ended_at, and of one that has not ended session, worker,
//	confirmed, attempt, faults, losses, leased_at, started_at, timeout_at, retry_at, stop_by, checkpoint, checkpoint_seq,
//	done, total, note, result, error, attempts, block
func (c *Columns) ActiveShards(see func(*job.Shard)) {
	var s job.Shard
	copy(s.Execution[:], c.Bytes())
	s.Index, s.State, s.Reason, s.Token = c.number(), job.ShardState(c.name()), job.Reason(c.name()), job.Token(c.Int())
	if s.Closed, s.ReportSeq, s.EndedAt = c.Int() != 0, c.Int(), c.instant(); s.State.Ended() {
		see(&s)
		return
	}
	s.Session, s.Worker, s.Confirmed = job.SessionID(c.name()), c.name(), c.Int() != 0
	s.Attempt, s.Faults, s.Losses = c.number(), c.number(), c.number()
	s.LeasedAt, s.StartedAt, s.TimeoutAt, s.RetryAt, s.StopBy = c.instant(), c.instant(), c.instant(), c.instant(), c.instant()
	s.Checkpoint, s.CheckpointSeq = c.json(), c.Int()
	s.Progress.Done, s.Progress.Total, s.Progress.Note = c.Int(), c.Int(), string(c.Bytes())
	s.Result = c.json()
	failure, attempts := c.Bytes(), c.Bytes()
	if block := c.Bytes(); block != nil {
		_ = EachPacked(s.Execution, s.Index, block, c.named, func(s *job.Shard) error { // see does not fail
			*s = EndedShard(*s)
			see(s)
			return nil
		})
		return
	}
	ReadShard(&s, failure, attempts)
	see(&s)
}

// ActiveShardColumns are those of ActiveShards.
const (
	EndedShardColumns  = `execution, idx, state, reason, token, closed, report_seq, ended_at`
	ActiveShardColumns = EndedShardColumns + `, session, worker, confirmed, attempt, faults, losses, leased_at, started_at,
		timeout_at, retry_at, stop_by, checkpoint, checkpoint_seq, done, total, note, result, error, attempts, block`
)
