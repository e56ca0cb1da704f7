package postgres_test

import (
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// A commit asks nothing over the connections of loads and pages: other partitions may hold all of them for longer than a commit
// may wait.
func TestCommitsNeedNoEngineConnection(t *testing.T) {
	t.Parallel()
	s, err := postgres.Open(t.Context(), postgres.Config{DSN: pgtest.Start(t).Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := owner(t, s)
	x, sh := benchRows(1)
	x.ShardTotal, x.State, x.StartedAt = 3, job.ExecutionQueued, 0
	begin := engine.Batch{Executions: []engine.ExecutionWrite{{Row: x}}}
	leased := engine.Batch{LastToken: sh.Token}
	for i := range 3 {
		queued := job.Shard{Execution: x.ID, Index: i, State: job.ShardQueued}
		begin.Shards = append(begin.Shards, engine.ShardWrite{Row: queued})
		sh.Index = i
		leased.Shards = append(leased.Shards, engine.ShardWrite{Row: sh, From: job.ShardQueued})
	}
	release := postgres.HoldEngines(t, s)
	defer release()
	for _, b := range []*engine.Batch{&begin, &leased} {
		b.Seq, b.At, b.Level = f.Seq+1, noon, engine.Level
		if err := s.Commit(t.Context(), f, b); err != nil {
			t.Fatal(err)
		}
		f.Seq++
	}
}
