-- Who changed a job and why, pauses, deleted jobs.
--
-- +goose Up
ALTER TABLE jobs ADD COLUMN pause TEXT; -- JSON; NULL: not asked for since the last resume
ALTER TABLE job_revisions ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE job_revisions ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE cursors ADD COLUMN held INTEGER NOT NULL DEFAULT 0; -- first instant of a pause that is not decided yet

-- Deleted jobs stand apart, so that their names are free; their revisions stay for what they started.
CREATE TABLE deleted_jobs (
    uid        BLOB    NOT NULL PRIMARY KEY,
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    partition  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    pause      TEXT,
    deletion   TEXT    NOT NULL, -- JSON: when, by whom, why, and what becomes of its executions
    deleted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deleted_jobs_name ON deleted_jobs (namespace, name, deleted_at);

CREATE VIEW all_jobs (uid, namespace, name, revision, created_at, pause, deletion) AS
    SELECT uid, namespace, name, revision, created_at, pause, NULL FROM jobs
    UNION ALL
    SELECT uid, namespace, name, revision, created_at, pause, deletion FROM deleted_jobs;
