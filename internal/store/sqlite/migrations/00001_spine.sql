-- Forward only. Instants are Unix milliseconds, durations milliseconds, ids and uids BLOBs of 16 bytes, JSON is text.
-- Rows that the owner of a partition writes and rows that people write never meet in one table, but for the inbox:
-- people insert there, the owner deletes.
--
-- +goose Up
PRAGMA application_id = 1413565268; -- "TAKT"

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('ping', 0);

-- The fence of every commit.
CREATE TABLE partitions (
    id         INTEGER PRIMARY KEY,
    owner      TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    last_token INTEGER NOT NULL
) STRICT;

-- A row of its own, so that a renewal never touches the row that a commit holds.
CREATE TABLE partition_beats (
    id   INTEGER PRIMARY KEY,
    beat INTEGER NOT NULL
) STRICT;

CREATE TABLE jobs (
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    uid        BLOB    NOT NULL UNIQUE,
    revision   INTEGER NOT NULL, -- the newest
    partition  INTEGER NOT NULL,
    disabled   INTEGER NOT NULL, -- of the newest revision: the due page leaves such jobs out
    created_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_revisions (
    uid      BLOB    NOT NULL,
    revision INTEGER NOT NULL,
    labels   TEXT,
    spec     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (uid, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_keys (
    namespace TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    hash      TEXT    NOT NULL,
    execution BLOB    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (namespace, operation, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_keys_at ON request_keys (at);

-- Ids are never given twice, for callers wait for them.
CREATE TABLE inbox (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    partition INTEGER NOT NULL,
    rank      INTEGER NOT NULL, -- 0: overtakes (cancel), 1: the rest
    kind      TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    job       BLOB,
    execution BLOB,
    payload   TEXT    NOT NULL
) STRICT;
CREATE INDEX inbox_order ON inbox (partition, rank, id);
CREATE INDEX inbox_execution ON inbox (execution) WHERE execution IS NOT NULL;

CREATE TABLE cursors (
    job       BLOB    NOT NULL,
    schedule  TEXT    NOT NULL,
    partition INTEGER NOT NULL,
    revision  INTEGER NOT NULL,
    next      INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    PRIMARY KEY (job, schedule)
) STRICT, WITHOUT ROWID;
CREATE INDEX cursors_due ON cursors (partition, next, job, schedule) WHERE next > 0;

CREATE TABLE sessions (
    id          TEXT    PRIMARY KEY,
    partition   INTEGER NOT NULL,
    namespace   TEXT    NOT NULL,
    pool        TEXT    NOT NULL,
    worker      TEXT    NOT NULL,
    incarnation TEXT    NOT NULL,
    handlers    TEXT,
    slots       INTEGER NOT NULL,
    labels      TEXT,
    build       TEXT    NOT NULL,
    ttl         INTEGER NOT NULL,
    beat        INTEGER NOT NULL,
    margin      INTEGER NOT NULL,
    opened_at   INTEGER NOT NULL,
    unheard     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Live and ended executions are apart and have the same columns; ids sort by planned instant (R4), so lists need
-- no index on planned_at. params is the last column: a walk past rows then never reads what may be large.
CREATE TABLE executions (
    id          BLOB    PRIMARY KEY,
    partition   INTEGER NOT NULL,
    namespace   TEXT    NOT NULL,
    job         TEXT    NOT NULL,
    job_uid     BLOB    NOT NULL,
    revision    INTEGER NOT NULL,
    pool        TEXT    NOT NULL,
    handler     TEXT    NOT NULL,
    trigger     TEXT    NOT NULL,
    planned_at  INTEGER NOT NULL,
    request_key TEXT    NOT NULL,
    shard_total INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    cancel      TEXT    NOT NULL,
    round       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    params      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX executions_backlog ON executions (partition, planned_at, id) WHERE state = 'queued';
CREATE INDEX executions_active ON executions (partition) WHERE state NOT IN ('queued', 'scheduled');
CREATE INDEX executions_namespace ON executions (namespace, id);
CREATE INDEX executions_job ON executions (namespace, job, id);
CREATE INDEX executions_pool ON executions (namespace, pool, id);
CREATE INDEX executions_state ON executions (namespace, state, id) WHERE state NOT IN ('queued', 'scheduled');

CREATE TABLE shards (
    execution      BLOB    NOT NULL,
    idx            INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    token          INTEGER NOT NULL,
    session        TEXT    NOT NULL,
    worker         TEXT    NOT NULL,
    closed         INTEGER NOT NULL,
    confirmed      INTEGER NOT NULL,
    attempt        INTEGER NOT NULL,
    faults         INTEGER NOT NULL,
    losses         INTEGER NOT NULL,
    leased_at      INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    ended_at       INTEGER NOT NULL,
    timeout_at     INTEGER NOT NULL,
    retry_at       INTEGER NOT NULL,
    stop_by        INTEGER NOT NULL,
    report_seq     INTEGER NOT NULL,
    checkpoint     TEXT,
    checkpoint_seq INTEGER NOT NULL,
    done           INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    note           TEXT    NOT NULL,
    result         TEXT,
    error          TEXT,
    attempts       TEXT,
    PRIMARY KEY (execution, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE history_executions (
    id          BLOB    PRIMARY KEY,
    partition   INTEGER NOT NULL,
    namespace   TEXT    NOT NULL,
    job         TEXT    NOT NULL,
    job_uid     BLOB    NOT NULL,
    revision    INTEGER NOT NULL,
    pool        TEXT    NOT NULL,
    handler     TEXT    NOT NULL,
    trigger     TEXT    NOT NULL,
    planned_at  INTEGER NOT NULL,
    request_key TEXT    NOT NULL,
    shard_total INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    cancel      TEXT    NOT NULL,
    round       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    params      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX history_executions_namespace ON history_executions (namespace, id);
CREATE INDEX history_executions_job ON history_executions (namespace, job, id);
CREATE INDEX history_executions_pool ON history_executions (namespace, pool, id);
CREATE INDEX history_executions_state ON history_executions (namespace, state, id) WHERE state <> 'succeeded';
CREATE INDEX history_executions_job_state ON history_executions (namespace, job, state, id) WHERE state <> 'succeeded';

CREATE TABLE history_shards (
    execution      BLOB    NOT NULL,
    idx            INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    token          INTEGER NOT NULL,
    session        TEXT    NOT NULL,
    worker         TEXT    NOT NULL,
    closed         INTEGER NOT NULL,
    confirmed      INTEGER NOT NULL,
    attempt        INTEGER NOT NULL,
    faults         INTEGER NOT NULL,
    losses         INTEGER NOT NULL,
    leased_at      INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    ended_at       INTEGER NOT NULL,
    timeout_at     INTEGER NOT NULL,
    retry_at       INTEGER NOT NULL,
    stop_by        INTEGER NOT NULL,
    report_seq     INTEGER NOT NULL,
    checkpoint     TEXT,
    checkpoint_seq INTEGER NOT NULL,
    done           INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    note           TEXT    NOT NULL,
    result         TEXT,
    error          TEXT,
    attempts       TEXT,
    PRIMARY KEY (execution, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions (
    id        INTEGER PRIMARY KEY,
    job       BLOB    NOT NULL,
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    schedule  TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    "from"    INTEGER NOT NULL,
    "to"      INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE INDEX decisions_namespace ON decisions (namespace, id);
CREATE INDEX decisions_job ON decisions (namespace, name, id);

CREATE TABLE poison (
    id        INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    entry     INTEGER NOT NULL,
    kind      TEXT    NOT NULL,
    event     TEXT,
    error     TEXT    NOT NULL
) STRICT;

CREATE TABLE journal (
    partition INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    facts     TEXT    NOT NULL,
    PRIMARY KEY (partition, seq)
) STRICT, WITHOUT ROWID;
