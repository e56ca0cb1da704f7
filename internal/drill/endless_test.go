package drill_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// C79, lists without an end: whatever is asked for, an answer is a page of bounded size that comes soon, or a refusal.
//
//	TAKT_GROWTH_POSTGRES=2000000 TAKT_GROWTH_SQLITE=2000000 go test ./internal/drill -run TestC79ListsWithoutEnd -v -timeout 2h
const (
	endlessSmall = 3000
	endlessTime  = 500 * time.Millisecond
	endlessBytes = 50 << 20
	endlessRows  = 500 // of a page, at most; 100 unless asked for
)

// asked is one call for a list: refused, or a page of at most so many rows.
type asked struct {
	query  string
	status int
	rows   int
}

func endless(c crop) map[string]asked {
	foreign, _ := c.execution(c.n - c.n%10 - 7)
	q := func(text string) string { return "q=" + url.QueryEscape(text) }
	return map[string]asked{
		"no limit":              {"", 200, 100},
		"limit 0":               {"limit=0", 422, 0},
		"limit -1":              {"limit=-1", 422, 0},
		"limit 2^31-1":          {"limit=2147483647", 422, 0},
		"limit over 64 bits":    {"limit=9999999999999999999", 422, 0},
		"the largest limit":     {"limit=500", 200, endlessRows},
		"one more":              {"limit=501", 422, 0},
		"a page by number":      {"page=1000000000000000000", 422, 0},
		"another order":         {"sort=params", 422, 0},
		"garbage as place":      {"after=garbage", 422, 0},
		"NUL as place":          {"after=%00", 422, 0},
		"place of another list": {"after=" + store.After("jobs", "x"), 422, 0},
		"place of a tenant":     {"after=" + store.After("executions", foreign.ID), 200, 100},
		"search for %":          {q("job:%"), 200, 0},
		"search for all":        {q("job:*"), 200, 100},
		"search for none":       {q("shards>100000"), 200, 0},
		"search for a NUL":      {q("job:\x00"), 422, 0},
		"the first of all":      {q("planned<2026-04-25"), 200, 100},
	}
}

func TestC79ListsWithoutEnd(t *testing.T) {
	t.Parallel()
	fields(t, endlessSmall, func(t *testing.T, c crop, st store.Store, cfg app.Config, measured bool) {
		if err := c.paged(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		base := serveStore(t, cfg, st)
		times := 1
		if measured {
			times = 20
		}
		for _, name := range slices.Sorted(maps.Keys(endless(c))) {
			a := endless(c)[name]
			median, longest, err := repeated(times, func() error { return a.call(t.Context(), base) })
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if measured {
				t.Logf("%s: %v, longest %v", name, median.Round(10*time.Microsecond), longest.Round(10*time.Microsecond))
			}
			if measured && longest > endlessTime {
				t.Errorf("%s took %v", name, longest)
			}
		}
		atOnceEndless(t, c, base, measured)
		pagedWhileChanged(t, st, base)
	})
}

// call checks the answer: its status, its size and its rows, all of one namespace.
func (a asked) call(ctx context.Context, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/namespaces/default/executions?"+a.query, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, endlessBytes+1))
	_ = res.Body.Close()
	if err != nil || len(body) > endlessBytes {
		return errors.Join(err, fmt.Errorf("%d bytes", len(body)))
	}
	if res.StatusCode != a.status && (a.status != 422 || res.StatusCode != 400) {
		return fmt.Errorf("answered %d, should be %d: %.300s", res.StatusCode, a.status, body)
	}
	if res.StatusCode != http.StatusOK {
		return nil
	}
	var list takt.ExecutionList
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	if len(list.Items) > a.rows {
		return fmt.Errorf("%d rows, at most %d were asked for", len(list.Items), a.rows)
	}
	for _, e := range list.Items {
		if e.Namespace != "default" {
			return fmt.Errorf("a row of the namespace %s", e.Namespace)
		}
	}
	return nil
}

// atOnceEndless asks fifty times at once: an answer, or a refusal that says to come again.
func atOnceEndless(t *testing.T, c crop, base string, measured bool) {
	t.Helper()
	var all sync.WaitGroup
	begun := time.Now()
	queries := endless(c)
	names := slices.Sorted(maps.Keys(queries))
	for i := range 50 {
		all.Go(func() {
			name := names[i%len(names)]
			if err := queries[name].call(t.Context(), base); err != nil {
				t.Errorf("%s, fifty at once: %v", name, err)
			}
		})
	}
	all.Wait()
	if measured {
		t.Logf("fifty at once: %v together", time.Since(begun).Round(time.Millisecond))
	}
}

const pagedRows = 300

// paged adds the executions that are walked, of a namespace of their own, and a job that makes more.
func (c crop) paged(ctx context.Context, st store.Store) error {
	uid := job.UID{6}
	binary.BigEndian.PutUint64(uid[8:], uint64(time.Now().UnixNano())) //nolint:gosec // only has to be new
	if _, _, err := st.PutJob(ctx, store.PutJob{At: c.from, Definition: job.Definition{UID: uid, Namespace: "paged", Name: "j", Spec: job.Spec{Pool: "p", Handler: "h"}}}); err != nil {
		return err
	}
	rows, err := st.PartitionRows(ctx)
	if err != nil {
		return err
	}
	row, err := st.AcquirePartition(ctx, rows[0], "the one that fills", 0, engine.Level)
	if err != nil {
		return err
	}
	var b engine.Batch
	for n := range pagedRows {
		at := cropEnd - 1000 + job.Instant(n)
		p := job.Execution{ID: job.PlannedID(uid, at), Namespace: "paged", Job: "j", JobUID: uid, Revision: 1, Pool: "p", Handler: "h",
			Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: 1, State: job.ExecutionSucceeded, EndedAt: at}
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: p})
		b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: p.ID, State: job.ShardSucceeded}})
	}
	if err := c.commit(ctx, st, &row, b); err != nil {
		return err
	}
	return st.ReleasePartition(ctx, row.Fence)
}

// pagedWhileChanged walks a namespace while its oldest executions are deleted and new ones are made: what was there
// all the time comes once, in order.
func pagedWhileChanged(t *testing.T, st store.Store, base string) {
	t.Helper()
	ctx := t.Context()
	f := store.ExecutionFilter{Namespace: "paged", Page: store.Page{Limit: 1000}}
	before, _, err := st.Executions(ctx, f)
	if err != nil || len(before) < 10 {
		t.Fatalf("%d executions to page through, %v", len(before), err)
	}
	edge := before[2*len(before)/3]
	changed, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(changed)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := st.SweepExecutions(context.WithoutCancel(ctx), "paged", edge.PlannedAt, 4); err != nil {
				t.Errorf("sweep: %v", err)
			}
			_, err := st.Trigger(context.WithoutCancel(ctx), store.Trigger{Namespace: "paged", Job: "j", Execution: job.RequestedID(cropEnd+job.Instant(n), [10]byte{byte(n), byte(time.Now().UnixNano())})},
				func(job.Definition) int { return 0 })
			if err != nil {
				t.Errorf("trigger: %v", err)
			}
		}
	}()
	count, last, after := map[string]int{}, "~", ""
	for {
		var list takt.ExecutionList
		if err := fetchInto(ctx, base+"/api/v1/namespaces/paged/executions?limit=20&after="+after, &list); err != nil {
			t.Error(err)
			break
		}
		for _, e := range list.Items {
			if count[e.ID]++; e.ID >= last {
				t.Errorf("%s comes behind %s", e.ID, last)
			}
			last = e.ID
		}
		if after = list.Next; after == "" {
			break
		}
	}
	close(stop)
	<-changed
	for _, e := range before {
		if n := count[e.ID.String()]; n > 1 || n == 0 && e.PlannedAt >= edge.PlannedAt {
			t.Errorf("%v came %d times", e.ID, n)
		}
	}
}

func fetchInto(ctx context.Context, address string, v any) error {
	var body bytes.Buffer
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, err = body.ReadFrom(res.Body)
	_ = res.Body.Close()
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", res.StatusCode, body.String())
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body.Bytes(), v)
}
