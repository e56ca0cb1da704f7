package storetest

import (
	"time"

	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var filterCases = []examCase{
	{"Reader/executions by query", func(tb TB, s store.Store) {
		d := sit(tb, s)
		var failed, rest []job.ExecutionID // newest first
		for n := range 603 {
			e := d.insert(job.ExecutionRunning, job.ShardLeased)
			switch n % 300 {
			case 0:
				d.commit(finish(e, job.ExecutionFailed))
				failed = append([]job.ExecutionID{e.ID}, failed...)
				continue
			case 1:
				d.commit(finish(e, job.ExecutionSucceeded))
			}
			rest = append([]job.ExecutionID{e.ID}, rest...)
		}
		list := func(text string, limit int) (ids []job.ExecutionID) {
			q, err := filter.Parse(text, time.UnixMilli(1<<40))
			if err != nil {
				tb.Fatalf("%s: %v", text, err)
			}
			f := store.ExecutionFilter{Namespace: "ns", Query: q, Page: store.Page{Limit: limit}}
			for {
				rows, next, err := s.Executions(ctx, f)
				if err != nil || len(rows) > limit {
					tb.Fatalf("Executions %s: %d rows, %v", text, len(rows), err)
				}
				for i := range rows {
					ids = append(ids, rows[i].ID)
				}
				if f.After = next; next == "" {
					return ids
				}
			}
		}
		for _, limit := range []int{1, 2, 100} {
			equal(tb, "failed", list("state:failed", limit), failed)
			equal(tb, "failed of the job", list("-state:running,succeeded job:j* pool:p", limit), failed)
			equal(tb, "of no job", list("job:x", limit), nil)
			equal(tb, "planned", list("state:failed planned<2099-01-01 planned>1970-01-02", limit), failed)
			equal(tb, "more shards than any has", list("shards>1000", limit), nil)
		}
		equal(tb, "the rest", list("-state:failed", 400), rest)
		_, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "other", Query: filter.Query{Terms: []filter.Term{{Field: "job", Op: filter.Is, Texts: []string{"*"}}}}})
		equal(tb, "another namespace", err, nil)
	}},
}
