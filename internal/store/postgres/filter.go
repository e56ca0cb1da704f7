package postgres

import (
	"context"
	"errors"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Bounds of one call with a query: rows are looked at in pieces, and not without end.
const (
	filterPiece = 500
	filterMost  = 20_000
	filterWalks = 20 // pieces that may be short: each looks at walkRows rows
)

// queried reads on until a page of what the query selects is full. It ends before that when it has looked at
// filterMost rows; the page is then short and leads on.
func (s *Store) queried(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
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
	found := pageful[job.Execution]{limit: f.Rows()}
	for looked, walks := 0, 1; ; walks++ {
		narrow.Limit = min(filterPiece, filterMost-looked)
		rows, next, err := s.listed(ctx, narrow)
		if err != nil {
			return nil, "", err
		}
		looked += len(rows)
		for i := range rows {
			if f.Selects(&rows[i]) && errors.Is(found.add(rows[i], sizeOf(&rows[i])), errEnough) {
				return found.rows, found.next(listExecutions, func(e job.Execution) any { return e.ID }), nil
			}
		}
		if next == "" || looked >= filterMost || walks == filterWalks {
			return found.rows, next, nil
		}
		narrow.After = next
	}
}
