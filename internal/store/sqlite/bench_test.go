package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// BenchmarkCommit is the life of short unsharded executions: inserted leased with their shard, then
// ended and moved to history, n per commit, with the durability of production. executions/s is the figure
// to hold against PERFORMANCE.md.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { benchmarkCommit(b, n) })
	}
}

// benchStore has the durability of production.
func benchStore(b *testing.B) (*sqlite.Store, store.Fence) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(b.TempDir(), "takt.db")})
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
		batch.Seq, batch.Level = f.Seq+1, engine.Level
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

var _ store.Store = (*sqlite.Store)(nil)
