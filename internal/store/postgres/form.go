package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/store"
)

// Where says in one line which database an address means, without user and secrets.
func Where(dsn string) (where string, err error) {
	parsed, err := parse(dsn)
	if err != nil {
		return "", err
	}
	c := parsed.ConnConfig
	host := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	seen := map[string]bool{host: true}
	for _, f := range c.Fallbacks { // one per host and form of TLS
		if h := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !seen[h] {
			seen[h] = true
			host += "," + h
		}
	}
	return "postgres " + host + "/" + c.Database, nil
}

// Inspect reads the form of a database and changes nothing. One without Takt's tables has no version; one that no server
// could use is refused as by Open.
func Inspect(ctx context.Context, dsn string) (form store.Form, err error) {
	const op = "read the database's version"
	c, err := parse(dsn)
	if err != nil {
		return form, err
	}
	conn, err := pgx.ConnectConfig(ctx, c.ConnConfig)
	if err != nil {
		return form, classify(op, err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	a, err := look(ctx, conn)
	if err != nil {
		return form, classify(op, err)
	}
	a.readOnly = false // nothing is written
	if err := a.unfit(); err != nil {
		return form, err
	}
	var applied []int64
	var floor int
	if a.ours {
		rows, err := conn.Query(ctx, `SELECT DISTINCT version_id FROM `+versionTable+` WHERE version_id > 0 AND is_applied ORDER BY version_id`)
		if err == nil {
			applied, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		if err == nil && slices.Contains(applied, 1) { // which made the table
			err = conn.QueryRow(ctx, texts[qFloor]).Scan(&floor)
		}
		if err != nil {
			return form, classify(op, err)
		}
	}
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return form, fmt.Errorf("migrations: %w", err)
	}
	return store.FormOf(files, applied, floor)
}

// bringUp makes the tables what this binary knows, or finds that they are.
func (s *Store) bringUp(ctx context.Context, c Config) error {
	form, err := Inspect(ctx, c.DSN)
	switch {
	case err != nil:
		return err
	case c.NoMigrate:
		return form.Settled()
	}
	if err := form.Check(); err != nil || form.Ahead > 0 || len(form.Pending()) == 0 { // one version ahead is a rolling upgrade
		return err
	}
	return s.migrate(ctx)
}
