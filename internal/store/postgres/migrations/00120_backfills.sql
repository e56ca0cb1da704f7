-- Backfills, and the way from a planned instant to its decision.
--
-- +goose Up
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
