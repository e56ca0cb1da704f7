-- The nodes that share a database.
--
-- +goose Up
CREATE TABLE servers (
    incarnation text    COLLATE "C" PRIMARY KEY,
    name        text    COLLATE "C" NOT NULL,
    address     text    NOT NULL,
    key         text    NOT NULL,
    build       text    NOT NULL,
    level       integer NOT NULL,
    unreachable text    NOT NULL, -- JSON list of incarnations
    sits_out    boolean NOT NULL,
    beat        bigint  NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The lineage (Store.Lineage) on which an owner has waited for what workers held meanwhile.
ALTER TABLE partitions ADD COLUMN lineage text COLLATE "C" NOT NULL DEFAULT '';
