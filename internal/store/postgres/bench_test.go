package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// BenchmarkCommit is the life of short unsharded executions: inserted leased with their shard, then
// ended and moved to history, n per commit, with the durability of production. executions/s is the figure
// to hold against PERFORMANCE.md.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { benchmarkCommit(b, n) })
	}
}

// BenchmarkBacklog is a page of 1,000 queued executions.
func BenchmarkBacklog(b *testing.B) {
	s, f := benchStore(b)
	benchFill(b, s, f)
	for b.Loop() {
		page, err := s.BacklogPage(context.Background(), 0, engine.WantBacklog{Limit: 1000})
		if err != nil || len(page.Rows) != 1000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkListWaiting is the first page of a list while as much waits in lots as may.
func BenchmarkListWaiting(b *testing.B) {
	s, f := benchStore(b)
	benchFill(b, s, f)
	for b.Loop() {
		rows, _, err := s.Executions(context.Background(), store.ExecutionFilter{Namespace: "default", Page: store.Page{Limit: 50}})
		if err != nil || len(rows) != 50 {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewestWaiting is what a job that runs after another asks while as much of that waits.
func BenchmarkNewestWaiting(b *testing.B) {
	s, f := benchStore(b)
	benchFill(b, s, f)
	for b.Loop() {
		if _, err := postgres.NewestOf(context.Background(), s, job.UID{1}); err != nil {
			b.Fatal(err)
		}
	}
}

// benchFill writes 20,000 queued executions.
func benchFill(b *testing.B, s *postgres.Store, f store.Fence) {
	b.Helper()
	for n := int64(0); n < 20_000; {
		batch := engine.Batch{Seq: f.Seq + 1, At: noon, Level: engine.Level}
		for range 1000 {
			x, sh := benchRows(n)
			n++
			x.ShardTotal, x.State, sh.State = 1, job.ExecutionQueued, job.ShardQueued
			batch.Executions = append(batch.Executions, engine.ExecutionWrite{Row: x})
			batch.Shards = append(batch.Shards, engine.ShardWrite{Row: sh})
		}
		if err := s.Commit(context.Background(), f, &batch); err != nil {
			b.Fatal(err)
		}
		f.Seq++
	}
}

// benchStore has the durability of production.
func benchStore(b *testing.B) (*postgres.Store, store.Fence) {
	ctx := context.Background()
	c := pgtest.New(b, pgtest.Options{Fsync: true, Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB"}})
	s, err := postgres.Open(ctx, postgres.Config{DSN: c.Database(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	rows, err := s.PartitionRows(ctx)
	if err != nil {
		b.Fatal(err)
	}
	row, err := s.AcquirePartition(ctx, rows[0], "bench", 1, engine.Level)
	if err != nil {
		b.Fatal(err)
	}
	return s, row.Fence
}

func benchmarkCommit(b *testing.B, n int) {
	ctx := context.Background()
	s, f := benchStore(b)
	number := int64(0)
	commit := func(batch *engine.Batch) {
		batch.Seq, batch.At, batch.Level = f.Seq+1, noon, engine.Level
		if err := s.Commit(ctx, f, batch); err != nil {
			b.Fatal(err)
		}
		f.Seq++
	}
	b.ReportAllocs()
	for b.Loop() {
		var begin, end engine.Batch
		for range n {
			number++
			x, sh := benchRows(number)
			begin.Executions = append(begin.Executions, engine.ExecutionWrite{Row: x})
			begin.Shards = append(begin.Shards, engine.ShardWrite{Row: sh})
			x.State, sh.State, sh.Result = job.ExecutionSucceeded, job.ShardSucceeded, []byte(`{"rows":12345}`)
			end.Executions = append(end.Executions, engine.ExecutionWrite{From: job.ExecutionRunning, Row: x})
			end.Shards = append(end.Shards, engine.ShardWrite{From: job.ShardLeased, Row: sh})
		}
		commit(&begin)
		commit(&end)
	}
	b.ReportMetric(float64(number)/b.Elapsed().Seconds(), "executions/s")
	b.ReportMetric(float64(number)*6/b.Elapsed().Seconds(), "rows/s") // two inserted, two deleted, two archived
}

func benchRows(n int64) (job.Execution, job.Shard) {
	at := job.Instant(1_800_000_000_000 + n)
	uid := job.UID{1}
	id := job.PlannedID(uid, at)
	return job.Execution{
			ID: id, Namespace: "default", Job: "bench", JobUID: uid, Revision: 1, Pool: "main", Handler: "noop", Trigger: job.TriggerRequest,
			PlannedAt: at, Params: []byte(`{"customer":4711,"note":"about a hundred bytes of parameters, as they come","list":[1,2,3]}`),
			ShardTotal: 1, State: job.ExecutionRunning, CreatedAt: at, StartedAt: at,
		}, job.Shard{
			Execution: id, State: job.ShardLeased, Token: job.Token(n), Session: "0.0123456789abcdef01234567", Worker: "worker-1",
			Attempt: 1, LeasedAt: at, Attempts: []job.Attempt{{Number: 1, Token: job.Token(n), Worker: "worker-1", State: job.AttemptRunning, StartedAt: at}},
		}
}
