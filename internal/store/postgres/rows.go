package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const (
	executionColumns = `id, partition, namespace, job, job_uid, revision, pool, handler, trigger, planned_at, request_key,
		params, shard_total, state, reason, cancel, round, created_at, started_at, ended_at`
	// The row of an execution, with the shard that may lie in it.
	rowColumns = executionColumns + `, shard_state, shard`

	shardColumns = `execution, idx, state, reason, token, session, worker, closed, confirmed, attempt, faults, losses,
		leased_at, started_at, ended_at, timeout_at, retry_at, stop_by, report_seq, checkpoint, checkpoint_seq,
		done, total, note, result, error, attempts`
	allShardColumns = shardColumns + `, block`

	sessionColumns = `id, partition, namespace, pool, worker, incarnation, handlers, slots, labels, build, ttl, beat, margin, opened_at, unheard`

	definitionColumns = `j.uid, j.namespace, j.name, r.revision, r.labels, j.created_at, r.at, r.spec, j.pause, NULL::text`
	// The partition that plans a job: all its cursors name it; when there are none, the one that it was created in.
	plannerOf            = `coalesce((SELECT c.partition FROM cursors c WHERE c.job = j.uid LIMIT 1), j.home)`                 // j: jobs or all_jobs
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
func text(raw json.RawMessage) *string {
	if len(raw) == 0 {
		return nil
	}
	s := string(raw)
	return &s
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
func encodeSome(some bool, v any) (*string, error) {
	if !some {
		return nil, nil //nolint:nilnil // NULL is what is meant
	}
	s, err := encode(v)
	return &s, err
}

// decode reads JSON text into v; NULL leaves it alone. What we wrote ourselves must be readable.
func decode(what string, stored []byte, v any) error {
	if stored == nil {
		return nil
	}
	if err := json.Unmarshal(stored, v); err != nil {
		return fmt.Errorf("stored %s: %w", what, err)
	}
	return nil
}

// scanExecution reads executionColumns and whatever follows them.
func scanExecution(rows pgx.Rows, more ...any) (job.Execution, error) {
	var e job.Execution
	err := rows.Scan(append([]any{(*[16]byte)(&e.ID), &e.Partition, &e.Namespace, &e.Job, (*[16]byte)(&e.JobUID), &e.Revision, &e.Pool, &e.Handler,
		(*string)(&e.Trigger), (*int64)(&e.PlannedAt), &e.RequestKey, (*[]byte)(&e.Params), &e.ShardTotal, (*string)(&e.State),
		(*string)(&e.Reason), (*string)(&e.Cancel), &e.Round, (*int64)(&e.CreatedAt), (*int64)(&e.StartedAt), (*int64)(&e.EndedAt)}, more...)...)
	store.CheckExecution(&e)
	return e, err
}

// scanRow reads rowColumns: the execution, and its shard if that lies in the row.
func scanRow(rows pgx.Rows) (row engine.Row, err error) {
	var state *string
	var text []byte
	row.Execution, err = scanExecution(rows, &state, &text)
	if err == nil && state != nil {
		row.Shards = []job.Shard{store.ReadShardInRow(row.Execution.ID, *state, text)}
	}
	return row, err
}

// eachShard reads rows of allShardColumns: each is one shard, or a block of them, in their order.
func eachShard(r *link, q query, args []any, see func(*job.Shard) error) error {
	return r.each(q, args, func(rows pgx.Rows) error {
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

// scanShard reads allShardColumns. With a block only Execution and Index count.
func scanShard(rows pgx.Rows) (s job.Shard, block []byte, err error) {
	var failure, attempts []byte
	err = rows.Scan((*[16]byte)(&s.Execution), &s.Index, (*string)(&s.State), (*string)(&s.Reason), (*int64)(&s.Token), (*string)(&s.Session), &s.Worker,
		&s.Closed, &s.Confirmed, &s.Attempt, &s.Faults, &s.Losses, (*int64)(&s.LeasedAt), (*int64)(&s.StartedAt), (*int64)(&s.EndedAt),
		(*int64)(&s.TimeoutAt), (*int64)(&s.RetryAt), (*int64)(&s.StopBy), &s.ReportSeq, (*[]byte)(&s.Checkpoint), &s.CheckpointSeq,
		&s.Progress.Done, &s.Progress.Total, &s.Progress.Note, (*[]byte)(&s.Result), &failure, &attempts, &block)
	if err == nil && block == nil {
		store.ReadShard(&s, failure, attempts)
	}
	return s, block, err
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
	return []any{string(s.ID), s.Partition, s.Namespace, s.Pool, s.Worker, s.Incarnation, handlers, s.Slots, labels,
		s.Build, s.TTL.Milliseconds(), s.Beat.Milliseconds(), s.Margin.Milliseconds(), int64(s.OpenedAt), s.Unheard}, nil
}

func scanSession(rows pgx.Rows) (job.Session, error) {
	var s job.Session
	var handlers, labels []byte
	var ttl, beat, margin int64
	err := rows.Scan((*string)(&s.ID), &s.Partition, &s.Namespace, &s.Pool, &s.Worker, &s.Incarnation, &handlers, &s.Slots, &labels,
		&s.Build, &ttl, &beat, &margin, (*int64)(&s.OpenedAt), &s.Unheard)
	if err != nil {
		return s, err
	}
	s.TTL, s.Beat, s.Margin = ms(ttl), ms(beat), ms(margin)
	store.ReadSession(&s, handlers, labels)
	return s, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// scanDefinition reads definitionColumns and whatever follows them.
func scanDefinition(rows pgx.Rows, more ...any) (*job.Definition, error) {
	var d job.Definition
	var labels, spec, pause, deletion []byte
	dest := append([]any{(*[16]byte)(&d.UID), &d.Namespace, &d.Name, &d.Revision, &labels, (*int64)(&d.CreatedAt), (*int64)(&d.UpdatedAt),
		&spec, &pause, &deletion}, more...)
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	store.ReadDefinition(&d, spec, labels, pause, deletion)
	return &d, nil
}

const cursorColumns = `c.revision, c.next, c.last, c.held, c.stamp, c.owed, c.owed_to, c.owed_later, c.runs, c.failures` // c: cursors

func cursorDest(c *job.Cursor) []any {
	return []any{&c.Revision, (*int64)(&c.Next), (*int64)(&c.Last), (*int64)(&c.Held), &c.Stamp, (*int64)(&c.Owed), (*int64)(&c.OwedTo), &c.OwedLater, &c.Runs, &c.Failures}
}

func scanCursor(rows pgx.Rows) (job.Cursor, error) {
	var c job.Cursor
	err := rows.Scan(append([]any{(*[16]byte)(&c.Job), &c.Schedule}, cursorDest(&c)...)...)
	return c, err
}

// Ranks of inbox entries: cancels overtake.
const (
	entryFirst int64 = 0
	entryRest  int64 = 1
)

const entryColumns = `id, kind, job, execution, payload`

// payload is the part of an entry that nothing looks for.
type payload struct {
	At       job.Instant       `json:"at,omitempty"`
	Key      string            `json:"key,omitempty"`
	Params   json.RawMessage   `json:"params,omitempty"`
	Revision int64             `json:"revision,omitempty"` // of the job, that a trigger is for
	Kept     *store.RequestKey `json:"kept,omitempty"`     // that leads to a trigger's execution
	Note     string            `json:"note,omitempty"`
	Delayed  bool              `json:"delayed,omitempty"` // of a trigger: not before At
}

// entry is an inbox entry as it is stored.
type entry struct {
	engine.Entry
	revision int64             // that it is about; 0: whichever is the newest
	kept     *store.RequestKey // without its hash; nil: none
	bulk     []byte            // the payload of a row that holds many
	alone    bool              // read from a row of its own
}

// scanEntry reads entryColumns and whatever follows them.
func scanEntry(rows pgx.Rows, more ...any) (entry, error) {
	var e entry
	var uid, id *[16]byte
	var text []byte
	if err := rows.Scan(append([]any{&e.ID, (*string)(&e.Kind), &uid, &id, &text}, more...)...); err != nil {
		return e, err
	}
	if uid != nil {
		e.Job = *uid
	}
	if id != nil {
		e.Execution = *id
	}
	if e.Kind == store.KindBulk {
		e.bulk = text
		return e, nil // see eachEntry
	}
	var p payload
	if err := decode("payload of an inbox entry", text, &p); err != nil {
		e.Kind = store.UnfitEntry(e.Kind)
		return e, nil //nolint:nilerr // a kind that nobody knows is left alone, with an alarm
	}
	e.Note, e.revision, e.kept = p.Note, p.Revision, p.Kept
	if e.Kind.Triggers() || e.Kind == engine.EntryReschedule {
		e.Request = &engine.Request{At: p.At, Delayed: p.Delayed, Key: p.Key, Params: p.Params}
	}
	return e, nil
}
