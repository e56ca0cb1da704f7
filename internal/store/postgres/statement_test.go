package postgres_test

import (
	"context"
	"testing"

	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// open opens a store in a database of its own.
func open(t testing.TB, partitions int) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestStatements lets the database read every statement of the package.
func TestStatements(t *testing.T) {
	t.Parallel()
	if err := postgres.PrepareAll(context.Background(), open(t, 1)); err != nil {
		t.Error(err)
	}
}
