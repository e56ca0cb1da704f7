-- Shards in blocks.
--
-- +goose Up
-- Many shards of an execution in one row: a row with a block has nothing else of meaning but its place, and an index
-- below zero, one for each block. The value is what store.Block writes.
ALTER TABLE shards ADD COLUMN block BLOB;
ALTER TABLE history_shards ADD COLUMN block BLOB;
