package storetest

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// endOfTime is behind every instant of a history.
const endOfTime = job.Instant(1) << 50

// compareAll reads everything there is to read.
func (h *history) compareAll() {
	h.tb.Helper()
	for p := range partitions {
		h.comparePartition(p)
		h.compareInbox(p, 1000)
		h.compareInbox(p, 3)
		h.compareDue(engine.WantDue{Until: endOfTime, Limit: 2}, p)
		h.compareDue(engine.WantDue{Owed: true, Limit: 2}, p)
		h.compareBacklog(p, 5)
		ids := h.manyIDs(1 << 20)
		_, _ = both(h, "ExecutionPage", func(s store.Store) (engine.ExecutionPage, error) { return s.ExecutionPage(ctx, p, ids) })
		var refs []engine.ShardRef
		for i, id := range ids {
			refs = append(refs, engine.ShardRef{Execution: id, Index: i%4 - 1})
		}
		_, _ = both(h, "ShardPage", func(s store.Store) (engine.ShardPage, error) { return s.ShardPage(ctx, p, refs) })
		_, _ = both(h, "Journal", func(s store.Store) ([]store.JournalRow, error) { return s.Journal(ctx, p, 3, 1000) })
	}
	for _, namespace := range []string{"a", "b", "nowhere"} {
		_, _ = both(h, "Jobs", walk(2, func(s store.Store, p store.Page) ([]store.JobRow, string, error) { return s.Jobs(ctx, namespace, p) }))
		h.compareExecutions(store.ExecutionFilter{Namespace: namespace, Page: store.Page{Limit: 20}})
		h.compareExecutions(store.ExecutionFilter{Namespace: namespace, State: job.ExecutionFailed, Page: store.Page{Limit: 3}})
		h.compareExecutions(store.ExecutionFilter{Namespace: namespace, Job: "job-1", Page: store.Page{Limit: 3}})
		h.compareDecisions(namespace, "", 5)
		h.compareDecisions(namespace, "job-2", 5)
	}
	for n := range 6 {
		h.compareCalendar([]string{"a", "b"}[n%2], []string{"cal-0", "cal-1", "cal-2"}[n/2])
	}
	for _, id := range h.manyIDs(10) {
		h.compareShards("a", id, 1)
	}
}

// comparePartition reads what a new owner would.
func (h *history) comparePartition(p int) {
	h.tb.Helper()
	_, _ = both(h, "PartitionRows", func(s store.Store) ([]store.PartitionRow, error) { return s.PartitionRows(ctx) })
	_, _ = both(h, "LoadPartition", func(s store.Store) (engine.Loaded, error) { return s.LoadPartition(ctx, p) })
}

func (h *history) compareInbox(p, limit int) {
	h.tb.Helper()
	_, _ = both(h, "InboxPage", func(s store.Store) (engine.InboxPage, error) { return s.InboxPage(ctx, p, limit) })
}

// compareDue walks pages as the engine does.
func (h *history) compareDue(want engine.WantDue, p int) {
	h.tb.Helper()
	for {
		page, _ := both(h, "DuePage", func(s store.Store) (engine.DuePage, error) { return s.DuePage(ctx, p, want) })
		if !page.Partial {
			return
		}
		want.After = &page.Items[len(page.Items)-1].Cursor
	}
}

func (h *history) compareBacklog(p, limit int) {
	h.tb.Helper()
	want := engine.WantBacklog{Limit: limit}
	for {
		page, _ := both(h, "BacklogPage", func(s store.Store) (engine.BacklogPage, error) { return s.BacklogPage(ctx, p, want) })
		if !page.Partial {
			return
		}
		last := page.Rows[len(page.Rows)-1].Execution
		want.PlannedAt, want.ID = last.PlannedAt, last.ID
	}
}

func (h *history) compareExecutions(f store.ExecutionFilter) {
	h.tb.Helper()
	_, _ = both(h, "Executions", walk(f.Limit, func(s store.Store, p store.Page) ([]job.Execution, string, error) {
		f.Page = p
		return s.Executions(ctx, f)
	}))
}

func (h *history) compareShards(namespace string, id job.ExecutionID, limit int) {
	h.tb.Helper()
	_, _ = both(h, "Shards", walk(limit, func(s store.Store, p store.Page) ([]job.Shard, string, error) {
		return s.Shards(ctx, namespace, id, p)
	}))
}

func (h *history) compareDecisions(namespace, name string, limit int) {
	h.tb.Helper()
	_, _ = both(h, "Decisions", walk(limit, func(s store.Store, p store.Page) ([]job.Decision, string, error) {
		return s.Decisions(ctx, namespace, name, p)
	}))
}

// walk reads at most 4 pages of a list; the pages' own texts are the store's business.
func walk[T any](limit int, f func(store.Store, store.Page) ([]T, string, error)) func(store.Store) ([][]T, error) {
	return func(s store.Store) ([][]T, error) {
		var pages [][]T
		p := store.Page{Limit: limit}
		for range 4 {
			rows, next, err := f(s, p)
			if err != nil {
				return nil, err
			}
			pages = append(pages, rows)
			if next == "" {
				return append(pages, nil), nil // the mark of an end
			}
			p.After = next
		}
		return pages, nil
	}
}
