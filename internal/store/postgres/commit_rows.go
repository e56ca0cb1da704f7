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
	shardArrays = `unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::boolean[], $9::boolean[],
		$10::integer[], $11::integer[], $12::integer[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
		$19::bigint[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::text[], $25::text[], $26::text[], $27::text[]) u (` + shardColumns + `)`

	executionMissing = `SELECT min(x::text) FROM unnest($1) x WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.id = x)`
	shardMissing     = `SELECT min(x.execution::text) FROM unnest($1, $2) x (execution, idx)
		WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.execution = x.execution AND done.idx = x.idx)`
)

// What an execution is (job, planned instant, trigger …) is written once; what becomes of it changes.
// Leaving the first out of the update also leaves its indexes alone. An update is an INSERT that always conflicts, for that
// finds each row by its key, whatever the planner thinks (see keyed); a row that it made (xmax is 0) ends the transaction.
var (
	guardExecutions = guard(guardExecution, `cardinality($1)`, executionMissing)
	guardShards     = guard(guardShard, `cardinality($1)`, shardMissing)

	qExecutionInsert = statement(`WITH done AS (INSERT INTO executions (` + executionColumns + `) SELECT ` + executionColumns + ` FROM ` + executionArrays + `
		WHERE NOT EXISTS (SELECT 1 FROM history_executions h WHERE h.id = u.id OFFSET 0) ON CONFLICT DO NOTHING RETURNING id)` + guardExecutions)
	qExecutionUpdate = statement(`WITH written AS (INSERT INTO executions AS e (` + executionColumns + `) SELECT ` + executionColumns + ` FROM ` + executionArrays + `
		ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, pool = excluded.pool, handler = excluded.handler, params = excluded.params,
			shard_total = excluded.shard_total, state = excluded.state, reason = excluded.reason, cancel = excluded.cancel, round = excluded.round,
			started_at = excluded.started_at, ended_at = excluded.ended_at WHERE e.state = $21 RETURNING id, xmax::text <> '0' AS was),
		done AS (SELECT id FROM written WHERE was)` + guardExecutions)
	qExecutionDelete = statement(`WITH done AS (DELETE FROM executions WHERE ` +
		keyed(`unnest($1::uuid[], $2::text[]) u (id, was)`, `executions`, `t.id = u.id AND t.state = u.was`) + ` RETURNING id)` + guardExecutions)
	qExecutionAbsent = statement(`WITH done AS (SELECT x AS id FROM unnest($1::uuid[]) x WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x OFFSET 0))` +
		guardExecutions)
	qExecutionArchive = statement(`WITH done AS (INSERT INTO history_executions (` + executionColumns + `) SELECT ` + executionColumns + ` FROM ` + executionArrays + `
		ON CONFLICT DO NOTHING RETURNING id)` + guardExecutions)
	qExecutionRevive = statement(`WITH done AS (DELETE FROM history_executions WHERE id = $1 AND state = $2 RETURNING id)` + guard(guardExecution, `1`, `$1::text`))

	qShardInsert = statement(`WITH done AS (INSERT INTO shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM ` + shardArrays + `
		ON CONFLICT DO NOTHING RETURNING execution, idx)` + guardShards)
	qShardUpdate = statement(`WITH written AS (INSERT INTO shards AS s (` + shardColumns + `) SELECT ` + shardColumns + ` FROM ` + shardArrays + `
		ON CONFLICT (execution, idx) DO UPDATE SET state = excluded.state, reason = excluded.reason, token = excluded.token, session = excluded.session,
			worker = excluded.worker, closed = excluded.closed, confirmed = excluded.confirmed, attempt = excluded.attempt, faults = excluded.faults,
			losses = excluded.losses, leased_at = excluded.leased_at, started_at = excluded.started_at, ended_at = excluded.ended_at,
			timeout_at = excluded.timeout_at, retry_at = excluded.retry_at, stop_by = excluded.stop_by, report_seq = excluded.report_seq,
			checkpoint = excluded.checkpoint, checkpoint_seq = excluded.checkpoint_seq, done = excluded.done, total = excluded.total,
			note = excluded.note, result = excluded.result, error = excluded.error, attempts = excluded.attempts
			WHERE s.state = $28 RETURNING execution, idx, xmax::text <> '0' AS was),
		done AS (SELECT execution, idx FROM written WHERE was)` + guardShards)
	qShardDelete = statement(`WITH done AS (DELETE FROM shards WHERE ` +
		keyed(`unnest($1::uuid[], $2::integer[], $3::text[]) u (execution, idx, was)`, `shards`, `t.execution = u.execution AND t.idx = u.idx AND t.state = u.was`) +
		` RETURNING execution, idx)` + guardShards)
	qShardArchive = statement(`INSERT INTO history_shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM ` + shardArrays)

	qShardsArchive = statement(`INSERT INTO history_shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM shards WHERE execution = ANY($1::uuid[])`)
	qShardsDelete  = statement(`DELETE FROM shards WHERE execution = ANY($1::uuid[])`)
	qShardsRevive  = statement(`INSERT INTO shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM history_shards WHERE execution = $1`)
	qShardsForget  = statement(`DELETE FROM history_shards WHERE execution = $1`)
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

// groups are the rows with one value each.
func groups[T any, K comparable](rows []T, value func(*T) K) map[K][]T {
	all := map[K][]T{}
	for i := range rows {
		k := value(&rows[i])
		all[k] = append(all[k], rows[i])
	}
	return all
}

func (w executionWrites) groups() map[job.ExecutionState][]engine.ExecutionWrite {
	return groups(w, func(w *engine.ExecutionWrite) job.ExecutionState { return w.From })
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
	for i := range revived { // one by one: an id leads to one month, an array would lead to all
		id := [16]byte(revived[i].Row.ID)
		c.add(qExecutionRevive, id, string(revived[i].From))
		c.add(qShardsRevive, id)
		c.add(qShardsForget, id)
	}
	if len(absent) > 0 {
		c.add(qExecutionAbsent, absent.ids())
	}
	if len(over) > 0 {
		c.add(qExecutionDelete, over.ids(), over.was())
	}
	for from, group := range changed.groups() {
		c.add(qExecutionUpdate, append(executionWrites(group).arrays(), string(from))...)
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
