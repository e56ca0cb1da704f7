package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
)

// The condition must stand as in the index executions_turns, or that is not used; for the order see activeOnly.
var qTurns = statement(`SELECT job_uid, planned_at, id, state, reason, round FROM executions
	WHERE partition BETWEEN $1 AND $1 AND (state = 'scheduled' AND reason IN ('overlap', 'overlap_replace')
		OR state = 'queued' AND (trigger <> 'request' AND reason <> 'overlap_free' OR reason = 'overlap_turn'))
	ORDER BY partition, job_uid, planned_at, id`)

// waitingRows reads what counts for the overlap policies of jobs and is not under way.
func waitingRows(partition int, all *[]engine.Waiting) question {
	return question{qTurns, []any{partition}, func(rows pgx.Rows) error {
		var w engine.Waiting
		err := rows.Scan((*[16]byte)(&w.Job), (*int64)(&w.PlannedAt), (*[16]byte)(&w.ID), (*string)(&w.State), (*string)(&w.Reason), &w.Round)
		*all = append(*all, w)
		return err
	}}
}
