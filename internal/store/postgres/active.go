package postgres

import (
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qActive       = statement(`(SELECT ` + qualified("e", rowColumns) + activeOf + `) UNION ALL ` + membersOf(rowColumns, `lots l`, `l.partition BETWEEN $1 AND $1 AND l.state <> 'queued'`))
	qActiveShards = statement(`SELECT s.* FROM executions e` +
		eachOf("s", `SELECT `+store.ActiveShardColumns+` FROM shards WHERE execution = e.id AND state NOT IN `+endedShards) + activeApart)
	qActiveEnded = statement(`SELECT s.* FROM unnest($1::uuid[]) e (id)` +
		eachOf("s", `SELECT `+store.EndedShardColumns+` FROM shards WHERE execution = e.id AND state IN `+endedShards))
)

// binaryRow gives the columns of a row as they came: pgx finds out for each column of each row what it is to become.
type binaryRow struct {
	left [][]byte
	bad  bool
}

// Int implements store.Column.
func (r *binaryRow) Int() int64 {
	switch b := r.Bytes(); len(b) {
	case 1:
		return int64(b[0]) // a truth
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b))) //nolint:gosec // as it was sent
	case 8:
		return int64(binary.BigEndian.Uint64(b)) //nolint:gosec // as it was sent
	}
	r.bad = true
	return 0
}

// Bytes implements store.Column.
func (r *binaryRow) Bytes() []byte {
	if len(r.left) == 0 {
		r.bad = true
		return nil
	}
	b := r.left[0]
	r.left = r.left[1:]
	return b
}

var errColumns = errors.New("stored row: a column is of another type than it should be")

// active asks for rows that are read by row. Their columns come in binary, for so pgx has them of these types.
func active(q query, arg any, row func(*store.Columns)) question {
	var b binaryRow
	columns := store.ColumnsOf(&b)
	return question{q, []any{arg}, func(rows pgx.Rows) error {
		b = binaryRow{left: rows.RawValues()}
		if row(columns); b.bad || len(b.left) > 0 {
			return errColumns
		}
		return nil
	}}
}

// shardsOf brings shards that lie apart to their executions: first those that have not ended, and blocks of both; then those that have
// ended, of executions of which some are still missing.
type shardsOf struct {
	rows []engine.Row
	at   map[job.ExecutionID]*engine.Row
	row  *engine.Row // of the newest
}

func newShardsOf(rows []engine.Row) *shardsOf {
	s := &shardsOf{rows: rows, at: make(map[job.ExecutionID]*engine.Row, len(rows)), row: &engine.Row{}}
	for i := range rows {
		s.at[rows[i].Execution.ID] = &rows[i]
	}
	return s
}

func (s *shardsOf) add(c *store.Columns) {
	c.ActiveShards(func(sh *job.Shard) {
		if s.row.Execution.ID != sh.Execution {
			if s.row = s.at[sh.Execution]; s.row == nil { // it came since: what was read is thrown away
				s.row = &engine.Row{Execution: job.Execution{ID: sh.Execution}}
			}
		}
		if s.row.Shards == nil {
			s.row.Shards = make([]job.Shard, 0, min(max(s.row.Execution.ShardTotal, 1), job.MaxShards))
		}
		s.row.Shards = append(s.row.Shards, *sh)
	})
}

func (s *shardsOf) missing() (ids [][16]byte) {
	for i := range s.rows {
		if x := &s.rows[i].Execution; len(s.rows[i].Shards) < max(x.ShardTotal, 1) {
			ids = append(ids, x.ID)
		}
	}
	return ids
}
