package sqlite

import (
	"database/sql"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// The condition must stand as in the index executions_turns, or that is not used.
var qTurns = statement(`SELECT job_uid, planned_at, id, state, reason, round FROM executions INDEXED BY executions_turns
	WHERE partition = ? AND (state = 'scheduled' AND reason IN ('overlap', 'overlap_replace')
		OR state = 'queued' AND (trigger <> 'request' AND reason <> 'overlap_free' OR reason = 'overlap_turn'))
	ORDER BY job_uid, planned_at, id`)

// waitingRows reads what counts for the overlap policies of jobs and is not under way.
func waitingRows(r *link, partition int) (all []engine.Waiting, err error) {
	err = r.each(qTurns, []any{int64(partition)}, func(rows *sql.Rows) error {
		var w engine.Waiting
		var uid, id sql.RawBytes
		err := rows.Scan(&uid, &w.PlannedAt, &id, &w.State, &w.Reason, &w.Round)
		if err == nil {
			w.Job, w.ID = job.UID(uid), job.ExecutionID(id)
			all = append(all, w)
		}
		return err
	})
	return all, err
}
