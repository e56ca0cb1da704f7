package sqlite

import (
	"context"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Bounds of one call with a query: rows are looked at in pieces, and not without end.
const (
	filterPiece = 500
	filterMost  = 20_000
)

// queried reads on until a page of what the query selects is full. It ends before that when it has looked at
// filterMost rows; the page is then short and leads on.
func (s *Store) queried(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
	want, narrow := f.Rows(), f
	if v, ok := f.Query.Only("job"); ok && f.Job == "" {
		narrow.Job = v
	}
	if v, ok := f.Query.Only("pool"); ok && f.Pool == "" {
		narrow.Pool = v
	}
	if v, ok := f.Query.Only("state"); ok && f.State == "" {
		narrow.State = job.ExecutionState(v)
	}
	var found []job.Execution
	for looked := 0; ; {
		narrow.Limit = min(filterPiece, filterMost-looked)
		rows, next, err := s.listed(ctx, narrow)
		if err != nil {
			return nil, "", err
		}
		looked += len(rows)
		for i := range rows {
			if !f.Selects(&rows[i]) {
				continue
			}
			if len(found) == want {
				_, next = page(append(found, rows[i]), f.Page, listExecutions, func(e job.Execution) any { return e.ID })
				return found, next, nil
			}
			found = append(found, rows[i])
		}
		if next == "" || looked >= filterMost {
			return found, next, nil
		}
		narrow.After = next
	}
}
