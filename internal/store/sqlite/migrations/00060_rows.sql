-- Forward only. The shard of an unsharded execution lies in its row: its state, and the rest as JSON. NULL: its shards lie in
-- the tables of shards, as those of earlier versions do.
--
-- +goose Up
ALTER TABLE executions ADD COLUMN shard_state TEXT;
ALTER TABLE executions ADD COLUMN shard TEXT;
ALTER TABLE history_executions ADD COLUMN shard_state TEXT;
ALTER TABLE history_executions ADD COLUMN shard TEXT;

-- Triggers of one request may lie in one row: how many, and a digit for each that tells whether the owner has taken it (NULL:
-- none yet). NULL items: the row is one entry.
ALTER TABLE inbox ADD COLUMN items integer;
ALTER TABLE inbox ADD COLUMN taken text;
CREATE INDEX inbox_bulk ON inbox (partition, id) WHERE items IS NOT NULL;
