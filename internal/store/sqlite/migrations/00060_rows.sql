-- Forward only. The shard of an unsharded execution lies in its row: its state, and the rest as JSON. NULL: its shards lie in
-- the tables of shards, as those of earlier versions do.
--
-- +goose Up
ALTER TABLE executions ADD COLUMN shard_state TEXT;
ALTER TABLE executions ADD COLUMN shard TEXT;
ALTER TABLE history_executions ADD COLUMN shard_state TEXT;
ALTER TABLE history_executions ADD COLUMN shard TEXT;
