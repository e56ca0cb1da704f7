package postgres

import (
	"encoding/hex"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Arrays of rows, in the order of executionColumns and shardColumns. What a guard misses is named by the execution's id.
const (
	executionArrays = `unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::uuid[], $6::bigint[], $7::text[], $8::text[], $9::text[],
		$10::bigint[], $11::text[], $12::text[], $13::integer[], $14::text[], $15::text[], $16::text[], $17::integer[], $18::bigint[],
		$19::bigint[], $20::bigint[]) u (` + executionColumns + `)`
	shardTypes = `unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::boolean[], $9::boolean[],
		$10::integer[], $11::integer[], $12::integer[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
		$19::bigint[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::text[], $25::text[], $26::text[], $27::text[]`
	shardArrays    = shardTypes + `) u (` + shardColumns + `)`
	shardArraysWas = shardTypes + `, $28::text[]) u (` + shardColumns + `, was)`

	executionMissing = `SELECT min(x::text) FROM unnest($1) x WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.id = x)`
	shardMissing     = `SELECT min(x.execution::text) FROM unnest($1, $2) x (execution, idx)
		WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.execution = x.execution AND done.idx = x.idx)`
)

// What an execution is (job, planned instant, trigger …) is written once; what becomes of it changes.
// Leaving the first out of the update also leaves its indexes alone.
var (
	guardExecutions = guard(guardExecution, `cardinality($1)`, executionMissing)
	guardShards     = guard(guardShard, `cardinality($1)`, shardMissing)

	qExecutionInsert = statement(`WITH done AS (INSERT INTO executions (` + executionColumns + `) SELECT ` + executionColumns + ` FROM ` + executionArrays + `
		WHERE NOT EXISTS (SELECT 1 FROM history_executions h WHERE h.id = u.id) ON CONFLICT DO NOTHING RETURNING id)` + guardExecutions)
	qExecutionUpdate = statement(`WITH done AS (UPDATE executions e SET revision = u.revision, pool = u.pool, handler = u.handler, params = u.params,
		shard_total = u.shard_total, state = u.state, reason = u.reason, cancel = u.cancel, round = u.round, started_at = u.started_at, ended_at = u.ended_at
		FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::text[], $9::text[], $10::text[],
			$11::integer[], $12::bigint[], $13::bigint[])
			u (id, was, revision, pool, handler, params, shard_total, state, reason, cancel, round, started_at, ended_at)
		WHERE e.id = u.id AND e.state = u.was RETURNING e.id)` + guardExecutions)
	qExecutionDelete = statement(`WITH done AS (DELETE FROM executions e USING unnest($1::uuid[], $2::text[]) u (id, was)
		WHERE e.id = u.id AND e.state = u.was RETURNING e.id)` + guardExecutions)
	qExecutionAbsent = statement(`WITH done AS (SELECT x AS id FROM unnest($1::uuid[]) x WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x))` +
		guardExecutions)
	qExecutionArchive = statement(`WITH done AS (INSERT INTO history_executions (` + executionColumns + `) SELECT ` + executionColumns + ` FROM ` + executionArrays + `
		ON CONFLICT DO NOTHING RETURNING id)` + guardExecutions)
	qExecutionRevive = statement(`WITH done AS (DELETE FROM history_executions e USING unnest($1::uuid[], $2::text[]) u (id, was)
		WHERE e.id = u.id AND e.state = u.was RETURNING e.id)` + guardExecutions)

	qShardInsert = statement(`WITH done AS (INSERT INTO shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM ` + shardArrays + `
		ON CONFLICT DO NOTHING RETURNING execution, idx)` + guardShards)
	qShardUpdate = statement(`WITH done AS (UPDATE shards s SET state = u.state, reason = u.reason, token = u.token, session = u.session, worker = u.worker,
		closed = u.closed, confirmed = u.confirmed, attempt = u.attempt, faults = u.faults, losses = u.losses, leased_at = u.leased_at,
		started_at = u.started_at, ended_at = u.ended_at, timeout_at = u.timeout_at, retry_at = u.retry_at, stop_by = u.stop_by,
		report_seq = u.report_seq, checkpoint = u.checkpoint, checkpoint_seq = u.checkpoint_seq, done = u.done, total = u.total, note = u.note,
		result = u.result, error = u.error, attempts = u.attempts
		FROM ` + shardArraysWas + ` WHERE s.execution = u.execution AND s.idx = u.idx AND s.state = u.was RETURNING s.execution, s.idx)` + guardShards)
	qShardDelete = statement(`WITH done AS (DELETE FROM shards s USING unnest($1::uuid[], $2::integer[], $3::text[]) u (execution, idx, was)
		WHERE s.execution = u.execution AND s.idx = u.idx AND s.state = u.was RETURNING s.execution, s.idx)` + guardShards)
	qShardArchive = statement(`INSERT INTO history_shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM ` + shardArrays)

	qShardsArchive = statement(`INSERT INTO history_shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM shards WHERE execution = ANY($1::uuid[])`)
	qShardsDelete  = statement(`DELETE FROM shards WHERE execution = ANY($1::uuid[])`)
	qShardsRevive  = statement(`INSERT INTO shards (` + shardColumns + `) SELECT ` + qualified("s", shardColumns) + `
		FROM unnest($1::uuid[]) u (id) JOIN history_shards s ON s.execution = u.id`)
	qShardsForget = statement(`DELETE FROM history_shards s USING unnest($1::uuid[]) u (id) WHERE s.execution = u.id`)
)

// column makes an array of one value of each row.
func column[T, V any](rows []T, value func(*T) V) []V {
	all := make([]V, len(rows))
	for i := range rows {
		all[i] = value(&rows[i])
	}
	return all
}

type executionWrites []engine.ExecutionWrite

func (w executionWrites) texts(f func(*job.Execution) string) []string {
	return column(w, func(w *engine.ExecutionWrite) string { return f(&w.Row) })
}

func (w executionWrites) longs(f func(*job.Execution) int64) []int64 {
	return column(w, func(w *engine.ExecutionWrite) int64 { return f(&w.Row) })
}

func (w executionWrites) ints(f func(*job.Execution) int) []int32 {
	return column(w, func(w *engine.ExecutionWrite) int32 { return int32(f(&w.Row)) }) //nolint:gosec // counts of rows of ours
}

func (w executionWrites) ids() [][16]byte {
	return column(w, func(w *engine.ExecutionWrite) [16]byte { return w.Row.ID })
}

func (w executionWrites) params() []*string {
	return column(w, func(w *engine.ExecutionWrite) *string { return text(w.Row.Params) })
}

func (w executionWrites) was() []string {
	return column(w, func(w *engine.ExecutionWrite) string { return string(w.From) })
}

// arrays are the values of executionColumns.
func (w executionWrites) arrays() []any {
	return []any{
		w.ids(), w.ints(func(e *job.Execution) int { return e.Partition }),
		w.texts(func(e *job.Execution) string { return e.Namespace }), w.texts(func(e *job.Execution) string { return e.Job }),
		column(w, func(w *engine.ExecutionWrite) [16]byte { return w.Row.JobUID }), w.longs(func(e *job.Execution) int64 { return e.Revision }),
		w.texts(func(e *job.Execution) string { return e.Pool }), w.texts(func(e *job.Execution) string { return e.Handler }),
		w.texts(func(e *job.Execution) string { return string(e.Trigger) }), w.longs(func(e *job.Execution) int64 { return int64(e.PlannedAt) }),
		w.texts(func(e *job.Execution) string { return e.RequestKey }), w.params(), w.ints(func(e *job.Execution) int { return e.ShardTotal }),
		w.texts(func(e *job.Execution) string { return string(e.State) }), w.texts(func(e *job.Execution) string { return string(e.Reason) }),
		w.texts(func(e *job.Execution) string { return string(e.Cancel) }), w.ints(func(e *job.Execution) int { return e.Round }),
		w.longs(func(e *job.Execution) int64 { return int64(e.CreatedAt) }), w.longs(func(e *job.Execution) int64 { return int64(e.StartedAt) }),
		w.longs(func(e *job.Execution) int64 { return int64(e.EndedAt) }),
	}
}

// changes are what an update writes, behind key and former state.
func (w executionWrites) changes() []any {
	return []any{
		w.ids(), w.was(), w.longs(func(e *job.Execution) int64 { return e.Revision }), w.texts(func(e *job.Execution) string { return e.Pool }),
		w.texts(func(e *job.Execution) string { return e.Handler }), w.params(), w.ints(func(e *job.Execution) int { return e.ShardTotal }),
		w.texts(func(e *job.Execution) string { return string(e.State) }), w.texts(func(e *job.Execution) string { return string(e.Reason) }),
		w.texts(func(e *job.Execution) string { return string(e.Cancel) }), w.ints(func(e *job.Execution) int { return e.Round }),
		w.longs(func(e *job.Execution) int64 { return int64(e.StartedAt) }), w.longs(func(e *job.Execution) int64 { return int64(e.EndedAt) }),
	}
}

// executions writes them by kind: each batch has at most one write of an execution, so that their order is free.
func (c *commit) executions() error {
	var revived, absent, over, changed, fresh, archived executionWrites
	for i := range c.batch.Executions {
		w := c.batch.Executions[i]
		ended := w.Row.State.Ended()
		switch {
		case w.From.Ended():
			revived = append(revived, w)
		case w.From == "" && ended:
			absent = append(absent, w)
		case w.From == "":
		case ended:
			over = append(over, w)
		default:
			changed = append(changed, w)
			continue
		}
		if !ended {
			fresh = append(fresh, w)
			continue
		}
		archived = append(archived, w)
		if c.ended == nil {
			c.ended = map[job.ExecutionID]*ending{}
		}
		c.ended[w.Row.ID] = &ending{total: max(w.Row.ShardTotal, 1)}
		c.order = append(c.order, w.Row.ID)
	}
	if len(revived) > 0 {
		c.add(qExecutionRevive, revived.ids(), revived.was())
		c.add(qShardsRevive, revived.ids())
		c.add(qShardsForget, revived.ids())
	}
	if len(absent) > 0 {
		c.add(qExecutionAbsent, absent.ids())
	}
	if len(over) > 0 {
		c.add(qExecutionDelete, over.ids(), over.was())
	}
	if len(changed) > 0 {
		c.add(qExecutionUpdate, changed.changes()...)
	}
	if len(fresh) > 0 {
		c.add(qExecutionInsert, fresh.arrays()...)
	}
	if len(archived) > 0 {
		c.add(qExecutionArchive, archived.arrays()...)
	}
	c.dead += int64(len(over) + len(changed))
	return nil
}

// stateGuard is the refusal of a write of an execution or a shard, which it names as the contract wants.
func (c *commit) stateGuard(pg *pgconn.PgError) error {
	var id job.ExecutionID
	if raw, err := hex.DecodeString(strings.ReplaceAll(pg.Detail, "-", "")); err == nil {
		copy(id[:], raw)
	}
	what := "execution "
	if pg.Code == guardShard {
		what = "a shard of "
	}
	return job.Errorf(job.KindFenced, "state_guard", "%s%s is not in the state that it was written from", what, id).WithField(id.String())
}
