package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qServerPut = statement(`INSERT INTO servers (incarnation, name, address, key, build, level, unreachable, sits_out, beat)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)
		ON CONFLICT (incarnation) DO UPDATE SET name = $2, address = $3, key = $4, build = $5, level = $6, unreachable = $7, sits_out = $8,
			beat = servers.beat + 1 RETURNING beat`)
	qServers = statement(`SELECT incarnation, name, address, key, build, level, unreachable, sits_out, beat FROM servers ORDER BY incarnation`)

	qServerRemove = statement(`DELETE FROM servers WHERE incarnation = $1 AND ($2 = 0 OR beat = $2)`)

	qClock   = statement(`SELECT clock_timestamp()`)
	qLineage = statement(`SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || '/' ||
(SELECT oid FROM pg_database WHERE datname = current_database())::text || '.' || 'partitions'::regclass::oid::text`)
)

var (
	_ store.Timekeeper = (*Store)(nil)
	_ store.Lineage    = (*Store)(nil)
)

// PutServer implements store.Servers.
func (s *Store) PutServer(ctx context.Context, v store.Server) (beat int64, err error) {
	for _, text := range append([]string{v.Incarnation, v.Name, v.Address, v.Key, v.Build}, v.Unreachable...) {
		if !store.Clean(text) || v.Incarnation == "" {
			return 0, job.Errorf(job.KindRejected, "bad_server", "%q describes no server", v.Incarnation)
		}
	}
	marks, err := encode(append([]string{}, v.Unreachable...))
	if err != nil {
		return 0, err
	}
	err = s.writeInFew(ctx, s.keeper, "put server", func(w *link) error {
		_, err := w.one(qServerPut, []any{v.Incarnation, v.Name, v.Address, v.Key, v.Build, v.Level, marks, v.SitsOut}, &beat)
		return err
	})
	if err != nil {
		return 0, err
	}
	return beat, nil
}

// Servers implements store.Servers.
func (s *Store) Servers(ctx context.Context) (all []store.Server, err error) {
	err = s.askOf(ctx, s.keeper, "read servers", question{qServers, nil, func(rows pgx.Rows) error {
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
	}})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// RemoveServer implements store.Servers.
func (s *Store) RemoveServer(ctx context.Context, incarnation string, beat int64) error {
	return s.writeInFew(ctx, s.keeper, "remove server", func(w *link) error {
		_, err := w.exec(qServerRemove, incarnation, beat)
		return err
	})
}

// DatabaseTime implements store.Timekeeper. It is one round trip on the connection itself, so that what it costs says how
// exact it is.
func (s *Store) DatabaseTime(ctx context.Context) (time.Time, error) {
	const op = "read the database's clock"
	c, err := s.keeper.Acquire(ctx)
	if err != nil {
		return time.Time{}, classify(op, err)
	}
	defer s.keeper.release(c)
	var at time.Time
	if err := c.QueryRow(ctx, texts[qClock]).Scan(&at); err != nil {
		return at, s.failed(op, err)
	}
	return at, nil
}

// Lineage implements store.Lineage: the cluster's identity and its timeline, which a promotion and a point-in-time
// recovery raise, and the identities of the database and of the table, which are new where a dump was restored.
func (s *Store) Lineage(ctx context.Context) (lineage string, err error) {
	err = s.askOf(ctx, s.keeper, "read the lineage", question{qLineage, nil, func(rows pgx.Rows) error { return rows.Scan(&lineage) }})
	return lineage, err
}

func lineageOf(l *link) (lineage string, err error) {
	_, err = l.one(qLineage, nil, &lineage)
	return lineage, err
}
