package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qServerPut = statement(`INSERT INTO servers (incarnation, name, address, key, build, level, unreachable, sits_out, beat)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1)
		ON CONFLICT (incarnation) DO UPDATE SET name = ?2, address = ?3, key = ?4, build = ?5, level = ?6, unreachable = ?7, sits_out = ?8,
			beat = beat + 1 RETURNING beat`)
	qServers = statement(`SELECT incarnation, name, address, key, build, level, unreachable, sits_out, beat FROM servers ORDER BY incarnation`)

	qServerRemove = statement(`DELETE FROM servers WHERE incarnation = ?1 AND (?2 = 0 OR beat = ?2)`)

	qSettlePartition = statement(`UPDATE partitions SET lineage = ? WHERE id = ? AND owner = ? AND owner <> '' AND epoch = ?`)

	qLineage = statement(`SELECT ifnull(max(value), 0) FROM meta WHERE key = 'restored'`)
)

// PutServer implements store.Servers.
func (s *Store) PutServer(ctx context.Context, v store.Server) (beat int64, err error) {
	for _, text := range append([]string{v.Incarnation, v.Name, v.Address, v.Key, v.Build}, v.Unreachable...) {
		if !store.Clean(text) || v.Incarnation == "" {
			return 0, job.Errorf(job.KindRejected, "bad_server", "%q describes no server", v.Incarnation)
		}
	}
	marks, err := json.Marshal(append([]string{}, v.Unreachable...))
	if err != nil {
		return 0, job.Errorf(job.KindRejected, "bad_server", "the row of %q cannot be written", v.Incarnation).WithCause(err)
	}
	err = s.write(ctx, rankOwnership, "put server", func(w *link) error {
		_, err := w.one(qServerPut, []any{v.Incarnation, v.Name, v.Address, v.Key, v.Build, int64(v.Level), string(marks), v.SitsOut}, &beat)
		return err
	})
	if err != nil {
		return 0, err
	}
	return beat, nil
}

// Servers implements store.Servers.
func (s *Store) Servers(ctx context.Context) (all []store.Server, err error) {
	err = s.read(ctx, "read servers", func(r *link) error {
		return r.each(qServers, nil, func(rows *sql.Rows) error {
			var v store.Server
			var marks []byte
			if err := rows.Scan(&v.Incarnation, &v.Name, &v.Address, &v.Key, &v.Build, &v.Level, &marks, &v.SitsOut, &v.Beat); err != nil {
				return err
			}
			if err := json.Unmarshal(marks, &v.Unreachable); err != nil {
				return err
			}
			if len(v.Unreachable) == 0 {
				v.Unreachable = nil
			}
			all = append(all, v)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// RemoveServer implements store.Servers.
func (s *Store) RemoveServer(ctx context.Context, incarnation string, beat int64) error {
	return s.write(ctx, rankOwnership, "remove server", func(w *link) error {
		_, err := w.exec(qServerRemove, incarnation, beat)
		return err
	})
}

// SettlePartition implements store.Partitions.
func (s *Store) SettlePartition(ctx context.Context, f store.Fence, lineage string) error {
	if !store.Clean(lineage) {
		return job.Errorf(job.KindRejected, "bad_lineage", "%q names no lineage", lineage)
	}
	return s.write(ctx, rankOwnership, "settle partition", func(w *link) error {
		n, err := w.exec(qSettlePartition, lineage, int64(f.Partition), f.Owner, int64(f.Epoch))
		if err == nil && n == 0 {
			err = fenced("fence", "partition %d is not owned by %q under epoch %d any more", f.Partition, f.Owner, f.Epoch)
		}
		return err
	})
}

var _ store.Lineage = (*Store)(nil)

// Lineage implements store.Lineage: how often this file was restored from a backup.
func (s *Store) Lineage(ctx context.Context) (lineage string, err error) {
	err = s.read(ctx, "read the lineage", func(r *link) error {
		_, err := r.one(qLineage, nil, &lineage)
		return err
	})
	return lineage, err
}
