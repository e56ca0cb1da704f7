-- Jobs that run after others.
--
-- +goose Up
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
