-- Executions that are granted lie in lots.
--
-- +goose Up
-- The unsharded executions that one commit grants, as far as they are alike: what differs as arrays, the rest once. gone has a
-- bit for each, set when it has ended or moved to a row of its own; the row goes with the last. An update of it leaves the
-- arrays where they are.
CREATE TABLE lots (
    partition    integer  NOT NULL,
    seq          bigint   NOT NULL, -- of the commit that wrote it
    part         integer  NOT NULL, -- of that commit's
    namespace    text     COLLATE "C" NOT NULL,
    job          text     COLLATE "C" NOT NULL,
    job_uid      uuid     NOT NULL,
    revision     bigint   NOT NULL,
    pool         text     COLLATE "C" NOT NULL,
    handler      text     COLLATE "C" NOT NULL,
    trigger      text     COLLATE "C" NOT NULL,
    shard_total  integer  NOT NULL,
    state        text     COLLATE "C" NOT NULL,
    reason       text     COLLATE "C" NOT NULL,
    cancel       text     COLLATE "C" NOT NULL,
    round        integer  NOT NULL,
    shard_state  text     COLLATE "C" NOT NULL,
    first        uuid     NOT NULL, -- lowest and highest id
    last         uuid     NOT NULL,
    remaining    integer  NOT NULL,
    gone         bytea    NOT NULL,
    ids          uuid[]   NOT NULL,
    planned_at   bigint[] NOT NULL,
    request_keys text[]   NOT NULL,
    params       text[]   NOT NULL,
    created_at   bigint[] NOT NULL,
    started_at   bigint[] NOT NULL,
    ended_at     bigint[] NOT NULL,
    shards       text[]   NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lots_last ON lots (last);
ALTER TABLE lots ADD PRIMARY KEY (partition, seq, part);
