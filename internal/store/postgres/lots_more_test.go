package postgres_test

import (
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
)

// A planned execution that lies in a lot of one partition is not made again in another one (R4).
func TestLotsOfOtherPartitions(t *testing.T) {
	s := open(t, 2)
	granted := func(p int) (store.Fence, *engine.Batch) {
		rows, err := s.PartitionRows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		row, err := s.AcquirePartition(t.Context(), rows[p], "me", 1, engine.Level)
		if err != nil {
			t.Fatal(err)
		}
		b := grants(row.Fence, 10, 1)
		for i := range b.Executions {
			b.Executions[i].Row.Partition, b.Executions[i].Row.Trigger = p, job.TriggerBackfill
		}
		return row.Fence, b
	}
	f, b := granted(0)
	if err := s.Commit(t.Context(), f, b); err != nil {
		t.Fatal(err)
	}
	f, b = granted(1)
	if err := s.Commit(t.Context(), f, b); job.KindOf(err) != job.KindFenced {
		t.Errorf("what partition 0 has, partition 1 has made again: %v", err)
	}
	rows, _, err := s.Executions(t.Context(), store.ExecutionFilter{Namespace: "default", Page: store.Page{Limit: 100}})
	if err != nil || len(rows) != 10 {
		t.Errorf("%d executions, %v; there are 10", len(rows), err)
	}
}

// A list goes on over a lot that alone has more members than a page looks at.
func TestListMovesOnOverLots(t *testing.T) {
	s := open(t, 1)
	postgres.SetWalk(s, 1)
	f := owner(t, s)
	wide, more := grants(f, 10, 1), grants(f, 10, 1000)
	wide.Executions, wide.Shards = append(wide.Executions, more.Executions...), append(wide.Shards, more.Shards...)
	if err := s.Commit(t.Context(), f, wide); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	if err := s.Commit(t.Context(), f, grants(f, 40, 100)); err != nil {
		t.Fatal(err)
	}
	q, n := store.ExecutionFilter{Namespace: "default", Page: store.Page{Limit: 100}}, 0
	for range 20 {
		rows, next, err := s.Executions(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		n += len(rows)
		if q.After = next; next == "" {
			break
		}
	}
	if n != 60 || q.After != "" {
		t.Errorf("%d rows of 60, then at %q", n, q.After)
	}
}

// A list goes on over two lots with one highest id, that of an execution which was granted out of the first.
func TestListMovesOnOverGrants(t *testing.T) {
	t.Parallel()
	s := open(t, 1)
	postgres.SetWalk(s, 1)
	f := owner(t, s)
	if err := s.Commit(t.Context(), f, queues(f, 20, 1)); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	if err := s.Commit(t.Context(), f, starts(f, 10, 11)); err != nil {
		t.Fatal(err)
	}
	q, n := store.ExecutionFilter{Namespace: "default", Page: store.Page{Limit: 100}}, 0
	for range 5 {
		rows, next, err := s.Executions(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		n += len(rows)
		if q.After = next; next == "" {
			break
		}
	}
	if n != 20 || q.After != "" {
		t.Errorf("%d rows of 20, then at %q", n, q.After)
	}
}
