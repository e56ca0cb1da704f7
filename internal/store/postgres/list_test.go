package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
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

// owned takes partition 0.
func owned(t *testing.T, s *postgres.Store) store.Fence {
	t.Helper()
	rows, err := s.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := s.AcquirePartition(t.Context(), rows[0], "me", 0, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	return row.Fence
}

// listed fills a store with executions of two jobs, pools and namespaces in every state, oldest first, over eight months.
func listed(t *testing.T, s *postgres.Store, f store.Fence) (all []job.Execution) {
	t.Helper()
	states := []job.ExecutionState{job.ExecutionQueued, job.ExecutionRunning, job.ExecutionCancelling, job.ExecutionSucceeded, job.ExecutionFailed,
		job.ExecutionSucceeded, job.ExecutionTimedOut}
	var b engine.Batch
	for n := range 120 {
		at := noon + job.Instant(n)*job.Instant((48*time.Hour).Milliseconds())
		x := job.Execution{ID: job.PlannedID(job.UID{1}, at), Namespace: []string{"ns", "ns", "other"}[n%3], Job: fmt.Sprintf("j%d", n/3%2), JobUID: job.UID{1},
			Revision: 1, Pool: fmt.Sprintf("p%d", n/7%2), Handler: "h", Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: 1, State: states[n%len(states)],
			Params: []byte(`{"n":1}`), CreatedAt: at}
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: x})
		b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: x.ID, State: job.ShardSucceeded}})
		all = append(all, x)
	}
	b.Seq = f.Seq + 1
	if err := s.Commit(t.Context(), f, &b); err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	scans = regexp.MustCompile(`(?m)^.*(Index|Index Only) Scan .*$`)
	other = regexp.MustCompile(`(?m)^.*(Seq Scan|Bitmap|->  Sort|Incremental Sort|Hash|Merge Join).*$`)
	marks = regexp.MustCompile(`\$\d+`)
)

// arguments are as many literals as a text has marks.
func arguments(text string) []string {
	n := 0
	for _, m := range marks.FindAllString(text, -1) {
		var k int
		_, _ = fmt.Sscanf(m, "$%d", &k)
		n = max(n, k)
	}
	return slices.Repeat([]string{"NULL"}, n)
}

// Each list goes along an index that has its rows in order, from the place it begins at, whatever the tables hold: in
// empty ones the planner knows nothing.
func TestListPlans(t *testing.T) {
	t.Parallel()
	s := open(t, 1)
	for _, full := range []bool{false, true} {
		if full {
			listed(t, s, owned(t, s))
		}
		for _, f := range filters() {
			for _, text := range postgres.ListTexts(f) {
				checkPlan(t, s, text, `ROW(namespace, `)
			}
		}
		for _, text := range postgres.OtherListTexts() {
			checkPlan(t, s, text, "")
		}
	}
}

func checkPlan(t *testing.T, s *postgres.Store, text, row string) {
	t.Helper()
	plan, err := postgres.Plan(t.Context(), s, text, false, arguments(text)...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if strings.Contains(plan, "One-Time Filter: false") { // there is no month yet
		return
	}
	if bad := other.FindString(plan); bad != "" {
		t.Errorf("%s\n%s\n%s", bad, text, plan)
	}
	if row == "" {
		return
	}
	// a scan that passes over rows may pass over millions: only what comes out of it may be filtered
	if n := strings.Count(plan, "Filter:") - strings.Count(text, "AS looked"); n > 0 || strings.Contains(plan, "AND (ROW(") {
		t.Errorf("a scan passes over rows\n%s\n%s", text, plan)
	}
	// the row that is ordered must be the row that the index is entered by, in each table
	_, order, _ := strings.Cut(text, "WHERE (")
	columns, _, _ := strings.Cut(order, ")")
	key := "ROW(" + columns + ") < ROW("
	if n := len(scans.FindAllString(plan, -1)); n != strings.Count(plan, key) {
		t.Errorf("%d scans, not each by %s\n%s\n%s", n, key, text, plan)
	}
}

// However few rows a page may look at, the pages together are the list: complete, in order, nothing twice.
func TestListWalks(t *testing.T) {
	t.Parallel()
	s := open(t, 1)
	all := listed(t, s, owned(t, s))
	for _, walk := range []int{1, 7, 1000} {
		postgres.SetWalk(s, walk)
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

// Texts that PostgreSQL refuses name nothing: a list is empty, a page is not found, a place is none.
func TestUncleanNamesFindNothing(t *testing.T) {
	t.Parallel()
	s := open(t, 1)
	listed(t, s, owned(t, s))
	ctx := t.Context()
	for _, bad := range []string{"ns\x00", "\xff"} {
		for what, read := range map[string]func() (int, error){
			"namespace": func() (int, error) {
				rows, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: bad})
				return len(rows), err
			},
			"job": func() (int, error) {
				rows, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "ns", Job: bad})
				return len(rows), err
			},
			"pool": func() (int, error) {
				rows, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "ns", Pool: bad})
				return len(rows), err
			},
			"jobs": func() (int, error) { rows, _, err := s.Jobs(ctx, bad, store.Page{}); return len(rows), err },
			"jobs behind": func() (int, error) {
				rows, _, err := s.Jobs(ctx, "ns", store.Page{After: store.After("jobs", bad)})
				return len(rows), err
			},
			"decisions": func() (int, error) { rows, _, err := s.Decisions(ctx, "ns", bad, store.Page{}); return len(rows), err },
		} {
			if n, err := read(); n != 0 || err != nil {
				t.Errorf("%s %q: %d rows, %v", what, bad, n, err)
			}
		}
		for what, read := range map[string]func() error{
			"job":       func() error { _, err := s.Job(ctx, "ns", bad); return err },
			"revision":  func() error { _, err := s.Revision(ctx, "ns", bad, 1); return err },
			"revisions": func() error { _, _, err := s.Revisions(ctx, bad, "j", store.Page{}); return err },
		} {
			if got := verdict(read()); got != "not_found/job_not_found" {
				t.Errorf("%s %q: %s", what, bad, got)
			}
		}
	}
}

// People's lists, however long, leave connections to engines, the keeper and people's writes.
func TestListsDelayNobody(t *testing.T) {
	t.Parallel()
	s := open(t, 1)
	ids := []job.ExecutionID{listed(t, s, owned(t, s))[0].ID}
	release, err := postgres.HoldLists(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for name, call := range map[string]func(context.Context) error{
		"PartitionRows": func(ctx context.Context) error { _, err := s.PartitionRows(ctx); return err },
		"LoadPartition": func(ctx context.Context) error { _, err := s.LoadPartition(ctx, 0); return err },
		"InboxPage":     func(ctx context.Context) error { _, err := s.InboxPage(ctx, 0, 9); return err },
		"ExecutionPage": func(ctx context.Context) error { _, err := s.ExecutionPage(ctx, 0, ids); return err },
		"PutJob":        func(ctx context.Context) error { _, _, err := s.PutJob(ctx, put("j", "h", 1, 0)); return err },
		"Ask": func(ctx context.Context) error {
			_, err := s.Ask(ctx, store.Ask{Kind: engine.EntryCancel, Namespace: "ns", Execution: ids[0], At: noon})
			return err
		},
	} {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range map[string]func(context.Context) error{
		"Job": func(ctx context.Context) error { _, err := s.Job(ctx, "ns", "j"); return err },
		"Executions": func(ctx context.Context) error {
			_, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "ns"})
			return err
		},
		"Shards":    func(ctx context.Context) error { _, _, err := s.Shards(ctx, "ns", ids[0], store.Page{}); return err },
		"Decisions": func(ctx context.Context) error { _, _, err := s.Decisions(ctx, "ns", "", store.Page{}); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s did not wait for a connection of lists: %v", name, err)
		}
		cancel()
	}
}
