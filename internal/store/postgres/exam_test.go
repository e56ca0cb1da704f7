package postgres_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
	"github.com/taktsched/takt/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A random history asks PostgreSQL some 20,000 things, so that there are fewer than on SQLite; `-seeds 100` for a night.
var seeds = flag.Int("seeds", 3, "random histories of the exam")

// patient is a lease under which no commit of a test is cut off on a machine that is busy.
const patient = 2 * time.Minute

// dropping is a store whose database goes with it, so that a whole exam needs little room.
type dropping struct {
	*postgres.Store
	drop func() error
}

func (d dropping) Close() error {
	return errors.Join(d.Store.Close(), d.drop())
}

// harness opens stores in databases of their own.
func harness(t *testing.T, change func(*postgres.Store)) storetest.Harness {
	c := pgtest.Start(t)
	return storetest.Harness{Seeds: *seeds, Open: func(tb storetest.TB, partitions int) store.Store {
		name, err := c.Clone()
		if err != nil {
			tb.Fatalf("database: %v", err)
		}
		s, err := postgres.Open(context.Background(), postgres.Config{DSN: c.DSN(name), Partitions: partitions, OwnerTTL: patient})
		if err != nil {
			tb.Fatalf("Open: %v", err)
		}
		change(s)
		return dropping{s, func() error { return c.Drop(name) }}
	}}
}

func TestExam(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness(t, postgres.SmallLots))
}

// TestMutants shows that the exam is no formality: each half of it finds each mutant.
func TestMutants(t *testing.T) {
	unwatched(t)
	t.Parallel()
	for name, change := range postgres.Mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := harness(t, func(s *postgres.Store) { postgres.SmallLots(s); change(s) })
			h.Seeds, h.First = 3, map[string]string{"half a set is written": "Jobs/", "no planner guard": "Move/", "who has left a lot is not noted": "Granted/", "members of a lot get no rows": "Granted/",
				"the newest of a job do not lie in lots": "Granted/"}[name]
			v := storetest.Judge(h)
			if v.Case == "" || v.History == "" {
				t.Fatalf("the mutant passes: cases say %q, histories say %q", v.Case, v.History)
			}
			t.Logf("killed: %s\nby case: %.300s\nby history: %.300s", name, v.Case, v.History)
		})
	}
}
