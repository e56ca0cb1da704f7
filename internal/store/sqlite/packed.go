package sqlite

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"

	driver "modernc.org/sqlite"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// A column that is read through the driver costs 200 ns, most of it locks and boxes. Rows that are read by the thousand leave
// SQLite as one value, which packRow makes of their columns: a third of that.

var _ = register()

func register() struct{} {
	driver.MustRegisterFunction("takt_row", &driver.FunctionImpl{NArgs: -1, Deterministic: true, VolatileArgs: true, Scalar: packRow})
	return struct{}{}
}

// asRow is the expression for columns as one value.
func asRow(columns string) string { return `takt_row(` + columns + `)` }

// Kinds of packed values.
const (
	packedNull byte = iota
	packedInt
	packedText
)

// packRow writes values one behind the other. It keeps none of them: they are SQLite's.
func packRow(_ *driver.FunctionContext, args []sqldriver.Value) (sqldriver.Value, error) {
	b := make([]byte, 0, 512)
	for _, arg := range args {
		switch v := arg.(type) {
		case nil:
			b = append(b, packedNull)
		case int64:
			b = binary.AppendVarint(append(b, packedInt), v)
		case string:
			b = append(binary.AppendUvarint(append(b, packedText), uint64(len(v))), v...)
		case []byte:
			b = append(binary.AppendUvarint(append(b, packedText), uint64(len(v))), v...)
		default:
			return nil, fmt.Errorf("a value of type %T cannot be packed", arg)
		}
	}
	return b, nil
}

// rowReader reads packed rows; the texts that many of them have alike it keeps once.
type rowReader struct {
	names map[string]string
	raw   sql.RawBytes
	b     []byte // what is left of the row
	bad   bool
}

func newRowReader() *rowReader { return &rowReader{names: map[string]string{}} }

// next begins with the next row.
func (r *rowReader) next(rows *sql.Rows) error {
	if err := rows.Scan(&r.raw); err != nil {
		return err
	}
	r.b, r.bad = r.raw, false
	return nil
}

// end is an error when the row was not what was read.
func (r *rowReader) end() error {
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("stored row: a column is of another type than it should be")
	}
	return nil
}

func (r *rowReader) int() int64 {
	if len(r.b) > 0 && r.b[0] == packedInt {
		if v, n := binary.Varint(r.b[1:]); n > 0 {
			r.b = r.b[1+n:]
			return v
		}
	}
	r.bad = true
	return 0
}

// bytes are those of a text or blob, until the next row; nil for NULL.
func (r *rowReader) bytes() []byte {
	if len(r.b) > 0 && r.b[0] == packedNull {
		r.b = r.b[1:]
		return nil
	}
	if len(r.b) > 0 && r.b[0] == packedText {
		size, n := binary.Uvarint(r.b[1:])
		if from := 1 + n; n > 0 && size <= uint64(len(r.b)-from) {
			to := from + int(size) //nolint:gosec // compared just now
			v := r.b[from:to:to]
			r.b = r.b[to:]
			return v
		}
	}
	r.bad = true
	return nil
}

func (r *rowReader) text() string { return string(r.bytes()) }

// name is a text that other rows have, too.
func (r *rowReader) name() string {
	b := r.bytes()
	if known, ok := r.names[string(b)]; ok || len(b) == 0 {
		return known
	}
	s := string(b)
	r.names[s] = s
	return s
}

func (r *rowReader) json() json.RawMessage {
	if b := r.bytes(); b != nil {
		return append(make(json.RawMessage, 0, len(b)), b...)
	}
	return nil
}

func (r *rowReader) instant() job.Instant { return job.Instant(r.int()) }

// row reads asRow(rowColumns) for an owner: the execution, and its shard if that lies in the row.
func (r *rowReader) row(rows *sql.Rows) (row engine.Row, err error) {
	if err = r.next(rows); err != nil {
		return row, err
	}
	e := &row.Execution
	copy(e.ID[:], r.bytes())
	e.Partition, e.Namespace, e.Job = int(r.int()), r.name(), r.name()
	copy(e.JobUID[:], r.bytes())
	e.Revision, e.Pool, e.Handler, e.Trigger = r.int(), r.name(), r.name(), job.Trigger(r.name())
	e.PlannedAt, e.RequestKey, e.Params, e.ShardTotal = r.instant(), r.text(), r.json(), int(r.int())
	e.State, e.Reason, e.Cancel, e.Round = job.ExecutionState(r.name()), job.Reason(r.name()), job.Reason(r.name()), int(r.int())
	e.CreatedAt, e.StartedAt, e.EndedAt = r.instant(), r.instant(), r.instant()
	store.CheckExecution(e)
	if state := r.bytes(); state != nil {
		row.Shards = []job.Shard{store.EndedShard(store.ReadShardInRow(e.ID, string(state), r.bytes()))}
	} else {
		r.bytes()
	}
	return row, r.end()
}

// activeShard reads a row of qActiveShards: of a shard that has ended while its execution goes on an owner needs little.
func (r *rowReader) activeShard(rows *sql.Rows) (s job.Shard, err error) {
	if err = r.next(rows); err != nil {
		return s, err
	}
	if r.shardHead(&s); s.State.Ended() {
		s.Closed, s.ReportSeq, s.EndedAt = r.int() != 0, r.int(), r.instant()
	} else {
		r.shardRest(&s)
	}
	return s, r.end()
}

func (r *rowReader) shardHead(s *job.Shard) {
	copy(s.Execution[:], r.bytes())
	s.Index, s.State, s.Reason, s.Token = int(r.int()), job.ShardState(r.name()), job.Reason(r.name()), job.Token(r.int())
}

func (r *rowReader) shardRest(s *job.Shard) {
	s.Session, s.Worker, s.Closed, s.Confirmed = job.SessionID(r.name()), r.name(), r.int() != 0, r.int() != 0
	s.Attempt, s.Faults, s.Losses = int(r.int()), int(r.int()), int(r.int())
	s.LeasedAt, s.StartedAt, s.EndedAt, s.TimeoutAt = r.instant(), r.instant(), r.instant(), r.instant()
	s.RetryAt, s.StopBy, s.ReportSeq = r.instant(), r.instant(), r.int()
	s.Checkpoint, s.CheckpointSeq = r.json(), r.int()
	s.Progress.Done, s.Progress.Total, s.Progress.Note = r.int(), r.int(), r.text()
	s.Result = r.json()
	store.ReadShard(s, r.bytes(), r.bytes())
}
