-- Logs of attempts, written outside of the engine.
--
-- +goose Up
-- How far the log of one attempt has come.
CREATE TABLE logs (
    execution     BLOB    NOT NULL,
    shard         INTEGER NOT NULL,
    token         INTEGER NOT NULL,
    namespace     TEXT    NOT NULL,
    attempt       INTEGER NOT NULL,
    next          INTEGER NOT NULL, -- number of the line that is wanted
    closed        INTEGER NOT NULL,
    bytes         INTEGER NOT NULL, -- kept
    dropped_lines INTEGER NOT NULL,
    dropped_bytes INTEGER NOT NULL,
    full          INTEGER NOT NULL, -- the limit was reached
    unsaid_lines  INTEGER NOT NULL, -- dropped by the limit, and not told by a line of the log yet
    unsaid_bytes  INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    PRIMARY KEY (execution, shard, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX logs_age ON logs (last_at);
CREATE INDEX logs_namespace_age ON logs (namespace, last_at);

-- Ids only rise, so that a reader's place stays right.
CREATE TABLE log_chunks (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    execution BLOB    NOT NULL,
    shard     INTEGER NOT NULL,
    token     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    first     INTEGER NOT NULL, -- number of the first line
    at        INTEGER NOT NULL,
    size      INTEGER NOT NULL, -- of the body, unpacked
    body      BLOB    NOT NULL
) STRICT;
CREATE INDEX log_chunks_execution ON log_chunks (execution, id);
CREATE INDEX log_chunks_shard ON log_chunks (execution, shard, id);
