-- Forward only. Instants are Unix milliseconds, durations milliseconds, JSON is text (jsonb refuses \u0000). Texts that are
-- compared are in collation "C", which sorts bytes as Go and SQLite do.
-- Rows that the owner of a partition writes and rows that people write never meet in one table, but for the inbox:
-- people insert there, the owner deletes.
-- Primary keys are made last where other indexes hold the key too: while a table is thought to be empty all of them cost the
-- planner the same, and then it takes the newest.
--
-- +goose Up
-- Marks the database as Takt's.
CREATE TABLE meta (
    key   text   COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);
INSERT INTO meta (key, value) VALUES ('takt', 1);

-- The fence of every commit.
CREATE TABLE partitions (
    id         integer PRIMARY KEY,
    owner      text    COLLATE "C" NOT NULL,
    epoch      bigint  NOT NULL,
    seq        bigint  NOT NULL,
    last_token bigint  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- A row of its own, so that a renewal never touches the row that a commit holds.
CREATE TABLE partition_beats (
    id   integer PRIMARY KEY,
    beat bigint  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE jobs (
    namespace  text    COLLATE "C" NOT NULL,
    name       text    COLLATE "C" NOT NULL,
    uid        uuid    NOT NULL UNIQUE,
    revision   bigint  NOT NULL, -- the newest
    partition  integer NOT NULL,
    disabled   boolean NOT NULL, -- of the newest revision: the due page leaves such jobs out
    created_at bigint  NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE job_revisions (
    uid      uuid   NOT NULL,
    revision bigint NOT NULL,
    labels   text,
    spec     text   NOT NULL,
    at       bigint NOT NULL,
    PRIMARY KEY (uid, revision)
);

CREATE TABLE request_keys (
    namespace text   COLLATE "C" NOT NULL,
    operation text   COLLATE "C" NOT NULL,
    key       text   COLLATE "C" NOT NULL,
    hash      text   COLLATE "C" NOT NULL,
    execution uuid   NOT NULL,
    at        bigint NOT NULL,
    PRIMARY KEY (namespace, operation, key)
);
CREATE INDEX request_keys_at ON request_keys (at);

-- Ids are never given twice, for callers wait for them.
CREATE TABLE inbox (
    id        bigint  GENERATED ALWAYS AS IDENTITY,
    partition integer NOT NULL,
    rank      integer NOT NULL, -- 0: overtakes (cancel), 1: the rest
    kind      text    COLLATE "C" NOT NULL,
    namespace text    COLLATE "C" NOT NULL,
    job       uuid,
    execution uuid,
    payload   text    NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX inbox_order ON inbox (partition, rank, id);
CREATE INDEX inbox_execution ON inbox (execution) WHERE execution IS NOT NULL;
ALTER TABLE inbox ADD PRIMARY KEY (id);

CREATE TABLE cursors (
    job       uuid    NOT NULL,
    schedule  text    COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    revision  bigint  NOT NULL,
    next      bigint  NOT NULL,
    last      bigint  NOT NULL,
    PRIMARY KEY (job, schedule)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX cursors_due ON cursors (partition, next, job, schedule) WHERE next > 0;

CREATE TABLE sessions (
    id          text    COLLATE "C" PRIMARY KEY,
    partition   integer NOT NULL,
    namespace   text    COLLATE "C" NOT NULL,
    pool        text    COLLATE "C" NOT NULL,
    worker      text    COLLATE "C" NOT NULL,
    incarnation text    COLLATE "C" NOT NULL,
    handlers    text,
    slots       integer NOT NULL,
    labels      text,
    build       text    COLLATE "C" NOT NULL,
    ttl         bigint  NOT NULL,
    beat        bigint  NOT NULL,
    margin      bigint  NOT NULL,
    opened_at   bigint  NOT NULL,
    unheard     integer NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX sessions_partition ON sessions (partition);

-- Live and ended executions are apart and have the same columns; ids sort by planned instant (R4), so lists need
-- no index on planned_at. Live tables are small, plain, and vacuumed by the adapter itself every few seconds.
CREATE TABLE executions (
    id          uuid    NOT NULL,
    partition   integer NOT NULL,
    namespace   text    COLLATE "C" NOT NULL,
    job         text    COLLATE "C" NOT NULL,
    job_uid     uuid    NOT NULL,
    revision    bigint  NOT NULL,
    pool        text    COLLATE "C" NOT NULL,
    handler     text    COLLATE "C" NOT NULL,
    trigger     text    COLLATE "C" NOT NULL,
    planned_at  bigint  NOT NULL,
    request_key text    COLLATE "C" NOT NULL,
    shard_total integer NOT NULL,
    state       text    COLLATE "C" NOT NULL,
    reason      text    COLLATE "C" NOT NULL,
    cancel      text    COLLATE "C" NOT NULL,
    round       integer NOT NULL,
    created_at  bigint  NOT NULL,
    started_at  bigint  NOT NULL,
    ended_at    bigint  NOT NULL,
    params      text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX executions_backlog ON executions (partition, planned_at, id) WHERE state = 'queued';
CREATE INDEX executions_active ON executions (partition) WHERE state NOT IN ('queued', 'scheduled');
CREATE INDEX executions_namespace ON executions (namespace, id);
CREATE INDEX executions_job ON executions (namespace, job, id);
CREATE INDEX executions_pool ON executions (namespace, pool, id);
CREATE INDEX executions_state ON executions (namespace, state, id) WHERE state NOT IN ('queued', 'scheduled');
ALTER TABLE executions ADD PRIMARY KEY (id);

CREATE TABLE shards (
    execution      uuid    NOT NULL,
    idx            integer NOT NULL,
    state          text    COLLATE "C" NOT NULL,
    reason         text    COLLATE "C" NOT NULL,
    token          bigint  NOT NULL,
    session        text    COLLATE "C" NOT NULL,
    worker         text    COLLATE "C" NOT NULL,
    closed         boolean NOT NULL,
    confirmed      boolean NOT NULL,
    attempt        integer NOT NULL,
    faults         integer NOT NULL,
    losses         integer NOT NULL,
    leased_at      bigint  NOT NULL,
    started_at     bigint  NOT NULL,
    ended_at       bigint  NOT NULL,
    timeout_at     bigint  NOT NULL,
    retry_at       bigint  NOT NULL,
    stop_by        bigint  NOT NULL,
    report_seq     bigint  NOT NULL,
    checkpoint     text,
    checkpoint_seq bigint  NOT NULL,
    done           bigint  NOT NULL,
    total          bigint  NOT NULL,
    note           text    COLLATE "C" NOT NULL,
    result         text,
    error          text,
    attempts       text,
    PRIMARY KEY (execution, idx)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- What only grows is cut into months, by the instant in the execution's id or by the instant of the commit; the adapter
-- makes a month when it is needed (months.go).
CREATE TABLE history_executions (
    id          uuid    NOT NULL,
    partition   integer NOT NULL,
    namespace   text    COLLATE "C" NOT NULL,
    job         text    COLLATE "C" NOT NULL,
    job_uid     uuid    NOT NULL,
    revision    bigint  NOT NULL,
    pool        text    COLLATE "C" NOT NULL,
    handler     text    COLLATE "C" NOT NULL,
    trigger     text    COLLATE "C" NOT NULL,
    planned_at  bigint  NOT NULL,
    request_key text    COLLATE "C" NOT NULL,
    shard_total integer NOT NULL,
    state       text    COLLATE "C" NOT NULL,
    reason      text    COLLATE "C" NOT NULL,
    cancel      text    COLLATE "C" NOT NULL,
    round       integer NOT NULL,
    created_at  bigint  NOT NULL,
    started_at  bigint  NOT NULL,
    ended_at    bigint  NOT NULL,
    params      text
) PARTITION BY RANGE (id);
CREATE INDEX history_executions_namespace ON history_executions (namespace, id);
CREATE INDEX history_executions_job ON history_executions (namespace, job, id);
CREATE INDEX history_executions_pool ON history_executions (namespace, pool, id);
CREATE INDEX history_executions_state ON history_executions (namespace, state, id) WHERE state <> 'succeeded';
CREATE INDEX history_executions_job_state ON history_executions (namespace, job, state, id) WHERE state <> 'succeeded';
ALTER TABLE history_executions ADD PRIMARY KEY (id);

CREATE TABLE history_shards (
    execution      uuid    NOT NULL,
    idx            integer NOT NULL,
    state          text    COLLATE "C" NOT NULL,
    reason         text    COLLATE "C" NOT NULL,
    token          bigint  NOT NULL,
    session        text    COLLATE "C" NOT NULL,
    worker         text    COLLATE "C" NOT NULL,
    closed         boolean NOT NULL,
    confirmed      boolean NOT NULL,
    attempt        integer NOT NULL,
    faults         integer NOT NULL,
    losses         integer NOT NULL,
    leased_at      bigint  NOT NULL,
    started_at     bigint  NOT NULL,
    ended_at       bigint  NOT NULL,
    timeout_at     bigint  NOT NULL,
    retry_at       bigint  NOT NULL,
    stop_by        bigint  NOT NULL,
    report_seq     bigint  NOT NULL,
    checkpoint     text,
    checkpoint_seq bigint  NOT NULL,
    done           bigint  NOT NULL,
    total          bigint  NOT NULL,
    note           text    COLLATE "C" NOT NULL,
    result         text,
    error          text,
    attempts       text,
    PRIMARY KEY (execution, idx)
) PARTITION BY RANGE (execution);

CREATE SEQUENCE decision_ids;
CREATE TABLE decisions (
    id        bigint NOT NULL DEFAULT nextval('decision_ids'),
    job       uuid   NOT NULL,
    namespace text   COLLATE "C" NOT NULL,
    name      text   COLLATE "C" NOT NULL,
    schedule  text   COLLATE "C" NOT NULL,
    kind      text   COLLATE "C" NOT NULL,
    reason    text   COLLATE "C" NOT NULL,
    "from"    bigint NOT NULL,
    "to"      bigint NOT NULL,
    count     bigint NOT NULL,
    at        bigint NOT NULL,
    PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE INDEX decisions_namespace ON decisions (namespace, id);
CREATE INDEX decisions_job ON decisions (namespace, name, id);

CREATE TABLE poison (
    id        bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition integer NOT NULL,
    seq       bigint  NOT NULL,
    at        bigint  NOT NULL,
    entry     bigint  NOT NULL,
    kind      text    NOT NULL,
    event     text,
    error     text    NOT NULL
);

CREATE TABLE journal (
    partition integer NOT NULL,
    seq       bigint  NOT NULL,
    epoch     bigint  NOT NULL,
    at        bigint  NOT NULL,
    facts     text    NOT NULL,
    PRIMARY KEY (partition, seq, at)
) PARTITION BY RANGE (at);

-- A guard in the midst of a commit that leaves in one write: where the number of rows is not the one that is wanted, it
-- ends the transaction. The codes are of class TK.
-- +goose StatementBegin
CREATE FUNCTION takt_guard(ok boolean, code text, detail text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF ok IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = 'takt: guard', DETAIL = coalesce(detail, '');
    END IF;
END $$;
-- +goose StatementEnd
