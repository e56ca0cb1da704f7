-- How long what is over is kept.
--
-- +goose Up
-- Milliseconds; 0: the server's default.
CREATE TABLE retention (
    namespace  text   COLLATE "C" PRIMARY KEY,
    executions bigint NOT NULL,
    logs       bigint NOT NULL
);

-- Executions that are gone from history, and whose shards are still to go.
CREATE TABLE swept_executions (
    id uuid PRIMARY KEY
);
