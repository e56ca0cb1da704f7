package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// openStore opens the database, and makes or changes its tables unless that was forbidden.
func (a *App) openStore(ctx context.Context) error {
	if a.store = a.cfg.Store; a.store != nil {
		return nil
	}
	st, err := a.cfg.open(ctx)
	if err != nil {
		return err
	}
	a.store, a.owned = st, true
	return nil
}

func (c Config) open(ctx context.Context) (store.Store, error) {
	if c.Database != "" {
		st, err := postgres.Open(ctx, postgres.Config{DSN: c.Database, Partitions: c.Partitions, OwnerTTL: c.Lease.Filled().OwnerTTL,
			Name: "takt " + c.Server, Log: c.Logger, NoMigrate: c.NoMigrate})
		if err != nil {
			return nil, err
		}
		return st, nil
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Path: Database(c.DataDir), Partitions: c.Partitions, NoSync: c.NoSync, NoMigrate: c.NoMigrate})
	if err != nil {
		return nil, err
	}
	return st, nil
}

// where says in one line which database is meant, without secrets.
func (c Config) where() (string, error) {
	if c.Database != "" {
		return postgres.Where(c.Database)
	}
	return filepath.Clean(c.DataDir), nil
}

// Form reads how the database of a server (DataDir or Database) stands to this binary, and says which one it is. It
// changes nothing.
func Form(ctx context.Context, c Config) (where string, form store.Form, err error) {
	if where, err = c.where(); err != nil {
		return "", form, err
	}
	if c.Database != "" {
		form, err = postgres.Inspect(ctx, c.Database)
		return where, form, err
	}
	form, err = sqlite.Inspect(ctx, Database(c.DataDir))
	return Database(c.DataDir), form, err
}

// Migrate brings the database of a server up to date, and tells which steps that took and how it stands now. A data
// directory must have no server: KindConflict, "data_dir_locked".
func Migrate(ctx context.Context, c Config) (where string, done []store.Migration, form store.Form, err error) {
	if c.DataDir != "" {
		lock, e := lockDir(c.DataDir, time.Now(), "none: a migration")
		if e != nil {
			return "", nil, form, e
		}
		defer func() { err = errors.Join(err, lock.release()) }()
	}
	before, err := c.before(ctx)
	if err != nil {
		return "", nil, form, err
	}
	st, err := c.open(ctx)
	if err != nil {
		return "", nil, form, err
	}
	if err := st.Close(); err != nil {
		return "", nil, form, err
	}
	if where, form, err = Form(ctx, c); err != nil {
		return "", nil, form, err
	}
	had := map[int64]bool{}
	for _, m := range before.Migrations {
		had[m.Version] = m.Applied
	}
	for _, m := range form.Migrations {
		if m.Applied && !had[m.Version] {
			done = append(done, m)
		}
	}
	return where, done, form, nil
}

// before is the form that a migration finds; a file that is not there yet has none.
func (c Config) before(ctx context.Context) (store.Form, error) {
	if c.DataDir != "" {
		if _, err := os.Stat(Database(c.DataDir)); errors.Is(err, os.ErrNotExist) {
			return store.Form{}, nil
		}
	}
	_, form, err := Form(ctx, c)
	return form, err
}
