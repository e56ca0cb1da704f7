package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// walkRows is how many rows of a table a list of executions looks at for one page. Where an index has
// only a part of the filter, the rows in it that the rest of the filter refuses may be a million: the
// page then ends early, maybe empty, with a place to go on from.
const walkRows = 1_000

// ordered is an index that has the rows of a part of a filter newest first: by id, which sorts by
// planned instant (R4).
type ordered struct {
	parts []string // of the filter, that the index has
	rows  query    // the rows from a place on, as many as are wanted
	some  query    // of as many rows from a place on as are looked at, those that pass the rest of the filter
	edge  query    // the last row of those that are looked at
}

// filterParts are the columns that a filter may name.
var filterParts = []string{"job", "state", "pool"}

// orderedBy makes the texts for one index, of namespace, some parts of a filter and id. Their arguments are
// namespace, place, number of rows, the parts that the index has; for some also the other parts and how many rows are looked at.
//
// PostgreSQL takes no name of an index, and columns that are compared with a constant would leave any index on id as
// good as the right one to the planner, who cannot know how the rows lie. So the columns are compared, and ordered,
// as one row with the id, which only the index of these columns has in order. Such a comparison says where a scan
// begins, but of its end PostgreSQL sees only the first column: it would read on through what is of other jobs or
// states. So there is no other condition in a scan: what it reads counts, and the reader stops at the first row that is not his.
func orderedBy(table, condition string, parts ...string) ordered {
	key, mark, down := "namespace", "$1", "namespace DESC"
	for i, name := range parts {
		key, mark, down = key+", "+name, fmt.Sprintf("%s, $%d", mark, 4+i), down+", "+name+" DESC"
	}
	from := ` FROM ` + table + ` WHERE (` + key + `, id) < (` + mark + `, $2)` + condition + ` ORDER BY ` + down + `, id DESC`
	mine := `namespace = $1`
	for i, name := range parts {
		mine += fmt.Sprintf(" AND %s = $%d", name, 4+i)
	}
	for i, name := range othersOf(parts) {
		mine += strings.ReplaceAll(` AND ($n::text = '' OR `+name+` = $n)`, "$n", fmt.Sprintf("$%d", 4+len(parts)+i))
	}
	return ordered{
		parts: parts,
		rows:  statement(`SELECT ` + executionColumns + from + ` LIMIT $3`),
		some: statement(`SELECT ` + executionColumns + ` FROM (SELECT ` + executionColumns + from + ` LIMIT $7) AS looked
			WHERE ` + mine + ` ORDER BY namespace DESC, id DESC LIMIT $3`),
		edge: statement(`SELECT ` + key + `, id` + from + ` OFFSET $3 LIMIT 1`), // the index has all of that
	}
}

func othersOf(parts []string) (others []string) {
	for _, name := range filterParts {
		if !slices.Contains(parts, name) {
			others = append(others, name)
		}
	}
	return others
}

// args are the arguments of some; those of rows and edge are as many as they have.
func (o *ordered) args(f *store.ExecutionFilter, behind []byte, rows, looked int) []any {
	values := map[string]string{"job": f.Job, "state": string(f.State), "pool": f.Pool}
	all := []any{f.Namespace, behind, rows}
	for _, name := range slices.Concat(o.parts, othersOf(o.parts)) {
		all = append(all, values[name])
	}
	return append(all, looked)
}

// mine tells whether a row is of the part of the filter that the index has.
func (o *ordered) mine(f *store.ExecutionFilter, e *job.Execution) bool {
	is := e.Namespace == f.Namespace
	for _, name := range o.parts {
		switch name {
		case "job":
			is = is && e.Job == f.Job
		case "state":
			is = is && e.State == f.State
		case "pool":
			is = is && e.Pool == f.Pool
		}
	}
	return is
}

// The conditions on state must stand as in the indexes, or those are not used.
const (
	isActive   = ` AND state NOT IN ('queued', 'scheduled')`
	isNoteable = ` AND state <> 'succeeded'`
)

var (
	liveOfAll  = orderedBy("executions", "")
	liveOfJob  = orderedBy("executions", "", "job")
	liveOfPool = orderedBy("executions", "", "pool")
	liveActive = orderedBy("executions", isActive, "state")

	endedOfAll    = orderedBy("history_executions", "")
	endedOfJob    = orderedBy("history_executions", "", "job")
	endedOfPool   = orderedBy("history_executions", "", "pool")
	endedState    = orderedBy("history_executions", isNoteable, "state")
	endedJobState = orderedBy("history_executions", isNoteable, "job", "state")
)

// way is how the rows of one table are listed.
type way struct {
	ordered
	whole bool // the index has the whole filter: every row looked at is a row of the list
}

// waysOf chooses the tables and indexes of a filter. Ended executions are in history and nowhere else.
func waysOf(f *store.ExecutionFilter) []way {
	if f.State == "" {
		return []way{byJobOrPool(f, liveOfJob, liveOfPool, liveOfAll), byJobOrPool(f, endedOfJob, endedOfPool, endedOfAll)}
	}
	switch {
	case f.State == job.ExecutionQueued || f.State == job.ExecutionScheduled:
		return []way{byJobOrPool(f, liveOfJob, liveOfPool, liveOfAll)}
	case !f.State.Ended():
		return []way{{liveActive, f.Job == "" && f.Pool == ""}}
	case f.State == job.ExecutionSucceeded:
		return []way{byJobOrPool(f, endedOfJob, endedOfPool, endedOfAll)}
	case f.Job != "":
		return []way{{endedJobState, f.Pool == ""}}
	}
	return []way{{endedState, f.Pool == ""}}
}

func byJobOrPool(f *store.ExecutionFilter, ofJob, ofPool, ofAll ordered) way {
	switch {
	case f.Job != "":
		return way{ofJob, f.State == "" && f.Pool == ""}
	case f.Pool != "":
		return way{ofPool, f.State == ""}
	}
	return way{ofAll, f.State == ""}
}

// beyond is above every id that there is.
var beyond = bytes.Repeat([]byte{0xff}, 16)

// Executions implements store.Reader.
func (s *Store) Executions(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
	if !f.Query.Empty() {
		return store.Queried(ctx, listExecutions, f, s.listed)
	}
	return s.listed(ctx, f)
}

// listed lists without the query.
func (s *Store) listed(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
	var after job.ExecutionID
	behind := beyond
	more, err := store.ParseAfter(listExecutions, f.After, &after)
	if err != nil || !cleanFilter(&f) { // no row has such a name
		return nil, "", err
	}
	if more {
		behind = after[:]
	}
	out := store.Pageful[job.Execution]{Limit: f.Rows()}
	var edge []byte // nil: every table was looked at to its end
	err = s.look(ctx, "list executions", func(r *link) error {
		var all []job.Execution
		for _, w := range waysOf(&f) {
			rows, end, err := w.walk(r, &f, behind, s.walk)
			if err != nil {
				return err
			}
			all = append(all, rows...)
			if bytes.Compare(end, edge) > 0 {
				edge = end
			}
		}
		rows, end, err := walkLots(r, &f, behind, s.walk*lotsWalk)
		if err != nil {
			return err
		}
		all = append(all, rows...)
		if bytes.Compare(end, edge) > 0 {
			edge = end
		}
		slices.SortFunc(all, func(a, b job.Execution) int { return bytes.Compare(b.ID[:], a.ID[:]) })
		for _, e := range all {
			// below the edge, rows of the table that ended there are missing
			if bytes.Compare(e.ID[:], edge) < 0 || !out.Take(e, store.SizeOf(&e)) {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	switch {
	case out.More:
		return out.Rows, store.After(listExecutions, out.Rows[len(out.Rows)-1].ID), nil
	case edge != nil:
		copy(after[:], edge)
		return out.Rows, store.After(listExecutions, after), nil
	}
	return out.Rows, "", nil
}

// cleanFilter tells whether PostgreSQL takes the texts of f at all.
func cleanFilter(f *store.ExecutionFilter) bool {
	return store.Clean(f.Namespace) && store.Clean(f.Job) && store.Clean(f.Pool) && store.Clean(string(f.State))
}

// walk lists the rows of one table behind a place, as many as a page holds. end is the id down to which
// the table was looked at; nil: to its end.
func (w way) walk(r *link, f *store.ExecutionFilter, behind []byte, most int) (rows []job.Execution, end []byte, err error) {
	q, given := w.rows, 3+len(w.parts)
	if !w.whole {
		q, given = w.some, 7
		if end, err = w.edgeOf(r, f, behind, most); err != nil {
			return nil, nil, err
		}
	}
	out := store.Pageful[job.Execution]{Limit: f.Rows()}
	err = inPieces(f.Rows()+1, &out.More, func(limit int) (n int, err error) {
		err = r.each(q, w.args(f, behind, limit, most)[:given], func(rows pgx.Rows) error {
			e, err := scanExecution(rows)
			if err != nil {
				return err
			}
			if !w.mine(f, &e) || bytes.Compare(e.ID[:], end) < 0 {
				return store.ErrEnough
			}
			n, behind = n+1, bytes.Clone(e.ID[:])
			return out.Add(e, store.SizeOf(&e))
		})
		return n, err
	})
	if err != nil {
		return nil, nil, err
	}
	if out.More {
		id := out.Rows[len(out.Rows)-1].ID
		end = id[:]
	}
	return out.Rows, end, nil
}

// edgeOf is the last id of as many rows as are looked at; nil when there are not so many.
func (w way) edgeOf(r *link, f *store.ExecutionFilter, behind []byte, most int) ([]byte, error) {
	var e job.Execution
	columns := map[string]any{"job": &e.Job, "state": (*string)(&e.State), "pool": &e.Pool}
	dest := []any{&e.Namespace}
	for _, name := range w.parts {
		dest = append(dest, columns[name])
	}
	found, err := r.one(w.edge, w.args(f, behind, most-1, 0)[:3+len(w.parts)], append(dest, (*[16]byte)(&e.ID))...)
	if err != nil || !found || !w.mine(f, &e) {
		return nil, err
	}
	return e.ID[:], nil
}

// pieceRows is how many rows a list asks for at a time: what was asked for comes, also when the page is full before, and
// rows may be large.
const pieceRows = 128

// inPieces asks for rows in pieces, up to limit of them or until the page is full.
func inPieces(limit int, full *bool, piece func(limit int) (int, error)) error {
	for left := limit; left > 0 && !*full; left -= pieceRows {
		want := min(left, pieceRows)
		if n, err := piece(want); err != nil || n < want {
			return err
		}
	}
	return nil
}
