package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// filters is every combination of the parts of a filter.
func filters() (all []store.ExecutionFilter) {
	for _, name := range []string{"", "j0", "nothing"} {
		for _, pool := range []string{"", "p0", "nothing"} {
			for _, state := range []job.ExecutionState{"", job.ExecutionScheduled, job.ExecutionQueued, job.ExecutionRunning, job.ExecutionCancelling,
				job.ExecutionSucceeded, job.ExecutionPartiallySucceeded, job.ExecutionFailed, job.ExecutionTimedOut, job.ExecutionCancelled} {
				all = append(all, store.ExecutionFilter{Namespace: "ns", Job: name, Pool: pool, State: state})
			}
		}
	}
	return all
}

// Each list goes along an index that has its rows in order, from the place it begins at.
func TestListPlans(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "takt.db"))
	for _, f := range filters() {
		for _, text := range sqlite.ListTexts(f) {
			plan, err := sqlite.Plan(t.Context(), s, text)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, text, plan)
			if !strings.Contains(plan, "SEARCH ") || !strings.Contains(plan, "(namespace=?") || !strings.Contains(plan, "id<?)") {
				t.Errorf("%+v: %s\n%s", f, text, plan)
			}
			if f.Job != "" && !strings.Contains(plan, "job=?") && !(f.State != "" && strings.Contains(plan, "state=?")) ||
				f.Job == "" && f.Pool != "" && !strings.Contains(plan, "pool=?") && !strings.Contains(plan, "state=?") {
				t.Errorf("%+v walks over other jobs or pools: %s\n%s", f, text, plan)
			}
		}
	}
}

// listed fills a store with executions of two jobs, pools and namespaces in every state, oldest first.
func listed(t *testing.T, s *sqlite.Store, f store.Fence) (all []job.Execution) {
	t.Helper()
	states := []job.ExecutionState{job.ExecutionQueued, job.ExecutionRunning, job.ExecutionCancelling, job.ExecutionSucceeded, job.ExecutionFailed,
		job.ExecutionSucceeded, job.ExecutionTimedOut}
	var b engine.Batch
	for n := range 120 {
		x, sh := benchRows(int64(n))
		x.Namespace, x.Job, x.Pool, x.State = []string{"ns", "ns", "other"}[n%3], fmt.Sprintf("j%d", n/3%2), fmt.Sprintf("p%d", n/7%2), states[n%len(states)]
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: x})
		b.Shards = append(b.Shards, engine.ShardWrite{Row: sh})
		all = append(all, x)
	}
	b.Seq = f.Seq + 1
	if err := s.Commit(t.Context(), f, &b); err != nil {
		t.Fatal(err)
	}
	return all
}

// However few rows a page may look at, the pages together are the list: complete, in order, nothing twice.
func TestListWalks(t *testing.T) {
	t.Parallel()
	s, fence := owned(t, filepath.Join(t.TempDir(), "takt.db"))
	all := listed(t, s, fence)
	for _, walk := range []int64{1, 7, 1000} {
		sqlite.SetWalk(s, walk)
		for _, f := range filters() {
			var want, got []job.ExecutionID
			for _, x := range slices.Backward(all) {
				if x.Namespace == f.Namespace && (f.Job == "" || x.Job == f.Job) && (f.Pool == "" || x.Pool == f.Pool) && (f.State == "" || x.State == f.State) {
					want = append(want, x.ID)
				}
			}
			f.Limit = 5
			for pages := 0; ; pages++ {
				rows, next, err := s.Executions(t.Context(), f)
				if err != nil || len(rows) > f.Limit || pages > 2*len(all) {
					t.Fatalf("%+v: page %d of %d rows, %v", f, pages, len(rows), err)
				}
				for _, x := range rows {
					got = append(got, x.ID)
				}
				if f.After = next; next == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("walk %d, %+v: %d rows, should be %d", walk, f, len(got), len(want))
			}
		}
	}
}

// A filter that refuses what its index has ends a page early, with a place to go on from.
func TestListWalkIsBounded(t *testing.T) {
	t.Parallel()
	s, fence := owned(t, filepath.Join(t.TempDir(), "takt.db"))
	looked := int64(0)
	for _, x := range listed(t, s, fence) {
		if x.Namespace == "ns" && x.Job == "j0" && x.State == job.ExecutionFailed {
			looked++
		}
	}
	sqlite.SetWalk(s, 2)
	f := store.ExecutionFilter{Namespace: "ns", Job: "j0", State: job.ExecutionFailed, Pool: "nothing"}
	pages := int64(0)
	for {
		rows, next, err := s.Executions(t.Context(), f)
		if err != nil || len(rows) != 0 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if pages++; next == "" {
			break
		}
		f.After = next
	}
	if want := looked/2 + 1; pages != want {
		t.Errorf("%d pages over %d rows, should be %d of 2 rows each", pages, looked, want)
	}
}

// People's lists, however long, leave connections to engines and the keeper.
func TestPeopleDelayNoEngine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "takt.db")
	synctest.Test(t, func(t *testing.T) {
		s, fence := owned(t, path)
		ids := []job.ExecutionID{listed(t, s, fence)[0].ID}
		defer sqlite.HoldLookers(s)()
		for name, call := range map[string]func(context.Context) error{
			"PartitionRows": func(ctx context.Context) error { _, err := s.PartitionRows(ctx); return err },
			"LoadPartition": func(ctx context.Context) error { _, err := s.LoadPartition(ctx, 0); return err },
			"InboxPage":     func(ctx context.Context) error { _, err := s.InboxPage(ctx, 0, 9); return err },
			"DuePage":       func(ctx context.Context) error { _, err := s.DuePage(ctx, 0, engine.WantDue{Limit: 9}); return err },
			"BacklogPage": func(ctx context.Context) error {
				_, err := s.BacklogPage(ctx, 0, engine.WantBacklog{Limit: 9})
				return err
			},
			"ExecutionPage": func(ctx context.Context) error { _, err := s.ExecutionPage(ctx, 0, ids); return err },
		} {
			if err := call(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, call := range map[string]func(context.Context) error{
			"Job":       func(ctx context.Context) error { _, err := s.Job(ctx, "ns", "j"); return err },
			"Jobs":      func(ctx context.Context) error { _, _, err := s.Jobs(ctx, "ns", store.Page{}); return err },
			"Execution": func(ctx context.Context) error { _, err := s.Execution(ctx, "ns", ids[0]); return err },
			"Executions": func(ctx context.Context) error {
				_, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "ns"})
				return err
			},
			"Shards":       func(ctx context.Context) error { _, _, err := s.Shards(ctx, "ns", ids[0], store.Page{}); return err },
			"Decisions":    func(ctx context.Context) error { _, _, err := s.Decisions(ctx, "ns", "", store.Page{}); return err },
			"Journal":      func(ctx context.Context) error { _, err := s.Journal(ctx, 0, 0, 9); return err },
			"EntryPending": func(ctx context.Context) error { _, err := s.EntryPending(ctx, 1); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s did not wait for a connection of people's: %v", name, err)
			}
			cancel()
		}
	})
}

// leaving is a caller that goes away after it was asked for a number of times.
type leaving struct {
	context.Context
	left int
}

func (c *leaving) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A list ends between two rows when its caller has gone.
func TestListEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	s, fence := owned(t, filepath.Join(t.TempDir(), "takt.db"))
	listed(t, s, fence)
	ctx := &leaving{t.Context(), 10}
	rows, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "ns"})
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != "gave_up" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if _, _, err := s.Executions(t.Context(), store.ExecutionFilter{Namespace: "ns"}); err != nil {
		t.Errorf("the next list: %v", err)
	}
}
