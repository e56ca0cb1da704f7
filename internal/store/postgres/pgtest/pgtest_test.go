package pgtest_test

import (
	"testing"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

func TestDatabase(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	if c.Database(t) == c.Database(t) {
		t.Error("two tests share a database")
	}
}
