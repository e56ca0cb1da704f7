package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

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

// eachActive reads the rows of a query by row.
func eachActive(r *link, q query, arg any, row func(*store.Columns)) error {
	var b binaryRow
	columns := store.ColumnsOf(&b)
	return r.each(q, []any{pgx.QueryResultFormats{pgx.BinaryFormatCode}, arg}, func(rows pgx.Rows) error {
		b = binaryRow{left: rows.RawValues()}
		if row(columns); b.bad || len(b.left) > 0 {
			return errColumns
		}
		return nil
	})
}

// activeRows reads all that is under way with one query per table, for there may be 100,000 of them.
func activeRows(r *link, partition int) ([]engine.Row, error) {
	var all []engine.Row
	if err := eachActive(r, qActive, partition, func(c *store.Columns) { all = append(all, c.ActiveRow()) }); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b engine.Row) int { return bytes.Compare(a.Execution.ID[:], b.Execution.ID[:]) })
	if slices.ContainsFunc(all, func(row engine.Row) bool { return len(row.Shards) == 0 }) {
		if err := addActiveShards(r, partition, all); err != nil {
			return nil, err
		}
	}
	known := noDefinitions()
	if err := known.fetch(r, column(all, func(row *engine.Row) version { return version{row.Execution.JobUID, row.Execution.Revision} })); err != nil {
		return nil, err
	}
	for i := range all {
		row := &all[i]
		store.SortShards(row.Shards)
		row.Definition = known.of[version{row.Execution.JobUID, row.Execution.Revision}]
		share(row)
	}
	return all, nil
}

// addActiveShards reads the shards that lie apart: those that have not ended, and blocks of both; then those that have ended, of
// executions of which some are still missing.
func addActiveShards(r *link, partition int, all []engine.Row) error {
	at := make(map[job.ExecutionID]*engine.Row, len(all))
	for i := range all {
		at[all[i].Execution.ID] = &all[i]
	}
	row := &engine.Row{}
	add := func(c *store.Columns) {
		c.ActiveShards(func(sh *job.Shard) {
			if row.Execution.ID != sh.Execution {
				row = at[sh.Execution]
			}
			if row.Shards == nil {
				row.Shards = make([]job.Shard, 0, min(max(row.Execution.ShardTotal, 1), job.MaxShards))
			}
			row.Shards = append(row.Shards, *sh)
		})
	}
	if err := eachActive(r, qActiveShards, partition, add); err != nil {
		return err
	}
	var missing [][16]byte
	for i := range all {
		if len(all[i].Shards) < max(all[i].Execution.ShardTotal, 1) {
			missing = append(missing, all[i].Execution.ID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return eachActive(r, qActiveEnded, missing, add)
}
