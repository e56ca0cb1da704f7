-- Calendars, and which schedules keep to them.
--
-- +goose Up
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
