-- Who changed a job and why, pauses, deleted jobs.
--
-- +goose Up
ALTER TABLE jobs ADD COLUMN pause text; -- JSON; NULL: not asked for since the last resume
ALTER TABLE job_revisions ADD COLUMN author text NOT NULL DEFAULT '';
ALTER TABLE job_revisions ADD COLUMN reason text NOT NULL DEFAULT '';
ALTER TABLE cursors ADD COLUMN held bigint NOT NULL DEFAULT 0; -- first instant of a pause that is not decided yet

-- Deleted jobs stand apart, so that their names are free; their revisions stay for what they started.
CREATE TABLE deleted_jobs (
    uid        uuid    NOT NULL PRIMARY KEY,
    namespace  text    COLLATE "C" NOT NULL,
    name       text    COLLATE "C" NOT NULL,
    revision   bigint  NOT NULL,
    partition  integer NOT NULL,
    created_at bigint  NOT NULL,
    pause      text,
    deletion   text    NOT NULL, -- JSON: when, by whom, why, and what becomes of its executions
    deleted_at bigint  NOT NULL
);
CREATE INDEX deleted_jobs_name ON deleted_jobs (namespace, name, deleted_at);

CREATE VIEW all_jobs (uid, namespace, name, revision, created_at, pause, deletion) AS
    SELECT uid, namespace, name, revision, created_at, pause, NULL::text FROM jobs
    UNION ALL
    SELECT uid, namespace, name, revision, created_at, pause, deletion FROM deleted_jobs;
