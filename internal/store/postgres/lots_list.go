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

// lotHead is a lot that has rows of a list.
type lotHead struct {
	partition, part int32
	seq             int64
	last            [16]byte
	remaining       int
	about           bool // the place of the list lies in it
}

// walkLots lists members of lots behind a place, newest first; as walk does of a table. The lots in which the place lies are all
// read, and of the others those that have rows of the page: they are few as a rule, for most lots lie one behind the other.
func walkLots(r *link, f *store.ExecutionFilter, behind []byte, most int) (rows []job.Execution, end []byte, err error) {
	if f.State != "" && f.State != job.ExecutionRunning && f.State != job.ExecutionQueued {
		return nil, nil, nil
	}
	heads, end, err := lotHeads(r, f, behind, most)
	if err != nil {
		return nil, nil, err
	}
	first, members := 0, 0
	for ; first < len(heads) && members <= f.Rows(); first++ {
		if !heads[first].about {
			members += heads[first].remaining
		}
	}
	rows, edge, err := lotRows(r, f, behind, heads[:first])
	if err != nil {
		return nil, nil, err
	}
	rest := first
	for rest < len(heads) && (edge == nil || bytes.Compare(heads[rest].last[:], edge) > 0) {
		rest++
	}
	more, further, err := lotRows(r, f, behind, heads[first:rest])
	if err != nil {
		return nil, nil, err
	}
	for _, at := range [][]byte{edge, further} {
		if bytes.Compare(at, end) > 0 {
			end = at
		}
	}
	return append(rows, more...), end, nil
}

// lotHeads lists the lots, by their last id, up to a number of members; end is the id down to which they were looked at, nil: all.
func lotHeads(r *link, f *store.ExecutionFilter, behind []byte, most int) (heads []lotHead, end []byte, err error) {
	members, below := 0, 0
	err = r.each(qLotHeads, []any{f.Namespace, behind, f.Job, f.Pool, string(f.State)}, func(rows pgx.Rows) error {
		var h lotHead
		if err := rows.Scan(&h.partition, &h.seq, &h.part, &h.last, &h.remaining); err != nil {
			return err
		}
		if h.about = bytes.Compare(h.last[:], behind) >= 0; !h.about {
			// The first of them is read, however large, and so is one with the same highest id, which was granted out of it: so that the
			// page moves on.
			if members += h.remaining; members > most && below > 0 && bytes.Compare(above(h.last), behind) < 0 {
				end = above(h.last)
				return store.ErrEnough
			}
			below++
		}
		heads = append(heads, h)
		return nil
	})
	return heads, end, err
}

// lotRows reads members of some lots, as many as a page holds; end is the last one when there are more.
func lotRows(r *link, f *store.ExecutionFilter, behind []byte, of []lotHead) (rows []job.Execution, end []byte, err error) {
	if len(of) == 0 {
		return nil, nil, nil
	}
	args := []any{column(of, func(h *lotHead) int32 { return h.partition }), column(of, func(h *lotHead) int64 { return h.seq }),
		column(of, func(h *lotHead) int32 { return h.part }), behind, f.Rows() + 1}
	out := store.Pageful[job.Execution]{Limit: f.Rows()}
	if err := r.each(qLotList, args, func(rows pgx.Rows) error {
		e, err := scanExecution(rows)
		if err != nil {
			return err
		}
		return out.Add(e, store.SizeOf(&e))
	}); err != nil {
		return nil, nil, err
	}
	if out.More {
		end = bytes.Clone(out.Rows[len(out.Rows)-1].ID[:])
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
