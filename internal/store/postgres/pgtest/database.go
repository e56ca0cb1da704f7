package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/store/postgres"
)

// Database makes a database with Takt's tables, but without partitions, so that who opens it says how many; returns its
// address. It is dropped after the test.
func (c *Cluster) Database(tb testing.TB) string {
	tb.Helper()
	name, err := c.Clone()
	if err != nil {
		tb.Fatalf("database for a test: %v", err)
	}
	c.drop(tb, name)
	return c.DSN(name)
}

// Empty makes a database without any tables, owned by the tests' user.
func (c *Cluster) Empty(tb testing.TB) string {
	tb.Helper()
	name := c.fresh()
	if _, err := c.Exec(`CREATE DATABASE ` + name + c.owner()); err != nil {
		tb.Fatalf("empty database for a test: %v", err)
	}
	c.drop(tb, name)
	return c.DSN(name)
}

// Clone makes a database like that of Database and returns its name. The caller drops it.
func (c *Cluster) Clone() (string, error) {
	c.migrated.Do(func() { c.failure = c.makeTemplate() })
	if c.failure != nil {
		return "", c.failure
	}
	name := c.fresh()
	_, err := c.Exec(`CREATE DATABASE ` + name + c.owner() + ` TEMPLATE ` + c.template())
	return name, err
}

// Drop drops a database, whoever is connected.
func (c *Cluster) Drop(name string) error {
	_, err := c.Exec(`DROP DATABASE IF EXISTS ` + name + ` WITH (FORCE)`)
	return err
}

// drop is Drop at the end of a test. Of a cluster of ours that is down nothing is left to drop.
func (c *Cluster) drop(tb testing.TB, name string) {
	tb.Cleanup(func() {
		if err := c.Drop(name); err != nil && c.dir == "" {
			tb.Errorf("the database %s of a test stays: %v", name, err)
		}
	})
}

// Name is the database in an address that this package gave.
func Name(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		return strings.TrimPrefix(u.Path, "/")
	}
	return dsn[strings.LastIndex(dsn, "=")+1:]
}

func (c *Cluster) fresh() string {
	return fmt.Sprintf("takt_%d_%d", os.Getpid(), c.count.Add(1))
}

func (c *Cluster) template() string {
	if c.dir == "" { // a server that others use, too
		return fmt.Sprintf("%s_%d", template, os.Getpid())
	}
	return template
}

func (c *Cluster) owner() string {
	if c.dir == "" {
		return ""
	}
	return ` OWNER ` + user
}

func (c *Cluster) makeTemplate() error {
	if _, err := c.Exec(`CREATE DATABASE ` + c.template() + c.owner() + ` ENCODING 'UTF8' TEMPLATE template0`); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := postgres.Open(ctx, postgres.Config{DSN: c.DSN(c.template())})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	_, err = c.ExecIn(c.template(), `WITH p AS (DELETE FROM partitions) DELETE FROM partition_beats`)
	return err
}
