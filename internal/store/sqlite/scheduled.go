package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	// The condition must stand as in the index.
	qScheduled = statement(`SELECT ` + rowColumns + ` FROM executions INDEXED BY executions_waiting
		WHERE partition = ? AND state = 'scheduled' AND reason = 'not_due' AND (planned_at, id) > (?, ?) AND planned_at <= ?
		ORDER BY planned_at, id LIMIT ?`)
	qKeyMade = statement(`SELECT execution FROM request_keys WHERE namespace = ? AND operation = ? AND key = ?`)
	qKeyDue  = statement(`UPDATE request_keys SET at = max(at, ?) WHERE namespace = ? AND operation = ? AND key = ? AND execution = ?`)
)

// ScheduledPage implements store.Engine.
func (s *Store) ScheduledPage(ctx context.Context, partition int, w engine.WantScheduled) (engine.ScheduledPage, error) {
	out := engine.ScheduledPage{After: w.After, Through: engine.EndOf(w.Until)}
	page := store.Pageful[engine.Row]{Limit: w.Limit}
	err := s.read(ctx, "read scheduled executions", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		found := store.Pageful[engine.Row]{Limit: w.Limit}
		args := []any{int64(partition), int64(w.After.At), w.After.ID[:], int64(w.Until), int64(w.Limit) + 1}
		if err := r.each(qScheduled, args, func(rows *sql.Rows) error {
			row, err := scanRow(rows)
			if err != nil {
				return err
			}
			return found.Add(row, store.SizeOf(&row.Execution))
		}); err != nil && !errors.Is(err, store.ErrEnough) {
			return err
		}
		known, more := noDefinitions(), found.More
		for _, row := range found.Rows {
			if err := known.fill(r, &page, row, qShardsLive); errors.Is(err, store.ErrEnough) {
				more = true
				break
			} else if err != nil {
				return err
			}
		}
		if more {
			out.Through = store.PlaceOf(&page.Rows[len(page.Rows)-1].Execution)
		}
		return homes(r, page.Rows)
	})
	if err != nil {
		return engine.ScheduledPage{}, err
	}
	out.Rows = page.Rows
	return out, nil
}

// reschedule keeps the key of a request as long as that for the new instant is to be kept, and refuses when the execution
// (nil: it waits in the inbox) does not wait for its instant.
func reschedule(w *link, e *job.Execution, waits *entry, a *store.Ask) error {
	var k store.RequestKey
	state, why := job.ExecutionQueued, job.ReasonNone
	switch {
	case e != nil:
		state, why, k = e.State, e.Reason, store.RequestKeyOf(e)
	case waits.Request != nil:
		state, why = store.AskedState(waits.Request)
		if waits.kept != nil {
			k = *waits.kept
		}
	}
	if err := store.MayReschedule(state, why); err != nil || k.Key == "" {
		return err
	}
	_, err := w.exec(qKeyDue, int64(a.Due), k.Namespace, k.Operation, k.Key, a.Execution[:])
	return err
}

// Requested implements store.Control.
func (s *Store) Requested(ctx context.Context, k store.RequestKey) (id job.ExecutionID, err error) {
	err = s.look(ctx, "read request key", func(r *link) error {
		var made []byte
		found, err := r.one(qKeyMade, []any{k.Namespace, k.Operation, k.Key}, &made)
		if err == nil && !found {
			err = store.NoRequest(k)
		}
		copy(id[:], made)
		return err
	})
	return id, err
}
