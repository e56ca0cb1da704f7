-- Debts of several outages.
--
-- +goose Up
-- Ranges of instants that will run yet, behind owed to owed_to: "from-to,from-to".
ALTER TABLE cursors ADD COLUMN owed_later TEXT NOT NULL DEFAULT '';
