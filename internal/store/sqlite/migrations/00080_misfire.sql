-- What schedules owe of the instants that nobody planned in time, how often they ran, and how often their job failed in a row.
--
-- +goose Up
ALTER TABLE cursors ADD COLUMN owed INTEGER NOT NULL DEFAULT 0; -- first of the instants that will run yet
ALTER TABLE cursors ADD COLUMN owed_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN failures INTEGER NOT NULL DEFAULT 0; -- written apart from the rest of the row
CREATE INDEX cursors_owed ON cursors (partition, job, schedule) WHERE owed > 0;
