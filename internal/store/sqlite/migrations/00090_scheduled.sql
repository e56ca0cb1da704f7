-- Executions that wait for the instant that they were asked for.
--
-- +goose Up
CREATE INDEX executions_waiting ON executions (partition, planned_at, id) WHERE state = 'scheduled' AND reason = 'not_due';
