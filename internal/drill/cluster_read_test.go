package drill_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// read adds what the database holds.
func (c *cluster) read(h *drill.History) {
	c.t.Helper()
	ctx := context.Background()
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(c.dir, "takt.db"), NoSync: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			c.t.Error(err)
		}
	}()
	var all []store.JournalRow
	parts, err := st.PartitionRows(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	for p := range parts {
		rows, err := st.Journal(ctx, p, 0, 1<<30)
		if err != nil {
			c.t.Fatal(err)
		}
		for i, r := range rows {
			if r.Seq != int64(i)+1 {
				c.t.Errorf("the journal of partition %d has a gap: seq %d in place %d", p, r.Seq, i+1)
			}
		}
		all = append(all, rows...)
	}
	journal, err := drill.ReadJournal(all)
	if err != nil {
		c.t.Fatal(err)
	}
	drill.Seen(journal, c.seen)
	for i := range journal {
		journal[i].Mono = c.steps[[2]int64{int64(journal[i].Partition), journal[i].Seq}]
	}
	h.Events = drill.Merge(journal, c.traces)
	h.Executions = allExecutions(c.t, st)
}

func allExecutions(t *testing.T, st store.Reader) []job.Execution {
	t.Helper()
	var all []job.Execution
	for after := ""; ; {
		rows, next, err := st.Executions(context.Background(), store.ExecutionFilter{Namespace: "default", Page: store.Page{After: after, Limit: 500}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
		if next == "" {
			return all
		}
		after = next
	}
}
