package store_test

import (
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func TestGroupCommon(t *testing.T) {
	var rows []store.RowWrite
	add := func(n int, name string, state job.ExecutionState, shard bool) {
		for range n {
			e := &engine.ExecutionWrite{Row: job.Execution{ID: job.ExecutionID{byte(len(rows))}, Job: name, State: state, ShardTotal: 1}}
			w := store.RowWrite{ExecutionWrite: e}
			if shard {
				w.Shard = &engine.ShardWrite{Row: job.Shard{Execution: e.Row.ID, State: job.ShardLeased}}
			}
			rows = append(rows, w)
		}
	}
	add(6, "a", job.ExecutionRunning, true)
	add(3, "b", job.ExecutionRunning, true)
	add(9, "c", job.ExecutionQueued, true)
	add(9, "c", job.ExecutionRunning, false)
	add(4, "a", job.ExecutionRunning, true)
	rows = append(rows, store.RowWrite{Shard: &engine.ShardWrite{}})
	groups, rest := store.GroupCommon(rows, store.Worthwhile)
	if len(groups) != 2 || groups[0].Job != "a" || len(groups[0].Rows) != 10 || groups[1].Job != "c" || len(groups[1].Rows) != 9 || groups[1].State != job.ExecutionQueued {
		t.Errorf("groups %+v", groups)
	}
	if len(rest) != 3+9+1 {
		t.Errorf("%d rows are left, want those of a small group and those without a shard or execution: 13", len(rest))
	}
	for _, g := range groups {
		for i := range g.Rows {
			if w := &g.Rows[i]; w.Row.Job != g.Job || w.Row.State != g.State || w.Shard.Row.Execution != w.Row.ID {
				t.Errorf("%+v is in a group of %s", w, g.Job)
			}
		}
	}
	if groups, rest := store.GroupCommon(rows[:7], store.Worthwhile); groups != nil || len(rest) != 7 {
		t.Errorf("few rows are left as they are: %d groups, %d", len(groups), len(rest))
	}
}
