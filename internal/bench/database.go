package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// database counts what a PostgreSQL database is asked for.
type database struct {
	conn *pgx.Conn
	here int // process id of its postmaster, when it runs on this machine; 0: not known
}

// DatabaseMeter is a Meter that holds a connection.
type DatabaseMeter interface {
	Meter
	Close(ctx context.Context) error
}

// Database opens a meter of the database that dsn names.
func Database(ctx context.Context, dsn string) (DatabaseMeter, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("connect to the database to count what it does: %w", err)
	}
	d := &database{conn: conn}
	var backend int
	var local bool
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid(), coalesce(inet_server_addr() = inet_client_addr(), true)`).Scan(&backend, &local)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask the database who it is: %w", err), conn.Close(ctx))
	}
	if local {
		d.here = parentOf(backend)
	}
	return d, nil
}

// Close ends the connection.
func (d *database) Close(ctx context.Context) error { return d.conn.Close(ctx) }

// Read implements Meter.
func (d *database) Read(ctx context.Context) (map[string]float64, error) {
	// Backends tell their counts some time after they are idle; the functions that read them keep a copy for a transaction only.
	var commits, wal float64
	err := d.conn.QueryRow(ctx, `SELECT xact_commit, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&commits, &wal)
	if err != nil {
		return nil, fmt.Errorf("read what the database counts: %w", err)
	}
	counts := map[string]float64{Commits: commits, WALBytes: wal}
	if d.here != 0 {
		if seconds, ok := cpuOfFamily(d.here); ok {
			counts[DatabaseCPU] = seconds
		}
	}
	return counts, nil
}
