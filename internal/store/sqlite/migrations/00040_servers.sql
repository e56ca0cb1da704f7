-- The nodes that share a database.
--
-- +goose Up
CREATE TABLE servers (
    incarnation TEXT    PRIMARY KEY,
    name        TEXT    NOT NULL,
    address     TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    build       TEXT    NOT NULL,
    level       INTEGER NOT NULL,
    unreachable TEXT    NOT NULL, -- JSON list of incarnations
    sits_out    INTEGER NOT NULL,
    beat        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The lineage (how often the file was restored) on which an owner has waited for what workers held meanwhile. A mark
-- that is there now is one that nobody has waited for.
ALTER TABLE partitions ADD COLUMN lineage TEXT NOT NULL DEFAULT '0';
