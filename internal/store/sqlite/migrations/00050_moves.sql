-- Jobs that move between partitions.
--
-- +goose Up
-- The partition that a job was created in makes its first cursors (and those after a time without any). It never changes.
ALTER TABLE jobs ADD COLUMN home INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deleted_jobs ADD COLUMN home INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET home = partition;
UPDATE deleted_jobs SET home = partition;

-- partition: of the pool in the newest revision.
DROP VIEW all_jobs;
CREATE VIEW all_jobs (uid, namespace, name, revision, partition, home, created_at, pause, deletion) AS
    SELECT uid, namespace, name, revision, partition, home, created_at, pause, NULL FROM jobs
    UNION ALL
    SELECT uid, namespace, name, revision, partition, home, created_at, pause, deletion FROM deleted_jobs;
