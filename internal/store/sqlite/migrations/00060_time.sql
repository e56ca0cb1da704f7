-- What jobs do in time: calendars, misfire policies, requests for later instants, overlap, dependencies, backfills; and shards
-- in the rows of their executions. One release is one version: a server meets a database at most one ahead.
--
-- +goose Up

-- The shard of an unsharded execution lies in its row: its state, and the rest as JSON. NULL: its shards lie in
-- the tables of shards, as those of earlier versions do.
ALTER TABLE executions ADD COLUMN shard_state TEXT;
ALTER TABLE executions ADD COLUMN shard TEXT;
ALTER TABLE history_executions ADD COLUMN shard_state TEXT;
ALTER TABLE history_executions ADD COLUMN shard TEXT;

-- Triggers of one request may lie in one row: how many, and a digit for each that tells whether the owner has taken it (NULL:
-- none yet). NULL items: the row is one entry.
ALTER TABLE inbox ADD COLUMN items integer;
ALTER TABLE inbox ADD COLUMN taken text;
CREATE INDEX inbox_bulk ON inbox (partition, id) WHERE items IS NOT NULL;

-- Calendars, and which schedules keep to them.
--
-- A name keeps its row when its calendar is deleted, so that revisions go on rising.
CREATE TABLE calendars (
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    there      INTEGER NOT NULL, -- 0: deleted
    created_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE calendar_revisions (
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    revision  INTEGER NOT NULL,
    labels    TEXT,
    spec      TEXT,             -- JSON; NULL: the deletion
    at        INTEGER NOT NULL,
    author    TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    PRIMARY KEY (namespace, name, revision)
) STRICT;

-- What the newest revisions of jobs name.
CREATE TABLE job_calendars (
    namespace TEXT NOT NULL,
    calendar  TEXT NOT NULL,
    name      TEXT NOT NULL, -- of the job
    job       BLOB NOT NULL,
    PRIMARY KEY (namespace, calendar, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_calendars_job ON job_calendars (job);

ALTER TABLE cursors ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0; -- of the calendars that next was computed under

-- What schedules owe of the instants that nobody planned in time, how often they ran, and how often their job failed in a row.
ALTER TABLE cursors ADD COLUMN owed INTEGER NOT NULL DEFAULT 0; -- first of the instants that will run yet
ALTER TABLE cursors ADD COLUMN owed_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN failures INTEGER NOT NULL DEFAULT 0; -- written apart from the rest of the row
CREATE INDEX cursors_owed ON cursors (partition, job, schedule) WHERE owed > 0;

-- Executions that wait for the instant that they were asked for.
CREATE INDEX executions_waiting ON executions (partition, planned_at, id) WHERE state = 'scheduled' AND reason = 'not_due';

-- What becomes of executions of one job that overlap.
--
-- Which executions a new owner has to know of before it plans, although it reads neither what is queued nor what is scheduled.
CREATE INDEX executions_turns ON executions (partition, job_uid, planned_at, id, state, reason, round)
    WHERE (state = 'scheduled' AND reason IN ('overlap', 'overlap_replace')
    OR state = 'queued' AND (trigger <> 'request' AND reason <> 'overlap_free' OR reason = 'overlap_turn'));

-- Jobs that run after others.
--
-- Who depends on whom, by the newest revisions. A job whose schedule counts from its own end depends on itself.
CREATE TABLE job_dependencies (
    parent BLOB NOT NULL,
    child  BLOB NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_dependencies_child ON job_dependencies (child);

-- By which executions of its parents an execution was decided.
CREATE TABLE execution_parents (
    execution BLOB PRIMARY KEY,
    parents   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX executions_upstream ON executions (job_uid, partition) WHERE state = 'scheduled' AND reason = 'upstream';
CREATE INDEX executions_awaiting ON executions (partition, id) WHERE state = 'scheduled' AND reason = 'upstream';

-- Backfills, and the way from a planned instant to its decision.
--
-- What people asked for; they alone write it.
CREATE TABLE backfills (
    id        BLOB    NOT NULL PRIMARY KEY, -- as of an execution that was asked for: sorts by time
    partition INTEGER NOT NULL,             -- of the pool in the revision that is run
    namespace TEXT    NOT NULL,
    job       TEXT    NOT NULL,
    uid       BLOB    NOT NULL,
    revision  INTEGER NOT NULL,
    "from"    INTEGER NOT NULL,             -- first and last instant, both included
    "to"      INTEGER NOT NULL,
    spec      TEXT    NOT NULL,             -- JSON: how, who and why
    at        INTEGER NOT NULL,
    cancel    TEXT                          -- JSON; NULL: nobody asked for its end
) STRICT, WITHOUT ROWID;
CREATE INDEX backfills_namespace ON backfills (namespace, id);
CREATE INDEX backfills_job ON backfills (uid, id);

-- How far they have come; the owner of the partition alone writes it.
CREATE TABLE backfill_progress (
    id        BLOB    NOT NULL PRIMARY KEY,
    partition INTEGER NOT NULL,
    state     TEXT    NOT NULL,
    progress  TEXT    NOT NULL -- JSON
) STRICT, WITHOUT ROWID;
CREATE INDEX backfill_progress_live ON backfill_progress (partition) WHERE state IN ('running', 'cancelling');

-- Ranges of one schedule do not overlap: the first that ends at or behind an instant is the one that may hold it.
CREATE INDEX decisions_instant ON decisions (job, schedule, "to");
