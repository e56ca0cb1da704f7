package bench

import (
	"context"
	"encoding/binary"
	"flag"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

var delayedRows = flag.Int("delayed", 1_000_000, "rows of BenchmarkDelayed")

// BenchmarkDelayed is a server on SQLite with a million requests for later instants, 1,000 of which come due in a second for
// ten seconds: how late their handlers begin, and what memory it takes. Run it with -benchtime 1x.
func BenchmarkDelayed(b *testing.B) {
	const due = 10_000
	ctx, dir := context.Background(), b.TempDir()
	first := fillDelayed(b, app.Database(dir), *delayedRows, due)
	debug.FreeOSMemory()
	s, err := Serve(ctx, app.Config{DataDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	client, err := takt.NewClient(takt.ClientConfig{Server: s.URL()})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	var late []time.Duration
	early, all := 0, make(chan struct{})
	crew, err := hire(ctx, &Config{Server: s.URL(), Workers: 1, Slots: 1000}, client, newTally(1), func(_ context.Context, task *takt.Task) error {
		by := time.Since(task.PlannedAt())
		mu.Lock()
		defer mu.Unlock()
		if late = append(late, by); len(late) == due {
			close(all)
		}
		if by < 0 {
			early++
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	select {
	case <-all:
	case <-time.After(time.Until(first) + 2*time.Minute):
	}
	mu.Lock()
	defer mu.Unlock()
	if len(late) != due || early > 0 {
		b.Errorf("%d of %d have begun, %d of them early", len(late), due, early)
	}
	q, counts := quantiles(late), ofSelf()
	b.ReportMetric(q.P50, "p50-ms")
	b.ReportMetric(q.P99, "p99-ms")
	b.ReportMetric(q.Max, "max-ms")
	b.ReportMetric(counts[Resident]/(1<<20), "MiB")
	if err := crew.dismiss(); err != nil {
		b.Error(err)
	}
	if err := s.Stop(); err != nil {
		b.Error(err)
	}
}

// fillDelayed writes rows as an owner does; the first of those that are due soon is due at the instant that it gives.
func fillDelayed(b *testing.B, path string, rows, due int) time.Time {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	parts, err := s.PartitionRows(ctx)
	if err != nil {
		b.Fatal(err)
	}
	row, err := s.AcquirePartition(ctx, parts[0], "fill", 1, engine.Level)
	if err != nil {
		b.Fatal(err)
	}
	f, now := row.Fence, job.InstantOf(time.Now())
	def, _, err := s.PutJob(ctx, store.PutJob{At: now, Definition: job.Definition{UID: job.UID{1}, Namespace: "default", Name: "close-order",
		Spec: job.Spec{Pool: poolName(0), Handler: handler}}})
	if err != nil {
		b.Fatal(err)
	}
	var first job.Instant
	batch := &engine.Batch{At: now, Level: engine.Level}
	for i := range rows {
		at := now.Add(time.Hour + time.Duration(i)*(24*time.Hour/time.Duration(rows)))
		if n := i - (rows - due); n >= 0 {
			if n == 0 {
				first = job.InstantOf(time.Now().Add(15 * time.Second))
			}
			at = first.Add(time.Duration(n) * time.Millisecond)
		}
		var rest [10]byte
		binary.BigEndian.PutUint64(rest[2:], uint64(i)) //nolint:gosec // a number of a row
		x := job.Execution{ID: job.RequestedID(at, rest), Namespace: "default", Job: def.Name, JobUID: def.UID, Revision: 1, Pool: poolName(0), Handler: handler,
			Trigger: job.TriggerRequest, PlannedAt: at, Params: []byte(`{"order":4711}`), ShardTotal: 1, State: job.ExecutionScheduled, Reason: job.WaitDelay, CreatedAt: now}
		batch.Executions = append(batch.Executions, engine.ExecutionWrite{Row: x})
		batch.Shards = append(batch.Shards, engine.ShardWrite{Total: 1, Row: job.Shard{Execution: x.ID, State: job.ShardQueued}})
		if len(batch.Executions) < 5000 && i < rows-1 {
			continue
		}
		batch.Seq = f.Seq + 1
		if err := s.Commit(ctx, f, batch); err != nil {
			b.Fatal(err)
		}
		f.Seq++
		batch.Executions, batch.Shards = batch.Executions[:0], batch.Shards[:0]
	}
	if err := s.ReleasePartition(ctx, f); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return first.Time()
}
