-- How long what is over is kept.
--
-- +goose Up
-- Milliseconds; 0: the server's default.
CREATE TABLE retention (
    namespace  TEXT    PRIMARY KEY,
    executions INTEGER NOT NULL,
    logs       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Executions that are gone from history, and whose shards are still to go.
CREATE TABLE swept_executions (
    id BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;
