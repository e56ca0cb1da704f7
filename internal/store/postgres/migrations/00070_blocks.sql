-- Shards in blocks.
--
-- +goose Up
-- Many shards of an execution in one row: a row with a block has nothing else of meaning but its place, and an index
-- below zero, one for each block. The value is what store.Block writes; it fits its page, and stays in it.
ALTER TABLE shards ADD COLUMN block bytea;
ALTER TABLE history_shards ADD COLUMN block bytea;
ALTER TABLE shards ALTER COLUMN block SET STORAGE MAIN;
ALTER TABLE history_shards ALTER COLUMN block SET STORAGE MAIN;
