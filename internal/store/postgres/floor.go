package postgres

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
)

var (
	qFloor     = statement(`SELECT coalesce(max(value), 0) FROM meta WHERE key = 'floor'`)
	qFloorPut  = statement(`INSERT INTO meta AS m (key, value) VALUES ('floor', $1) ON CONFLICT (key) DO UPDATE SET value = greatest(m.value, excluded.value) RETURNING value`)
	qFloorMark = statement(`INSERT INTO ` + versionTable + ` (version_id, is_applied) SELECT $1::bigint, true WHERE NOT EXISTS (SELECT 1 FROM ` + versionTable + ` WHERE version_id = $1::bigint)`)
	qFloorKept = statement(`SELECT count(*) FROM pg_trigger WHERE tgrelid = 'partitions'::regclass AND tgname = 'takt_floor'`)

	// What the trigger reads, until the transaction ends.
	qLevel = statement(`SELECT set_config('takt.level', $1, true)`)
)

// guardFloor is the SQLSTATE of takt_floor.
const guardFloor = "TK007"

// The floor is kept by the database itself: a server that was frozen since before there were floors asks nobody when it takes a
// partition. It says nothing of its level, which is 0 then, and finds the message in its log.
const (
	floorFunction = `CREATE OR REPLACE FUNCTION takt_floor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    floor bigint := (SELECT value FROM meta WHERE key = 'floor');
BEGIN
    IF coalesce(nullif(current_setting('takt.level', true), '')::integer, 0) < floor THEN
        RAISE EXCEPTION USING ERRCODE = '` + guardFloor + `', DETAIL = floor,
            MESSAGE = 'takt: this server is too old for what newer ones have written, and takes no partition any more: end it, and start the newer version';
    END IF;
    RETURN NEW;
END $$`
	floorTrigger = `CREATE TRIGGER takt_floor BEFORE UPDATE OF owner ON partitions FOR EACH ROW WHEN (NEW.owner <> '') EXECUTE FUNCTION takt_floor()`
	// The trigger needs a lock that commits must not wait for behind this: a commit that was left half sent holds the other one.
	floorPatience = `SET LOCAL lock_timeout = '100ms'`
)

// RaiseFloor implements store.Partitions.
func (s *Store) RaiseFloor(ctx context.Context, level int) (floor int, err error) {
	const op = "raise the floor"
	err = s.askOf(ctx, s.keeper, op, question{qFloor, nil, func(rows pgx.Rows) error { return rows.Scan(&floor) }})
	if err != nil || floor >= level {
		return floor, err
	}
	err = s.writeOn(ctx, s.takers, op, func(w *link) error {
		if _, err := w.one(qFloorPut, []any{level}, &floor); err != nil {
			return err
		}
		var kept int
		if _, err := w.one(qFloorKept, nil, &kept); err != nil {
			return err
		}
		if kept == 0 {
			for _, text := range []string{floorPatience, floorFunction, floorTrigger} {
				if _, err := w.conn.Exec(w.ctx, text); err != nil {
					return err
				}
			}
		}
		if floor < engine.LevelLots {
			return nil
		}
		_, err := w.exec(qFloorMark, store.FloorVersion)
		return err
	})
	if err != nil {
		return 0, err
	}
	return floor, nil
}

// levelIs tells the trigger what the owner that the transaction is about knows.
func (s *Store) levelIs(level int) question {
	if s.skip.floor {
		level = math.MaxInt32
	}
	return question{qLevel, []any{strconv.Itoa(level)}, nil}
}

// belowFloor makes what the trigger says the refusal of the contract.
func belowFloor(err error, level int) error {
	pg, is := errors.AsType[*pgconn.PgError](err)
	if !is || pg.Code != guardFloor {
		return err
	}
	floor, _ := strconv.Atoi(pg.Detail) // the trigger writes a number
	return store.TooOld(level, floor)
}
