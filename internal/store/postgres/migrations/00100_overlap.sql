-- What becomes of executions of one job that overlap.
--
-- +goose Up
-- Which executions a new owner has to know of before it plans, although it reads neither what is queued nor what is scheduled.
CREATE INDEX executions_turns ON executions (partition, job_uid, planned_at, id, state, reason, round)
    WHERE (state = 'scheduled' AND reason IN ('overlap', 'overlap_replace')
    OR state = 'queued' AND (trigger <> 'request' AND reason <> 'overlap_free' OR reason = 'overlap_turn'));
