package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

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
	rows query // the rows from one id down to another that pass the whole filter
	edge query // the last id of a walk, and its length
}

// The filter of every list: namespace, place, job, state, pool, number of rows, lowest id. Each text names its
// index, for the tables are large and the planner has no statistics.
func orderedBy(table, index, part string) ordered {
	from := ` FROM ` + table + ` INDEXED BY ` + table + `_` + index + ` WHERE namespace = ?1 AND id < ?2` + part
	return ordered{
		rows: statement(`SELECT ` + asRow(executionColumns) + from + ` AND id >= ?7
			AND (?3 = '' OR job = ?3) AND (?4 = '' OR state = ?4) AND (?5 = '' OR pool = ?5) ORDER BY id DESC LIMIT ?6`),
		edge: statement(`SELECT min(id), count(*) FROM (SELECT id` + from + ` ORDER BY id DESC LIMIT ?6)`),
	}
}

// The conditions on state must stand as in the indexes, or those are not used.
const (
	isActive   = ` AND state NOT IN ('queued', 'scheduled')`
	isNoteable = ` AND state <> 'succeeded'`
)

var (
	liveOfAll  = orderedBy("executions", "namespace", ``)
	liveOfJob  = orderedBy("executions", "job", ` AND job = ?3`)
	liveOfPool = orderedBy("executions", "pool", ` AND pool = ?5`)
	liveActive = orderedBy("executions", "state", ` AND state = ?4`+isActive)

	endedOfAll    = orderedBy("history_executions", "namespace", ``)
	endedOfJob    = orderedBy("history_executions", "job", ` AND job = ?3`)
	endedOfPool   = orderedBy("history_executions", "pool", ` AND pool = ?5`)
	endedState    = orderedBy("history_executions", "state", ` AND state = ?4`+isNoteable)
	endedJobState = orderedBy("history_executions", "job_state", ` AND job = ?3 AND state = ?4`+isNoteable)
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

// beyond is above every id, below is not above any.
var (
	beyond = bytes.Repeat([]byte{0xff}, 17)
	below  = []byte{}
)

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
	if err != nil {
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

// walk lists the rows of one table behind a place, as many as a page holds. end is the id down to which
// the table was looked at; nil: to its end.
func (w way) walk(r *link, f *store.ExecutionFilter, behind []byte, most int64) (rows []job.Execution, end []byte, err error) {
	low := below
	if !w.whole {
		var last []byte
		var n int64
		if _, err := r.one(w.edge, []any{f.Namespace, behind, f.Job, string(f.State), f.Pool, most}, &last, &n); err != nil {
			return nil, nil, err
		}
		if n == most {
			low, end = last, last
		}
	}
	out := store.Pageful[job.Execution]{Limit: f.Rows()}
	args := []any{f.Namespace, behind, f.Job, string(f.State), f.Pool, int64(f.Rows()) + 1, low}
	var row packed
	columns := store.ColumnsOf(&row)
	err = r.each(w.rows, args, func(rows *sql.Rows) error {
		if err := row.next(rows); err != nil {
			return err
		}
		e := columns.Execution()
		if err := row.end(); err != nil {
			return err
		}
		return out.Add(e, store.SizeOf(&e))
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
