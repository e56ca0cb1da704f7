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
    namespace  text    COLLATE "C" NOT NULL,
    name       text    COLLATE "C" NOT NULL,
    revision   bigint  NOT NULL,
    there      boolean NOT NULL, -- false: deleted
    created_at bigint  NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE calendar_revisions (
    namespace text   COLLATE "C" NOT NULL,
    name      text   COLLATE "C" NOT NULL,
    revision  bigint NOT NULL,
    labels    text,
    spec      text,            -- JSON; NULL: the deletion
    at        bigint NOT NULL,
    author    text   NOT NULL,
    reason    text   NOT NULL,
    PRIMARY KEY (namespace, name, revision)
);

-- What the newest revisions of jobs name.
CREATE TABLE job_calendars (
    namespace text COLLATE "C" NOT NULL,
    calendar  text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL, -- of the job
    job       uuid NOT NULL,
    PRIMARY KEY (namespace, calendar, name)
);
CREATE INDEX job_calendars_job ON job_calendars (job);

ALTER TABLE cursors ADD COLUMN stamp bigint NOT NULL DEFAULT 0; -- of the calendars that next was computed under

-- What schedules owe of the instants that nobody planned in time, how often they ran, and how often their job failed in a row.
ALTER TABLE cursors ADD COLUMN owed bigint NOT NULL DEFAULT 0; -- first of the instants that will run yet
ALTER TABLE cursors ADD COLUMN owed_to bigint NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN runs bigint NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN failures integer NOT NULL DEFAULT 0; -- written apart from the rest of the row
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
    parent uuid NOT NULL,
    child  uuid NOT NULL,
    PRIMARY KEY (parent, child)
);
CREATE INDEX job_dependencies_child ON job_dependencies (child);

-- By which executions of its parents an execution was decided.
CREATE TABLE execution_parents (
    execution uuid PRIMARY KEY,
    parents   text NOT NULL
);

CREATE INDEX executions_upstream ON executions (job_uid, partition) WHERE state = 'scheduled' AND reason = 'upstream';
CREATE INDEX executions_awaiting ON executions (partition, id) WHERE state = 'scheduled' AND reason = 'upstream';

-- Backfills, and the way from a planned instant to its decision.
--
-- What people asked for; they alone write it.
CREATE TABLE backfills (
    id        uuid    NOT NULL,    -- as of an execution that was asked for: sorts by time
    partition integer NOT NULL,    -- of the pool in the revision that is run
    namespace text COLLATE "C" NOT NULL,
    job       text COLLATE "C" NOT NULL,
    uid       uuid    NOT NULL,
    revision  bigint  NOT NULL,
    "from"    bigint  NOT NULL,    -- first and last instant, both included
    "to"      bigint  NOT NULL,
    spec      text    NOT NULL,    -- JSON: how, who and why
    at        bigint  NOT NULL,
    cancel    text                 -- JSON; NULL: nobody asked for its end
);
CREATE INDEX backfills_namespace ON backfills (namespace, id);
CREATE INDEX backfills_job ON backfills (uid, id);
ALTER TABLE backfills ADD PRIMARY KEY (id);

-- How far they have come; the owner of the partition alone writes it.
CREATE TABLE backfill_progress (
    id        uuid    PRIMARY KEY,
    partition integer NOT NULL,
    state     text    NOT NULL,
    progress  text    NOT NULL -- JSON
);
CREATE INDEX backfill_progress_live ON backfill_progress (partition) WHERE state IN ('running', 'cancelling');

-- Ranges of one schedule do not overlap: the first that ends at or behind an instant is the one that may hold it.
CREATE INDEX decisions_instant ON decisions (job, schedule, "to");
