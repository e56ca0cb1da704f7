package postgres

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Arrays of rows, in the order of rowColumns and shardColumns. What a guard misses is named by the execution's id.
const (
	rowArrays = `unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::uuid[], $6::bigint[], $7::text[], $8::text[], $9::text[],
		$10::bigint[], $11::text[], $12::text[], $13::integer[], $14::text[], $15::text[], $16::text[], $17::integer[], $18::bigint[],
		$19::bigint[], $20::bigint[], $21::text[], $22::text[]) u (` + rowColumns + `)`
	// commonArrays are rows that have much in common: what differs as arrays, the rest once for all of them. (Unnested in FROM they would
	// all be kept aside before the first is used.)
	commonArrays = `(SELECT v.id, $9::integer AS partition, $10::text AS namespace, $11::text AS job, $12::uuid AS job_uid, $13::bigint AS revision, $14::text AS pool,
		$15::text AS handler, $16::text AS trigger, v.planned_at, v.request_key, v.params, $17::integer AS shard_total, $18::text AS state, $19::text AS reason,
		$20::text AS cancel, $21::integer AS round, v.created_at, v.started_at, v.ended_at, $22::text AS shard_state, v.shard
		FROM (SELECT unnest($1::uuid[]) AS id, unnest($2::bigint[]) AS planned_at, unnest($3::text[]) AS request_key, unnest($4::text[]) AS params,
			unnest($5::bigint[]) AS created_at, unnest($6::bigint[]) AS started_at, unnest($7::bigint[]) AS ended_at, unnest($8::text[]) AS shard) v) u`
	shardArrays = `unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::boolean[], $9::boolean[],
		$10::integer[], $11::integer[], $12::integer[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
		$19::bigint[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::text[], $25::text[], $26::text[], $27::text[]) u (` + shardColumns + `)`

	executionMissing = `SELECT min(x::text) FROM unnest($1) x WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.id = x)`
	shardMissing     = `SELECT min(x.execution::text) FROM unnest($1, $2) x (execution, idx)
		WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.execution = x.execution AND done.idx = x.idx)`
)

// What an execution is (job, trigger …) is written once; what becomes of it changes, and the instant that it waits for.
// Leaving the first out of the update also leaves its indexes alone. An update is an INSERT that always conflicts, for that
// finds each row by its key, whatever the planner thinks (see keyed); a row that it made (xmax is 0) ends the transaction.
var (
	guardExecutions = guard(guardExecution, `cardinality($1)`, executionMissing)
	guardShards     = guard(guardShard, `cardinality($1)`, shardMissing)

	qExecutionInsert = statement(insertRows(rowArrays))
	qCommonInsert    = statement(insertRows(commonArrays))
	qExecutionUpdate = statement(updateRows(rowArrays))
	qCommonUpdate    = statement(updateRows(commonArrays))
	qExecutionDelete = statement(`WITH done AS (DELETE FROM executions WHERE ` +
		keyed(`unnest($1::uuid[], $2::text[], $3::text[]) u (id, was, shard_was)`, `executions`,
			`t.id = u.id AND t.state = u.was AND (u.shard_was = '' OR t.shard_state = u.shard_was)`) + ` RETURNING id)` + guardExecutions)
	qExecutionAbsent = statement(`WITH done AS (SELECT x AS id FROM unnest($1::uuid[]) x WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x OFFSET 0))` +
		guardExecutions)
	qExecutionArchive = statement(archiveRows(rowArrays))
	qCommonArchive    = statement(archiveRows(commonArrays))
	// A shard in the row that is not written goes along: this comes before the deletion.
	qRowArchive = statement(`WITH done AS (INSERT INTO history_executions (` + rowColumns + `)
		SELECT ` + qualified("u", executionColumns) + `, l.shard_state, l.shard FROM ` + rowArrays +
		` LEFT JOIN LATERAL (SELECT e.shard_state, e.shard FROM executions e WHERE e.id = u.id OFFSET 0) l ON true
		ON CONFLICT DO NOTHING RETURNING id)` + guardExecutions)
	qExecutionRevive = statement(`WITH gone AS (DELETE FROM history_executions WHERE id = $1 AND state = $2 RETURNING ` + rowColumns + `),
		done AS (INSERT INTO executions (` + rowColumns + `) SELECT ` + rowColumns + ` FROM gone ON CONFLICT DO NOTHING RETURNING id)` + guard(guardExecution, `1`, `$1::text`))

	// The values of the INSERT but for the shard are those of no row: it always conflicts.
	qShardInRow = statement(`WITH written AS (INSERT INTO executions AS e (` + rowColumns + `)
		SELECT u.id, 0, '', '', u.id, 0, '', '', '', 0, '', NULL, 0, '', '', '', 0, 0, 0, 0, u.shard_state, u.shard
		FROM unnest($1::uuid[], $2::text[], $3::text[]) u (id, shard_state, shard)
		ON CONFLICT (id) DO UPDATE SET shard_state = excluded.shard_state, shard = excluded.shard WHERE e.shard_state = $4
			RETURNING id, xmax::text <> '0' AS was),
		done AS (SELECT id FROM written WHERE was)` + guard(guardShard, `cardinality($1)`, executionMissing))

	qShardLate = statement(`WITH done AS (INSERT INTO shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM ` + shardArrays + `
		WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = u.execution AND e.shard_state IS NOT NULL OFFSET 0)
		AND NOT EXISTS (SELECT 1 FROM history_executions e WHERE e.id = u.execution AND e.shard_state IS NOT NULL OFFSET 0)
		ON CONFLICT DO NOTHING RETURNING execution, idx)` + guardShards)
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

	qShardsArchive = statement(`INSERT INTO history_shards (` + allShardColumns + `) SELECT ` + allShardColumns + ` FROM shards WHERE execution = ANY($1::uuid[])`)
	qShardsDelete  = statement(`DELETE FROM shards WHERE execution = ANY($1::uuid[])`)
	qShardsRevive  = statement(`INSERT INTO shards (` + allShardColumns + `) SELECT ` + allShardColumns + ` FROM history_shards WHERE execution = $1`)
	qShardsForget  = statement(`DELETE FROM history_shards WHERE execution = $1`)
)

func insertRows(arrays string) string {
	return `WITH done AS (INSERT INTO executions (` + rowColumns + `) SELECT ` + rowColumns + ` FROM ` + arrays + `
		WHERE NOT EXISTS (SELECT 1 FROM history_executions h WHERE h.id = u.id OFFSET 0) ON CONFLICT DO NOTHING RETURNING id)` + guardExecutions
}

func updateRows(arrays string) string {
	return `WITH written AS (INSERT INTO executions AS e (` + rowColumns + `) SELECT ` + rowColumns + ` FROM ` + arrays + `
		ON CONFLICT (id) DO UPDATE SET partition = excluded.partition, revision = excluded.revision, pool = excluded.pool, handler = excluded.handler, params = excluded.params,
			shard_total = excluded.shard_total, state = excluded.state, reason = excluded.reason, cancel = excluded.cancel, round = excluded.round,
			started_at = excluded.started_at, ended_at = excluded.ended_at, planned_at = excluded.planned_at, shard_state = coalesce(excluded.shard_state, e.shard_state),
			shard = coalesce(excluded.shard, e.shard) WHERE e.state = $23 AND ($24 = '' OR e.shard_state = $24) RETURNING id, xmax::text <> '0' AS was),
		done AS (SELECT id FROM written WHERE was)` + guardExecutions
}

// archiveRows needs no guard: the key of history refuses what is there (inHistory). ON CONFLICT would look for each row before it is
// written, and confirm it in the log after that.
func archiveRows(arrays string) string {
	return `INSERT INTO history_executions (` + rowColumns + `) SELECT ` + rowColumns + ` FROM ` + arrays
}

// keyValue is a key of one uuid, as the database tells it in whatever language.
var keyValue = regexp.MustCompile(`\(id\)=\(([0-9a-f-]{36})\)`)

// inHistory tells that an execution is refused because history has one with its id, and which.
func inHistory(pg *pgconn.PgError) (id string, is bool) {
	if pg.Code != codeUnique || !strings.HasPrefix(pg.TableName, monthsOfExecutions[0]) {
		return "", false
	}
	if found := keyValue.FindStringSubmatch(pg.Detail); found != nil {
		id = found[1]
	}
	return id, true
}

// inOrder sorts rows by id, in which they are cheaper to put into indexes: these keep hold of their last page.
func (w rowWrites) inOrder() rowWrites {
	slices.SortFunc(w, func(a, b store.RowWrite) int { x, y := a.ID(), b.ID(); return bytes.Compare(x[:], y[:]) })
	return w
}

// column makes an array of one value of each row.
func column[T, V any](rows []T, value func(*T) V) []V {
	all := make([]V, len(rows))
	for i := range rows {
		all[i] = value(&rows[i])
	}
	return all
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

// stateGuard is the refusal of a write of an execution or a shard, which it names as the contract wants.
func (c *commit) stateGuard(code, of string) error {
	var id job.ExecutionID
	if raw, err := hex.DecodeString(strings.ReplaceAll(of, "-", "")); err == nil {
		copy(id[:], raw)
	}
	what := "execution "
	if code == guardShard {
		what = "a shard of "
	}
	return job.Errorf(job.KindFenced, "state_guard", "%s%s is not in the state that it was written from", what, id).WithField(id.String())
}
