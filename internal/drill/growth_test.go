package drill_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// Growth measures every list and page of people's on a database with many finished executions behind it.
//
//	TAKT_GROWTH_POSTGRES=10000000 TAKT_GROWTH_DSN=postgres://…/growth go test ./internal/drill -run TestGrowth -v -timeout 2h
//	TAKT_GROWTH_SQLITE=1000000 TAKT_GROWTH_DIR=/some/dir              go test ./internal/drill -run TestGrowth -v -timeout 2h
//
// Without a size it asks for the same on small ones, and only for answers. What was filled once is used again.
const (
	envGrowthPostgres = "TAKT_GROWTH_POSTGRES"
	envGrowthSQLite   = "TAKT_GROWTH_SQLITE"
	envGrowthDSN      = "TAKT_GROWTH_DSN" // "": a database of the test's own
	envGrowthDir      = "TAKT_GROWTH_DIR" // "": a directory of the test's own
)

const (
	growthSmall  = 3000
	growthTarget = 50 * time.Millisecond // for the median of a page
)

// sized is the size of a drill; not measured: only its small twin.
func sized(t *testing.T, name string, small int) (n int, measured bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return small, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of executions", name, text)
	}
	return n, true
}

// fields gives the two databases to a drill.
func fields(t *testing.T, small int, run func(t *testing.T, c crop, st store.Store, cfg app.Config, measured bool)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		n, measured := sized(t, envGrowthPostgres, small)
		dsn := os.Getenv(envGrowthDSN)
		if dsn == "" {
			dsn = pgtest.Start(t).Database(t)
		}
		c := newCrop(n)
		run(t, c, c.growPostgres(t, dsn), app.Config{Database: dsn}, measured)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		n, measured := sized(t, envGrowthSQLite, small)
		dir := os.Getenv(envGrowthDir)
		if dir == "" {
			dir = t.TempDir()
		}
		c := newCrop(n)
		run(t, c, c.growSQLite(t, dir), app.Config{DataDir: dir}, measured)
	})
}

// serve runs a server on a store that is there; its address is returned.
func serveStore(t *testing.T, cfg app.Config, st store.Store) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	const forever = 9 * 365 * 24 * time.Hour // nothing of the crop is swept
	cfg.Keep = control.Keep{Executions: forever, Logs: forever, Decisions: forever, Journal: forever, RequestKeys: forever}
	cfg.Listen, cfg.Store, cfg.Server = "127.0.0.1:0", st, "growth"
	cfg.Database = ""
	if cfg.DataDir != "" {
		cfg.DataDir = t.TempDir() // of the lock file
	}
	a, err := app.New(ctx, cfg)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + a.Addr()
}

// growthPage is a page of people's: at the store and at the server.
type growthPage struct {
	name string
	at   func(ctx context.Context, st store.Store) (rows int, err error)
	path string
}

// growthPages are all lists and pages.
func growthPages(c crop) []growthPage {
	all := store.ExecutionFilter{Namespace: "default"}
	with := func(change func(*store.ExecutionFilter)) store.ExecutionFilter { f := all; change(&f); return f }
	middle := func(f store.ExecutionFilter) store.ExecutionFilter {
		e, _ := c.execution(c.n / 2)
		f.After = store.After("executions", e.ID)
		return f
	}
	lists := []growthPage{
		listPage("all", all, ""),
		listPage("all, from the middle", middle(all), ""),
		listPage("of a small namespace", store.ExecutionFilter{Namespace: "rare"}, ""),
		listPage("of a job", with(func(f *store.ExecutionFilter) { f.Job = cropJob(3) }), ""),
		listPage("of a rare job, from the middle", middle(with(func(f *store.ExecutionFilter) { f.Job = cropJob(150) })), ""),
		listPage("of a pool", with(func(f *store.ExecutionFilter) { f.Pool = "pool-7" }), ""),
		listPage("succeeded", with(func(f *store.ExecutionFilter) { f.State = job.ExecutionSucceeded }), ""),
		listPage("failed", with(func(f *store.ExecutionFilter) { f.State = job.ExecutionFailed }), ""),
		listPage("cancelled, from the middle", middle(with(func(f *store.ExecutionFilter) { f.State = job.ExecutionCancelled })), ""),
		listPage("failed of a job", with(func(f *store.ExecutionFilter) { f.State, f.Job = job.ExecutionFailed, cropJob(150) }), ""),
		listPage("failed of a pool", with(func(f *store.ExecutionFilter) { f.State, f.Pool = job.ExecutionFailed, "pool-7" }), ""),
		listPage("queued", with(func(f *store.ExecutionFilter) { f.State = job.ExecutionQueued }), ""),
		listPage("running: none", with(func(f *store.ExecutionFilter) { f.State = job.ExecutionRunning }), ""),
		listPage("partially succeeded: none", with(func(f *store.ExecutionFilter) { f.State = job.ExecutionPartiallySucceeded }), ""),
		listPage("of a pool and a job that are not together", with(func(f *store.ExecutionFilter) { f.Job, f.Pool = cropJob(3), "pool-7" }), ""),
		listPage("query: failed or timed out", all, "state:failed,timed_out"),
		listPage("query: of jobs that begin so", all, "job:job-15*"),
		listPage("query: planned a week ago", all, "planned<7d planned>8d"),
		listPage("query: planned before all", all, "planned<2020-01-01"),
		listPage("query: what none is", all, "shards>100000"),
	}
	return append(lists, detailPages(c)...)
}

func listPage(name string, f store.ExecutionFilter, q string) growthPage {
	values := url.Values{}
	for k, v := range map[string]string{"job": f.Job, "pool": f.Pool, "state": string(f.State), "q": q, "after": f.After} {
		if v != "" {
			values.Set(k, v)
		}
	}
	return growthPage{name, func(ctx context.Context, st store.Store) (int, error) {
		if q != "" {
			var err error
			if f.Query, err = filter.Parse(q, time.UnixMilli(int64(cropEnd))); err != nil {
				return 0, err
			}
		}
		rows, _, err := st.Executions(ctx, f)
		return len(rows), err
	}, "/namespaces/" + f.Namespace + "/executions?" + values.Encode()}
}

func detailPages(c crop) []growthPage {
	last, big := c.last(), c.big()
	one, large := "/namespaces/"+last.Namespace+"/executions/"+last.ID.String(), "/namespaces/default/executions/"+big.ID.String()
	return []growthPage{{"an execution", func(ctx context.Context, st store.Store) (int, error) {
		_, err := st.Execution(ctx, last.Namespace, last.ID)
		return 1, err
	}, one}, {"its shards", func(ctx context.Context, st store.Store) (int, error) {
		rows, _, err := st.Shards(ctx, last.Namespace, last.ID, store.Page{})
		return len(rows), err
	}, one + "/shards"}, {"shards of a large one", func(ctx context.Context, st store.Store) (int, error) {
		rows, _, err := st.Shards(ctx, big.Namespace, big.ID, store.Page{})
		return len(rows), err
	}, large + "/shards"}, {"a log", func(ctx context.Context, st store.Store) (int, error) {
		page, err := st.ReadLogs(ctx, store.LogFilter{Execution: big.ID, Shard: -1})
		return len(page.Rows), err
	}, large + "/logs"}, {"jobs", func(ctx context.Context, st store.Store) (int, error) {
		rows, _, err := st.Jobs(ctx, "default", store.Page{})
		return len(rows), err
	}, "/namespaces/default/jobs"}, {"a job", func(ctx context.Context, st store.Store) (int, error) {
		_, err := st.Job(ctx, "default", cropJob(3))
		return 1, err
	}, "/namespaces/default/jobs/" + cropJob(3)}, {"decisions", func(ctx context.Context, st store.Store) (int, error) {
		rows, _, err := st.Decisions(ctx, "default", "", store.Page{})
		return len(rows), err
	}, "/namespaces/default/decisions"}}
}

// repeated is the median and the longest of some calls, after one that warms up.
func repeated(times int, call func() error) (median, longest time.Duration, err error) {
	var took []time.Duration
	for i := range times + 1 {
		begun := time.Now()
		if err := call(); err != nil {
			return 0, 0, err
		}
		if i > 0 {
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1], nil
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	fields(t, growthSmall, func(t *testing.T, c crop, st store.Store, cfg app.Config, measured bool) {
		base, times := serveStore(t, cfg, st), 1
		if measured {
			times = 20
		}
		var report strings.Builder
		fmt.Fprintf(&report, "%d executions\n| page | rows | store p50 | max | server p50 | max |\n|---|---|---|---|---|---|\n", c.n)
		for _, p := range growthPages(c) {
			rows := 0
			median, longest, err := repeated(times, func() (err error) { rows, err = p.at(t.Context(), st); return err })
			if err != nil {
				t.Errorf("%s at the store: %v", p.name, err)
			}
			served, slowest, err := repeated(times, func() error { return fetch(t.Context(), base+"/api/v1"+p.path) })
			if err != nil {
				t.Errorf("%s at the server: %v", p.name, err)
			}
			short := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64) }
			fmt.Fprintf(&report, "| %s | %d | %s | %s | %s | %s |\n", p.name, rows, short(median), short(longest), short(served), short(slowest))
			if measured && max(median, served) > growthTarget {
				t.Errorf("%s takes %v at the store, %v at the server; the target is %v", p.name, median, served, growthTarget)
			}
		}
		if measured {
			t.Log(report.String())
		}
	})
}

func fetch(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", res.StatusCode, body)
	}
	return err
}
