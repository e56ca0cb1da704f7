package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Marks of hot statements are not numbered: the driver looks numbered ones up by name.
const (
	executionColumns = `id, partition, namespace, job, job_uid, revision, pool, handler, trigger, planned_at, request_key,
		params, shard_total, state, reason, cancel, round, created_at, started_at, ended_at`
	executionMarks = `?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?`

	// The row of an execution, with the shard that may lie in it.
	rowColumns = executionColumns + `, shard_state, shard`
	rowMarks   = executionMarks + `, ?, ?`

	shardColumns = `execution, idx, state, reason, token, session, worker, closed, confirmed, attempt, faults, losses,
		leased_at, started_at, ended_at, timeout_at, retry_at, stop_by, report_seq, checkpoint, checkpoint_seq,
		done, total, note, result, error, attempts`
	shardMarks = `?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?`

	allShardColumns = shardColumns + `, block`

	sessionColumns = `id, partition, namespace, pool, worker, incarnation, handlers, slots, labels, build, ttl, beat, margin, opened_at, unheard`

	definitionColumns = `j.uid, j.namespace, j.name, r.revision, r.labels, j.created_at, r.at, r.spec, j.pause, NULL`
	// The partition that plans a job: all its cursors name it; when there are none, the one that it was created in.
	plannerOf  = `coalesce((SELECT c.partition FROM cursors c WHERE c.job = j.uid LIMIT 1), j.home)` // j: jobs or all_jobs
	plannerOf1 = `coalesce((SELECT partition FROM cursors WHERE job = ?1 LIMIT 1), (SELECT home FROM all_jobs WHERE uid = ?1))`

	anyDefinitionColumns = `j.uid, j.namespace, j.name, r.revision, r.labels, j.created_at, r.at, r.spec, j.pause, j.deletion` // j: all_jobs
)

// qualified puts a table's alias in front of each column.
func qualified(alias, columns string) string {
	names := strings.Split(columns, ",")
	for i, n := range names {
		names[i] = alias + "." + strings.TrimSpace(n)
	}
	return strings.Join(names, ", ")
}

// text is raw JSON as it is bound: NULL when there is none.
func text(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return string(raw)
}

// encode is v as JSON text, with <, > and & as they are.
func encode(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", job.Errorf(job.KindRejected, "bad_json", "a value that cannot be written as JSON").WithCause(err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// encodeSome is encode, but NULL for nothing.
func encodeSome(some bool, v any) (any, error) {
	if !some {
		return nil, nil
	}
	return encode(v)
}

// decode reads JSON text into v; NULL leaves it alone. What we wrote ourselves must be readable.
func decode(what string, stored sql.NullString, v any) error {
	if !stored.Valid {
		return nil
	}
	if err := json.Unmarshal([]byte(stored.String), v); err != nil {
		return fmt.Errorf("stored %s: %w", what, err)
	}
	return nil
}

func raw(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// executionArgs are the values of executionColumns.
func executionArgs(args []any, e *job.Execution) []any {
	return append(args, e.ID[:], int64(e.Partition), e.Namespace, e.Job, e.JobUID[:], e.Revision, e.Pool, e.Handler,
		string(e.Trigger), int64(e.PlannedAt), e.RequestKey, text(e.Params), int64(e.ShardTotal), string(e.State),
		string(e.Reason), string(e.Cancel), int64(e.Round), int64(e.CreatedAt), int64(e.StartedAt), int64(e.EndedAt))
}

// scanExecution reads executionColumns and whatever follows them.
func scanExecution(rows *sql.Rows, more ...any) (job.Execution, error) {
	var e job.Execution
	var id, uid sql.RawBytes
	var params sql.NullString
	err := rows.Scan(append([]any{&id, &e.Partition, &e.Namespace, &e.Job, &uid, &e.Revision, &e.Pool, &e.Handler,
		(*string)(&e.Trigger), &e.PlannedAt, &e.RequestKey, &params, &e.ShardTotal, (*string)(&e.State),
		(*string)(&e.Reason), (*string)(&e.Cancel), &e.Round, &e.CreatedAt, &e.StartedAt, &e.EndedAt}, more...)...)
	copy(e.ID[:], id)
	copy(e.JobUID[:], uid)
	e.Params = raw(params)
	store.CheckExecution(&e)
	return e, err
}

// scanRow reads rowColumns: the execution, and its shard if that lies in the row.
func scanRow(rows *sql.Rows) (row engine.Row, err error) {
	var state sql.NullString
	var text sql.RawBytes
	row.Execution, err = scanExecution(rows, &state, &text)
	if err == nil && state.Valid {
		row.Shards = []job.Shard{store.ReadShardInRow(row.Execution.ID, state.String, text)}
	}
	return row, err
}

// shardArgs are the values of shardColumns.
func shardArgs(args []any, s *job.Shard) ([]any, error) {
	failure, err := encodeSome(s.Error != nil, s.Error)
	if err != nil {
		return nil, err
	}
	var attempts any
	if len(s.Attempts) > 0 {
		attempts = string(job.AppendAttempts(nil, s.Attempts))
	}
	return append(args, s.Execution[:], int64(s.Index), string(s.State), string(s.Reason), int64(s.Token), string(s.Session),
		s.Worker, flag(s.Closed), flag(s.Confirmed), int64(s.Attempt), int64(s.Faults), int64(s.Losses),
		int64(s.LeasedAt), int64(s.StartedAt), int64(s.EndedAt), int64(s.TimeoutAt), int64(s.RetryAt), int64(s.StopBy),
		s.ReportSeq, text(s.Checkpoint), s.CheckpointSeq, s.Progress.Done, s.Progress.Total, s.Progress.Note,
		text(s.Result), failure, attempts), nil
}

// eachShard reads rows of allShardColumns: each is one shard, or a block of them, in their order.
func eachShard(r *link, q query, args []any, see func(*job.Shard) error) error {
	return r.each(q, args, func(rows *sql.Rows) error {
		s, block, err := scanShard(rows)
		if err != nil {
			return err
		}
		if block == nil {
			return see(&s)
		}
		return store.EachPacked(s.Execution, s.Index, block, nil, see)
	})
}

// scanShard reads allShardColumns. With a block, which is valid until the next row, only Execution and Index count.
func scanShard(rows *sql.Rows) (s job.Shard, block sql.RawBytes, err error) {
	var id sql.RawBytes
	var checkpoint, result, failure, attempts sql.NullString
	err = rows.Scan(&id, &s.Index, (*string)(&s.State), (*string)(&s.Reason), &s.Token, (*string)(&s.Session), &s.Worker,
		&s.Closed, &s.Confirmed, &s.Attempt, &s.Faults, &s.Losses, &s.LeasedAt, &s.StartedAt, &s.EndedAt, &s.TimeoutAt,
		&s.RetryAt, &s.StopBy, &s.ReportSeq, &checkpoint, &s.CheckpointSeq, &s.Progress.Done, &s.Progress.Total,
		&s.Progress.Note, &result, &failure, &attempts, &block)
	copy(s.Execution[:], id)
	if err != nil || block != nil {
		return s, block, err
	}
	s.Checkpoint, s.Result = raw(checkpoint), raw(result)
	store.ReadShard(&s, raw(failure), raw(attempts))
	return s, nil, nil
}

func sessionArgs(s *job.Session) ([]any, error) {
	handlers, err := encodeSome(len(s.Handlers) > 0, s.Handlers)
	if err != nil {
		return nil, err
	}
	labels, err := encodeSome(len(s.Labels) > 0, s.Labels)
	if err != nil {
		return nil, err
	}
	return []any{string(s.ID), int64(s.Partition), s.Namespace, s.Pool, s.Worker, s.Incarnation, handlers, int64(s.Slots), labels,
		s.Build, s.TTL.Milliseconds(), s.Beat.Milliseconds(), s.Margin.Milliseconds(), int64(s.OpenedAt), int64(s.Unheard)}, nil
}

func scanSession(rows *sql.Rows) (job.Session, error) {
	var s job.Session
	var handlers, labels sql.NullString
	var ttl, beat, margin int64
	err := rows.Scan((*string)(&s.ID), &s.Partition, &s.Namespace, &s.Pool, &s.Worker, &s.Incarnation, &handlers, &s.Slots, &labels,
		&s.Build, &ttl, &beat, &margin, &s.OpenedAt, &s.Unheard)
	if err != nil {
		return s, err
	}
	s.TTL, s.Beat, s.Margin = ms(ttl), ms(beat), ms(margin)
	store.ReadSession(&s, raw(handlers), raw(labels))
	return s, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// scanDefinition reads definitionColumns and whatever follows them.
func scanDefinition(rows *sql.Rows, more ...any) (*job.Definition, error) {
	var d job.Definition
	var uid sql.RawBytes
	var labels sql.NullString
	var spec, pause, deletion sql.NullString
	dest := append([]any{&uid, &d.Namespace, &d.Name, &d.Revision, &labels, &d.CreatedAt, &d.UpdatedAt, &spec, &pause, &deletion}, more...)
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	copy(d.UID[:], uid)
	store.ReadDefinition(&d, raw(spec), raw(labels), raw(pause), raw(deletion))
	return &d, nil
}

const cursorColumns = `c.revision, c.next, c.last, c.held, c.stamp, c.owed, c.owed_to, c.owed_later, c.runs, c.failures` // c: cursors

func cursorDest(c *job.Cursor) []any {
	return []any{&c.Revision, &c.Next, &c.Last, &c.Held, &c.Stamp, &c.Owed, &c.OwedTo, &c.OwedLater, &c.Runs, &c.Failures}
}

func scanCursor(rows *sql.Rows) (job.Cursor, error) {
	var c job.Cursor
	var uid sql.RawBytes
	err := rows.Scan(append([]any{&uid, &c.Schedule}, cursorDest(&c)...)...)
	copy(c.Job[:], uid)
	return c, err
}
