-- Calendars, and which schedules keep to them.
--
-- +goose Up
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
