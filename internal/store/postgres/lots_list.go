package postgres

import (
	"bytes"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// lotsWalk is how many members of lots a list looks at for one page, in lots that do not lie about its place, as a multiple of the
// rows that it looks at in a table: they are few in all, and read at once.
const lotsWalk = 16

var (
	qLotHeads = statement(`SELECT partition, seq, part, last, remaining FROM lots
		WHERE namespace = $1 AND first < $2 AND ($3::text = '' OR job = $3) AND ($4::text = '' OR pool = $4)
		AND ($5::text = '' OR state = $5) ORDER BY last DESC`)
	qLotList = statement(membersOf(executionColumns, `unnest($1::integer[], $2::bigint[], $3::integer[]) k (partition, seq, part)`+
		eachOf("l", `SELECT * FROM lots WHERE partition = k.partition AND seq = k.seq AND part = k.part`), `m.id < $4 ORDER BY m.id DESC LIMIT $5`))
)

// walkLots lists members of lots behind a place, newest first; as walk does of a table. The lots in which the place lies are all
// read.
func walkLots(r *link, f *store.ExecutionFilter, behind []byte, most int) (rows []job.Execution, end []byte, err error) {
	if f.State != "" && f.State != job.ExecutionRunning && f.State != job.ExecutionQueued {
		return nil, nil, nil
	}
	var partitions, parts []int32
	var seqs []int64
	members, below := 0, 0
	if err := r.each(qLotHeads, []any{f.Namespace, behind, f.Job, f.Pool, string(f.State)}, func(rows pgx.Rows) error {
		var partition, part int32
		var seq int64
		var last [16]byte
		var remaining int
		err := rows.Scan(&partition, &seq, &part, &last, &remaining)
		if err == nil && bytes.Compare(last[:], behind) < 0 {
			if members += remaining; members > most && below > 0 { // the first of them is read, however large: so that the page moves on
				end = above(last)
				return store.ErrEnough
			}
			below++
		}
		partitions, seqs, parts = append(partitions, partition), append(seqs, seq), append(parts, part)
		return err
	}); err != nil || len(seqs) == 0 {
		return nil, nil, err
	}
	out := store.Pageful[job.Execution]{Limit: f.Rows()}
	if err := r.each(qLotList, []any{partitions, seqs, parts, behind, f.Rows() + 1}, func(rows pgx.Rows) error {
		e, err := scanExecution(rows)
		if err != nil {
			return err
		}
		return out.Add(e, store.SizeOf(&e))
	}); err != nil {
		return nil, nil, err
	}
	if out.More {
		id := out.Rows[len(out.Rows)-1].ID
		if bytes.Compare(id[:], end) > 0 {
			end = id[:]
		}
	}
	return out.Rows, end, nil
}

// above is the next id: what lies at the given one is not looked at.
func above(id [16]byte) []byte {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return slices.Clone(id[:])
}
