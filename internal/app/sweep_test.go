package app_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// past writes executions of n shards that ended an instant ago each, in two namespaces.
func past(t *testing.T, st store.Store, n int, ends ...time.Time) {
	t.Helper()
	namespaces := []string{"brief", "usual"}
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := st.AcquirePartition(t.Context(), rows[0], "past", 0, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	for i, namespace := range namespaces {
		uid := job.UID{byte(i + 1)}
		if _, _, err := st.PutJob(t.Context(), store.PutJob{At: job.InstantOf(ends[0]), Definition: job.Definition{UID: uid, Namespace: namespace, Name: "j",
			Spec: job.Spec{Pool: "p", Handler: "h", Shards: n}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range ends {
		for i, namespace := range namespaces {
			uid := job.UID{byte(i + 1)}
			at := job.InstantOf(end)
			e := job.Execution{ID: job.PlannedID(uid, at), Namespace: namespace, Job: "j", JobUID: uid, Revision: 1, Pool: "p", Handler: "h",
				Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: n, State: job.ExecutionRunning, CreatedAt: at}
			begin, finish := &engine.Batch{At: at}, &engine.Batch{At: at, Decisions: []job.Decision{{Job: uid, Namespace: namespace, Name: "j", Kind: job.DecisionSkipped, At: at, Count: 1}}}
			begin.Executions = []engine.ExecutionWrite{{Row: e}}
			e.State, e.EndedAt = job.ExecutionSucceeded, at
			finish.Executions = []engine.ExecutionWrite{{From: job.ExecutionRunning, Row: e}}
			for s := range n {
				begin.Shards = append(begin.Shards, engine.ShardWrite{Row: job.Shard{Execution: e.ID, Index: s, State: job.ShardRunning}})
				finish.Shards = append(finish.Shards, engine.ShardWrite{From: job.ShardRunning, Row: job.Shard{Execution: e.ID, Index: s, State: job.ShardSucceeded}})
			}
			for _, b := range []*engine.Batch{begin, finish} {
				row.Seq++
				b.Seq = row.Seq
				if err := st.Commit(t.Context(), row.Fence, b); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := st.ReleasePartition(t.Context(), row.Fence); err != nil {
		t.Fatal(err)
	}
}

// A server that runs deletes what is old by the retention of its namespace, in many small steps, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "takt.db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}()
		now := time.Now()
		past(t, st, 300, now.Add(-40*24*time.Hour), now.Add(-20*24*time.Hour), now.Add(-time.Hour))
		if err := st.PutRetention(t.Context(), store.Retention{Namespace: "brief", Executions: 10 * 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		a, err := app.New(t.Context(), app.Config{Store: st, Listener: quiet{make(chan struct{})}, Keep: control.Keep{Decisions: 30 * 24 * time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		time.Sleep(2 * time.Minute) // in the bubble: the first sweep is over
		for namespace, want := range map[string]int{"brief": 1, "usual": 2} {
			rows, _, err := st.Executions(ctx, store.ExecutionFilter{Namespace: namespace, Page: store.Page{Limit: 10}})
			if err != nil || len(rows) != want {
				t.Errorf("%s: %d executions, %v; want %d", namespace, len(rows), err, want)
			}
			for _, e := range rows {
				if shards, _, err := st.Shards(ctx, namespace, e.ID, store.Page{Limit: 500}); err != nil || len(shards) != 300 {
					t.Errorf("%s: what stays has %d shards, %v", namespace, len(shards), err)
				}
			}
			if rows, _, err := st.Decisions(ctx, namespace, "", store.Page{Limit: 10}); err != nil || len(rows) != 2 {
				t.Errorf("%s: %d decisions, %v; want 2", namespace, len(rows), err)
			}
		}
		rows, err := st.Journal(ctx, 0, 0, 100)
		if err != nil || len(rows) == 0 {
			t.Fatalf("journal: %d rows, %v", len(rows), err)
		}
		for _, r := range rows {
			if age := job.InstantOf(now).Sub(r.At); age > 7*24*time.Hour {
				t.Errorf("the journal still has a row of %v ago", age)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// clocked is a store with a clock of its own.
type clocked struct{ monthly }

func (clocked) DatabaseTime(context.Context) (time.Time, error) { return time.Now(), nil }

// What is old is judged by the database's clock: a server whose own is years ahead deletes nothing that is kept.
func TestSweepByTheDatabasesClock(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		file, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "takt.db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		}()
		st := clocked{monthly{file, make(chan store.Over, 1)}}
		past(t, st, 1, time.Now().Add(-time.Hour))
		a, err := app.New(t.Context(), app.Config{Store: st, Listener: quiet{make(chan struct{})},
			Wall: func() time.Time { return time.Now().AddDate(10, 0, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		time.Sleep(2 * time.Minute) // in the bubble: the first sweep is over
		if o := <-st.asked; o.Now > job.InstantOf(time.Now()) {
			t.Errorf("months were swept as of %v", time.UnixMilli(int64(o.Now)))
		}
		if rows, _, err := st.Executions(ctx, store.ExecutionFilter{Namespace: "usual"}); err != nil || len(rows) != 1 {
			t.Errorf("%d executions are left, %v", len(rows), err)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// monthly is a store that drops months whole, and remembers what it was asked to.
type monthly struct {
	store.Store
	asked chan store.Over
}

func (m monthly) SweepMonths(_ context.Context, o store.Over) (int, error) {
	select {
	case m.asked <- o:
	default:
	}
	return 0, nil
}

// Where months are dropped whole, what is kept longest is left to that; what is kept for less goes in small steps as ever.
func TestSweepLeavesMonths(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		file, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "takt.db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		}()
		st := monthly{file, make(chan store.Over, 1)}
		const day = 24 * time.Hour
		now := time.Now()
		past(t, st, 3, now.Add(-200*day), now.Add(-40*day), now.Add(-time.Hour))
		if err := st.PutRetention(t.Context(), store.Retention{Namespace: "brief", Executions: 33 * day}); err != nil {
			t.Fatal(err)
		}
		a, err := app.New(t.Context(), app.Config{Store: st, Listener: quiet{make(chan struct{})},
			Keep: control.Keep{Executions: 35 * day, Decisions: 39 * day, Logs: 12 * day, Journal: 2 * day}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		time.Sleep(2 * time.Minute) // in the bubble: the first sweep is over
		o := <-st.asked
		for what, is := range map[string][2]any{
			"executions": {o.Now.Sub(o.Executions), 35 * day}, "logs": {o.Now.Sub(o.Logs), 12 * day},
			"decisions": {o.Now.Sub(o.Decisions), 39 * day}, "journal": {o.Now.Sub(o.Journal), 2 * day},
		} {
			if is[0] != is[1] {
				t.Errorf("months of %s go after %v, should be %v", what, is[0], is[1])
			}
		}
		for namespace, want := range map[string]int{"brief": 1, "usual": 2} {
			rows, _, err := st.Executions(ctx, store.ExecutionFilter{Namespace: namespace})
			if err != nil || len(rows) != want {
				t.Errorf("%s: %d executions, %v; want %d", namespace, len(rows), err, want)
			}
			if rows, _, err := st.Decisions(ctx, namespace, "", store.Page{}); err != nil || len(rows) != 2 {
				t.Errorf("%s: %d decisions, %v; want 2", namespace, len(rows), err)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestKeepIsChecked(t *testing.T) {
	for _, k := range []control.Keep{{Executions: time.Minute}, {Logs: -time.Hour}, {Journal: time.Nanosecond}, {Decisions: job.MaxDuration + 1}} {
		err := app.Config{DataDir: "x", Keep: k}.Validate()
		if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != "bad_retention" || e.Field == "" || e.Hint == "" {
			t.Errorf("%v: %v", fmt.Sprintf("%+v", k), err)
		}
	}
}
