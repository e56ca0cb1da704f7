package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
)

func dayOf(text string) job.Instant {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return job.InstantOf(t)
}

// lived commits an execution of two shards that was planned and ended then, a decision and a journal row of its end.
func lived(t *testing.T, s *postgres.Store, f *store.Fence, planned, ended string) job.Execution {
	t.Helper()
	at, end := dayOf(planned), dayOf(ended)
	e := job.Execution{ID: job.PlannedID(job.UID{1}, at), Namespace: "ns", Job: "j", JobUID: job.UID{1}, Pool: "p", PlannedAt: at, ShardTotal: 2,
		State: job.ExecutionSucceeded, EndedAt: end}
	b := engine.Batch{Seq: f.Seq + 1, At: end, Executions: []engine.ExecutionWrite{{Row: e}},
		Decisions: []job.Decision{{Namespace: "ns", Name: "j", Kind: job.DecisionSkipped, At: end, Count: 1}}}
	for i := range 2 {
		b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: e.ID, Index: i, State: job.ShardSucceeded,
			Attempts: []job.Attempt{{Number: 1, Token: job.Token(i + 1), State: job.AttemptSucceeded, EndedAt: end}}}})
	}
	if err := s.Commit(t.Context(), *f, &b); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	chunk := store.LogChunk{Execution: e.ID, Token: 1, Lines: []store.LogLine{{Stream: store.LogTask, Bytes: []byte("x")}}}
	if got, err := s.AppendLogs(t.Context(), store.AppendLogs{Chunks: []store.LogChunk{chunk}, At: end, Limit: 1 << 20}); err != nil || got[0].Fate != store.LogTaken {
		t.Fatal(got, err)
	}
	return e
}

// tables are the months of a table, such as "2027_01".
func tables(t *testing.T, dsn, table string) (all []string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	rows, _ := c.Query(t.Context(), `SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ ('^' || $1 || '_[0-9]') ORDER BY 1`, table)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		all = append(all, strings.TrimPrefix(n, table+"_"))
	}
	return all
}

func wantTables(t *testing.T, dsn, table string, want ...string) {
	t.Helper()
	if got := tables(t, dsn, table); !slices.Equal(got, want) {
		t.Errorf("months of %s: %v, should be %v", table, got, want)
	}
}

func TestSweepMonths(t *testing.T) {
	t.Parallel()
	both, dsn := servers(t)
	s := both[0]
	f := owned(t, s)
	gone := lived(t, s, &f, "2027-01-10", "2027-01-10")
	asked := lived(t, s, &f, "2027-02-10", "2027-02-10")
	late := lived(t, s, &f, "2027-03-10", "2027-05-20") // planned long before it ended
	kept := lived(t, s, &f, "2027-05-20", "2027-05-20")
	if _, err := both[1].Ask(t.Context(), store.Ask{Kind: engine.EntryRerun, Namespace: "ns", Execution: asked.ID, At: noon}); err != nil {
		t.Fatal(err)
	}
	at := dayOf("2027-05-15")
	over := store.Over{Executions: at, Logs: at, Decisions: at, Journal: at, Now: dayOf("2027-05-31")}
	n, err := s.SweepMonths(t.Context(), over)
	if err != nil || n != 10 { // executions and shards of January; chunks, logs, decisions and journal of January and February
		t.Errorf("%d tables, %v", n, err)
	}
	for _, table := range []string{"history_executions", "history_shards"} {
		wantTables(t, dsn, table, "2027_02", "2027_03", "2027_05", "2027_06", "2027_07")
	}
	for _, table := range []string{"logs", "log_chunks"} {
		wantTables(t, dsn, table, "2027_03", "2027_05", "2027_06", "2027_07")
	}
	for _, table := range []string{"decisions", "journal"} {
		wantTables(t, dsn, table, "2027_05", "2027_06", "2027_07")
	}
	for _, s := range both { // the other server has plans that knew the months
		if got := verdict(errOf(s.Execution(t.Context(), "ns", gone.ID))); got != "not_found/execution_not_found" {
			t.Errorf("what is gone: %s", got)
		}
		rows, next, err := s.Executions(t.Context(), store.ExecutionFilter{Namespace: "ns"})
		if err != nil || next != "" || len(rows) != 3 || rows[0].ID != kept.ID || rows[1].ID != late.ID {
			t.Errorf("%d rows, next %q, %v", len(rows), next, err)
		}
	}
	if n, err := both[1].SweepMonths(t.Context(), over); n != 0 || err != nil {
		t.Errorf("again: %d tables, %v", n, err)
	}

	// A month that comes back, because an execution of it ends now, is made anew, by a server that does not know that it went.
	f = takenOver(t, both[1])
	back := lived(t, both[1], &f, "2027-01-11", "2027-05-21")
	shards, _, err := s.Shards(t.Context(), "ns", back.ID, store.Page{})
	if err != nil || len(shards) != 2 {
		t.Errorf("%d shards, %v", len(shards), err)
	}
	page, err := s.ReadLogs(t.Context(), store.LogFilter{Execution: back.ID, Shard: -1})
	if err != nil || len(page.Rows) != 1 {
		t.Errorf("%d lines, %v", len(page.Rows), err)
	}
}

func errOf[T any](_ T, err error) error { return err }

func takenOver(t *testing.T, s *postgres.Store) store.Fence {
	t.Helper()
	rows, err := s.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := s.AcquirePartition(t.Context(), rows[0], "another", 0, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	return row.Fence
}

// The newest journal row of a partition says where its commits stand: its month stays, however old.
func TestNewestJournalRowStays(t *testing.T) {
	t.Parallel()
	both, dsn := servers(t)
	f := owned(t, both[0])
	lived(t, both[0], &f, "2027-01-10", "2027-01-10")
	if _, err := both[0].SweepMonths(t.Context(), store.Over{Journal: dayOf("2027-05-15"), Now: dayOf("2027-01-15")}); err != nil {
		t.Fatal(err)
	}
	if got := tables(t, dsn, "journal"); !slices.Contains(got, "2027_01") {
		t.Errorf("months of the journal: %v", got)
	}
}

// Months go while people read and owners commit: every page is as if before or after, and every commit goes through.
func TestSweepMonthsWhileOthersWork(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	f := owned(t, both[0])
	for m := 1; m <= 6; m++ {
		for d := 1; d <= 9; d++ {
			day := fmt.Sprintf("2027-%02d-%02d", m, d)
			lived(t, both[0], &f, day, day)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var pages, failed atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			page := store.ExecutionFilter{Namespace: "ns", Page: store.Page{Limit: 4}}
			last := beyondAll
			for {
				rows, next, err := both[1].Executions(context.Background(), page)
				pages.Add(1)
				if err != nil {
					t.Errorf("a page: %v", err)
					failed.Add(1)
					return
				}
				for _, e := range rows {
					if slices.Compare(e.ID[:], last[:]) >= 0 {
						t.Errorf("%v comes behind %v", e.ID, last)
					}
					last = e.ID
				}
				if page.After = next; next == "" {
					break
				}
			}
		}
	}()
	for m := 2; m <= 6; m++ {
		at := dayOf(fmt.Sprintf("2027-%02d-01", m))
		if _, err := both[1].SweepMonths(t.Context(), store.Over{Executions: at, Logs: at, Decisions: at, Journal: at, Now: dayOf("2027-06-01")}); err != nil {
			t.Errorf("before %d: %v", m, err)
		}
		day := fmt.Sprintf("2027-06-%02d", 10+m)
		lived(t, both[0], &f, day, day)
	}
	for seen := pages.Load(); pages.Load() < seen+20 && failed.Load() == 0; {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-ended
	rows, _, err := both[0].Executions(t.Context(), store.ExecutionFilter{Namespace: "ns"})
	if err != nil || len(rows) != 9+5 {
		t.Errorf("%d executions left, %v", len(rows), err)
	}
}

var beyondAll = job.ExecutionID{0xff}
