package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// BenchmarkHandOver is what the database does when a server stops and others take what it had: 11 partitions are released at once,
// seen, acquired and loaded. Worth as much on a machine that does other things, too: each way to the database then waits for its turn.
func BenchmarkHandOver(b *testing.B) {
	const moving = 11
	ctx := context.Background()
	dsn := pgtest.Start(b).Database(b)
	var both [2]*postgres.Store
	for i := range both {
		s, err := postgres.Open(ctx, postgres.Config{DSN: dsn})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		both[i] = s
	}
	handOver(b, both[1], both[0], "s0", false, moving)
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		from, to := both[n%2], both[(n+1)%2]
		begun := time.Now()
		handOver(b, to, from, fmt.Sprint("s", (n+1)%2), true, moving)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
}

// handOver moves partitions from who has them, if anybody.
func handOver(b *testing.B, to, from *postgres.Store, taker string, given bool, n int) {
	b.Helper()
	ctx := context.Background()
	rows, err := from.PartitionRows(ctx)
	if err != nil {
		b.Fatal(err)
	}
	each := func(fn func(p int) error) {
		var all sync.WaitGroup
		for p := range n {
			all.Go(func() {
				if err := fn(p); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
	if given {
		each(func(p int) error { return from.ReleasePartition(ctx, rows[p].Fence) })
	}
	if rows, err = to.PartitionRows(ctx); err != nil {
		b.Fatal(err)
	}
	if _, err := to.Servers(ctx); err != nil {
		b.Fatal(err)
	}
	each(func(p int) error {
		row, err := to.AcquirePartition(ctx, rows[p], taker, 1, engine.Level)
		if err != nil {
			return err
		}
		if _, err := to.LoadPartition(ctx, row.Partition); err != nil {
			return err
		}
		_, err = to.Lineage(ctx)
		if err != nil {
			return err
		}
		var w store.Engine = to
		_, err = w.DuePage(ctx, row.Partition, engine.WantDue{Until: noon, Limit: 1000})
		return err
	})
}
