-- Backfills, and the way from a planned instant to its decision.
--
-- +goose Up
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
