package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Rows that are large: so many of such a size are more than a page may hold, and no two are alike.
const (
	largeRows  = 40
	largeBytes = 250 << 10
)

func large(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", largeBytes)))
}

var byteCases = []examCase{
	{"Bytes/rows that cannot be used", unfitRows},
	{"Bytes/lists", func(tb TB, s store.Store) {
		d := sit(tb, s)
		_, b := d.execution(job.ExecutionRunning)
		for n := range largeRows {
			d.putJob(fmt.Sprintf("j%02d", n), byte(n+1), job.Spec{Pool: "p", Handler: "h", Params: large(n)})
			_, one := d.execution([]job.ExecutionState{job.ExecutionRunning, job.ExecutionFailed}[n%2])
			one.Executions[0].Row.Params = large(n)
			d.commit(one)
			b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: b.Executions[0].Row.ID, Index: n, State: job.ShardLeased, Result: large(n)}})
		}
		d.commit(b)
		parent := b.Executions[0].Row.ID
		bounded(tb, "jobs", func(p store.Page) ([]store.JobRow, string, error) { return s.Jobs(ctx, "ns", p) },
			func(r store.JobRow) int { return len(r.Definition.Spec.Params) }, largeRows)
		bounded(tb, "executions", func(p store.Page) ([]job.Execution, string, error) {
			return s.Executions(ctx, store.ExecutionFilter{Namespace: "ns", Page: p})
		}, func(e job.Execution) int { return len(e.Params) }, largeRows+1)
		bounded(tb, "shards", func(p store.Page) ([]job.Shard, string, error) { return s.Shards(ctx, "ns", parent, p) },
			func(s job.Shard) int { return len(s.Result) }, largeRows)
	}},
	{"Bytes/engine", func(tb TB, s store.Store) {
		d := sit(tb, s)
		var ids []job.ExecutionID
		for n := range largeRows {
			def, _ := d.putJob(fmt.Sprintf("j%02d", n), byte(n+1), job.Spec{Pool: "p", Handler: "h", Params: large(n)})
			e, b := d.execution(job.ExecutionQueued, job.ShardQueued)
			b.Executions[0].Row.Params, b.Executions[0].Row.JobUID = large(-n), def.UID
			b.Cursors = []job.Cursor{{Job: def.UID, Schedule: "s", Next: noon}}
			d.commit(b)
			ids = append(ids, e.ID)
		}
		boundedPages(tb, "BacklogPage", largeRows, backlogPages(s))
		boundedPages(tb, "DuePage", largeRows, duePages(s))
		boundedPages(tb, "ExecutionPage", largeRows, executionPages(s, ids))
	}},
	{"Bytes/a row that is larger than a page", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e, b := d.execution(job.ExecutionQueued)
		b.Shards = nil
		for n := range largeRows {
			b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: e.ID, Index: n, State: job.ShardQueued, Checkpoint: large(n)}})
		}
		d.commit(b)
		d.insert(job.ExecutionQueued, job.ShardQueued)
		page, err := s.BacklogPage(ctx, 0, engine.WantBacklog{Limit: 9})
		wantVerdict(tb, "BacklogPage", err, "ok")
		equal(tb, "rows and partial", []any{len(page.Rows), page.Partial}, []any{1, true})
	}},
}

// bounded walks a list whose rows are all together larger than a page: in pages that are not, to its end.
func bounded[T any](tb TB, what string, list func(store.Page) ([]T, string, error), size func(T) int, want int) {
	tb.Helper()
	var p store.Page
	boundedPages(tb, what, want, func() (rows, bytes int, more bool) {
		p.Limit = 1000
		got, next, err := list(p)
		wantVerdict(tb, what, err, "ok")
		for _, r := range got {
			bytes += size(r)
		}
		p.After = next
		return len(got), bytes, next != ""
	})
}

func boundedPages(tb TB, what string, want int, page func() (rows, bytes int, more bool)) {
	tb.Helper()
	total := 0
	for pages := 1; ; pages++ {
		rows, bytes, more := page()
		if rows == 0 || bytes > store.PageBytes {
			tb.Fatalf("%s: page %d has %d rows with %d bytes", what, pages, rows, bytes)
		}
		total += rows
		if !more {
			if total != want || pages < 2 {
				tb.Errorf("%s: %d rows in %d pages, should be %d in several", what, total, pages, want)
			}
			return
		}
	}
}

func backlogPages(s store.Store) func() (int, int, bool) {
	want := engine.WantBacklog{Limit: 1000}
	return func() (rows, bytes int, more bool) {
		page, err := s.BacklogPage(ctx, 0, want)
		if err != nil || len(page.Rows) == 0 {
			return 0, 0, false
		}
		for _, r := range page.Rows {
			bytes += len(r.Execution.Params) + len(r.Definition.Spec.Params)
			want.PlannedAt, want.ID = r.Execution.PlannedAt, r.Execution.ID
		}
		return len(page.Rows), bytes, page.Partial
	}
}

func duePages(s store.Store) func() (int, int, bool) {
	want := engine.WantDue{Until: noon, Limit: 1000}
	return func() (rows, bytes int, more bool) {
		page, err := s.DuePage(ctx, 0, want)
		if err != nil || len(page.Items) == 0 {
			return 0, 0, false
		}
		for _, d := range page.Items {
			bytes += len(d.Definition.Spec.Params)
			want.After = &d.Cursor
		}
		return len(page.Items), bytes, page.Partial
	}
}

func executionPages(s store.Store, ids []job.ExecutionID) func() (int, int, bool) {
	return func() (rows, bytes int, more bool) {
		page, err := s.ExecutionPage(ctx, 0, ids)
		if err != nil || len(page.Rows) != len(page.Asked) {
			return 0, 0, false
		}
		for _, r := range page.Rows {
			bytes += len(r.Execution.Params) + len(r.Definition.Spec.Params)
		}
		ids = ids[len(page.Asked):]
		return len(page.Rows), bytes, len(ids) > 0
	}
}
