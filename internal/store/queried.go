package store

import (
	"bytes"
	"context"
	"errors"
	"math"

	"github.com/taktsched/takt/internal/job"
)

// Bounds of one call with a query: rows are looked at in pieces, and not without end.
const (
	filterPiece = 500
	filterMost  = 1_000
	farthest    = 1<<48 - 1 // ms, the last that an id can carry
)

// Queried is a list with a query, for adapters: it reads on in pieces of listed, an adapter's list without one whose places have
// the given name, until a page of what the query selects is full. It ends before that when it has looked at
// filterMost rows, or the list itself at as many as it may; the page is then short and leads on.
func Queried(ctx context.Context, list string, f ExecutionFilter,
	listed func(context.Context, ExecutionFilter) ([]job.Execution, string, error),
) ([]job.Execution, string, error) {
	narrow := f
	if v, ok := f.Query.Only("job"); ok && f.Job == "" {
		narrow.Job = v
	}
	if v, ok := f.Query.Only("pool"); ok && f.Pool == "" {
		narrow.Pool = v
	}
	if v, ok := f.Query.Only("state"); ok && f.State == "" {
		narrow.State = job.ExecutionState(v)
	}
	// Ids sort by the instant that was planned first. What was moved has another one, which the term is about: such an execution
	// is found where both lie in the range. Among those that are scheduled, the ones that are moved, no range is cut off.
	least, most := f.Query.Between("planned")
	if narrow.State == job.ExecutionScheduled {
		least, most = math.MinInt64, math.MaxInt64
	}
	if err := notAfter(list, &narrow, most); err != nil {
		return nil, "", err
	}
	found := Pageful[job.Execution]{Limit: f.Rows()}
	for looked := 0; ; {
		narrow.Limit = min(filterPiece, filterMost-looked)
		rows, next, err := listed(ctx, narrow)
		if err != nil {
			return nil, "", err
		}
		looked += len(rows)
		for i := range rows {
			if f.Selects(&rows[i]) && errors.Is(found.Add(rows[i], SizeOf(&rows[i])), ErrEnough) {
				return found.Rows, found.Next(list, func(e job.Execution) any { return e.ID }), nil
			}
		}
		if n := len(rows); n > 0 && int64(rows[n-1].ID.PlannedAt()) < least {
			next = "" // all behind it is older
		}
		if next == "" || looked >= filterMost || len(rows) < narrow.Limit {
			return found.Rows, next, nil
		}
		narrow.After = next
	}
}

// notAfter makes a list begin at what is planned at most then, if it would begin before.
func notAfter(list string, f *ExecutionFilter, most int64) error {
	if most < 0 || most >= farthest {
		return nil
	}
	begin := job.RequestedID(job.Instant(most+1), [10]byte{}) // no id of that millisecond is smaller
	var after job.ExecutionID
	more, err := ParseAfter(list, f.After, &after)
	if err == nil && (!more || bytes.Compare(begin[:], after[:]) < 0) {
		f.After = After(list, begin)
	}
	return err
}
