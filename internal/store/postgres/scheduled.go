package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	// The condition must stand as in the index.
	qScheduled = statement(`SELECT ` + rowColumns + ` FROM executions
		WHERE partition = $1 AND state = 'scheduled' AND reason = 'not_due' AND (planned_at, id) > ($2, $3) AND planned_at <= $4
		ORDER BY planned_at, id LIMIT $5`)
	qKeyMade = statement(`SELECT execution FROM request_keys WHERE namespace = $1 AND operation = $2 AND key = $3`)
	qKeyDue  = statement(`UPDATE request_keys SET at = greatest(at, $1) WHERE namespace = $2 AND operation = $3 AND key = $4 AND execution = $5`)
)

// ScheduledPage implements store.Engine.
func (s *Store) ScheduledPage(ctx context.Context, partition int, w engine.WantScheduled) (engine.ScheduledPage, error) {
	out := engine.ScheduledPage{After: w.After, Through: engine.EndOf(w.Until)}
	page := store.Pageful[engine.Row]{Limit: w.Limit}
	err := s.read(ctx, "read scheduled executions", func(r *link) error {
		found := store.Pageful[engine.Row]{Limit: w.Limit}
		args := []any{partition, int64(w.After.At), [16]byte(w.After.ID), int64(w.Until), w.Limit + 1}
		if err := r.withSeq(partition, &out.Seq, question{qScheduled, args, func(rows pgx.Rows) error {
			row, err := scanRow(rows)
			if err != nil {
				return err
			}
			return found.Add(row, store.SizeOf(&row.Execution))
		}}); err != nil {
			return err
		}
		err := fill(r, &page, found.Rows, qShardsLive)
		if err == nil {
			err = homes(r, page.Rows)
		}
		if found.More || page.More {
			out.Through = store.PlaceOf(&page.Rows[len(page.Rows)-1].Execution)
		}
		return err
	})
	if err != nil {
		return engine.ScheduledPage{}, err
	}
	out.Rows = page.Rows
	return out, nil
}

// reschedule keeps the key of a request as long as that for the new instant is to be kept, and refuses when the execution
// does not wait for its instant. It moves from the inbox to the live tables to history: looked at in that order it is found.
func reschedule(w *link, a *store.Ask) error {
	var k store.RequestKey
	waits, _, _, err := pendingTrigger(w, a.Execution)
	if err != nil {
		return err
	}
	state, why := job.ExecutionQueued, job.ReasonNone
	if waits != nil && waits.Request != nil {
		state, why = store.AskedState(waits.Request)
		if waits.kept != nil {
			k = *waits.kept
		}
	} else if e, err := findExecution(w, a.Execution); err != nil {
		return err
	} else if e != nil {
		state, why, k = e.State, e.Reason, store.RequestKeyOf(e)
	}
	if err := store.MayReschedule(state, why); err != nil || k.Key == "" {
		return err
	}
	_, err = w.exec(qKeyDue, int64(a.Due), k.Namespace, k.Operation, k.Key, [16]byte(a.Execution))
	return err
}

// Requested implements store.Control.
func (s *Store) Requested(ctx context.Context, k store.RequestKey) (id job.ExecutionID, err error) {
	err = s.look(ctx, "read request key", func(r *link) error {
		var made [16]byte
		found, err := r.one(qKeyMade, []any{k.Namespace, k.Operation, k.Key}, &made)
		if err == nil && !found {
			err = store.NoRequest(k)
		}
		id = made
		return err
	})
	return id, err
}
