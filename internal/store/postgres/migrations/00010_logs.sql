-- Logs of attempts, written outside of the engine.
--
-- +goose Up
-- How far the log of one attempt has come.
CREATE TABLE logs (
    execution     uuid    NOT NULL,
    shard         integer NOT NULL,
    token         bigint  NOT NULL,
    namespace     text    COLLATE "C" NOT NULL,
    attempt       integer NOT NULL,
    next          bigint  NOT NULL, -- number of the line that is wanted
    closed        boolean NOT NULL,
    bytes         bigint  NOT NULL, -- kept
    dropped_lines bigint  NOT NULL,
    dropped_bytes bigint  NOT NULL,
    "full"        integer NOT NULL, -- 0: there is room; 1: the limit was reached, and said; 2: it was reached
    unsaid_lines  bigint  NOT NULL, -- dropped by the limit, and not told by a line of the log yet
    unsaid_bytes  bigint  NOT NULL,
    last_at       bigint  NOT NULL,
    PRIMARY KEY (execution, shard, token)
) PARTITION BY RANGE (execution);
CREATE INDEX logs_age ON logs (last_at);
CREATE INDEX logs_namespace_age ON logs (namespace, last_at);

-- Ids of one execution only rise, so that a reader's place stays right: whoever appends holds a lock of the execution.
CREATE SEQUENCE log_chunk_ids;
CREATE TABLE log_chunks (
    id        bigint  NOT NULL DEFAULT nextval('log_chunk_ids'),
    execution uuid    NOT NULL,
    shard     integer NOT NULL,
    token     bigint  NOT NULL,
    attempt   integer NOT NULL,
    first     bigint  NOT NULL, -- number of the first line
    at        bigint  NOT NULL,
    size      integer NOT NULL, -- of the body, unpacked
    body      bytea   NOT NULL,
    PRIMARY KEY (execution, id)
) PARTITION BY RANGE (execution);
CREATE INDEX log_chunks_shard ON log_chunks (execution, shard, id);
