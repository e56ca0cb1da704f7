package sqlite

import (
	"context"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
)

// A data directory has one server at a time, so that none can wake beside another: unlike PostgreSQL nothing but the server
// itself has to keep the floor.
var (
	qFloor     = statement(`SELECT ifnull(max(value), 0) FROM meta WHERE key = 'floor'`)
	qFloorPut  = statement(`INSERT INTO meta (key, value) VALUES ('floor', ?) ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value) RETURNING value`)
	qFloorMark = statement(`INSERT INTO goose_db_version (version_id, is_applied) SELECT ?1, 1 WHERE NOT EXISTS (SELECT 1 FROM goose_db_version WHERE version_id = ?1)`)
)

// RaiseFloor implements store.Partitions.
func (s *Store) RaiseFloor(ctx context.Context, level int) (floor int, err error) {
	const op = "raise the floor"
	err = s.read(ctx, op, func(r *link) error {
		_, err := r.one(qFloor, nil, &floor)
		return err
	})
	if err != nil || floor >= level {
		return floor, err
	}
	err = s.write(ctx, rankOwnership, op, func(w *link) error {
		if _, err := w.one(qFloorPut, []any{int64(level)}, &floor); err != nil || floor < engine.LevelLots {
			return err
		}
		_, err := w.exec(qFloorMark, int64(store.FloorVersion))
		return err
	})
	if err != nil {
		return 0, err
	}
	return floor, nil
}

// checkFloor refuses an owner that is too old.
func (s *Store) checkFloor(w *link, level int) error {
	var floor int
	if _, err := w.one(qFloor, nil, &floor); err != nil {
		return err
	}
	if floor > 0 && level < floor && !s.skip.floor {
		return store.TooOld(level, floor)
	}
	return nil
}
