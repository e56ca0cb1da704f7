package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

func instant(year int, month time.Month, day int) job.Instant {
	return job.Instant(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).UnixMilli())
}

func TestMonths(t *testing.T) {
	t.Parallel()
	got := postgres.MonthNames(-1, 0, instant(2019, 12, 31), instant(2020, 1, 1)-1, instant(2020, 1, 1), instant(2026, 12, 31), instant(2027, 1, 1)-1,
		instant(2027, 1, 1), instant(2079, 12, 31), instant(2080, 1, 1), instant(9999, 12, 31))
	want := []string{"past", "past", "past", "past", "2020_01", "2026_12", "2026_12", "2027_01", "2079_12", "future", "future"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, should be %v", got, want)
	}
	starts := []job.Instant{0}
	for n := range 12*60 + 1 {
		starts = append(starts, instant(2020, time.Month(1+n), 1))
	}
	for _, table := range []string{"history_shards", "journal"} { // each month begins where the one before ends
		end := "MINVALUE"
		for _, at := range starts {
			from, to := postgres.MonthBounds(table, at)
			if from != end {
				t.Fatalf("%s: the month of %s is from %s, the one before to %s", table, at, from, end)
			}
			end = to
		}
		if end != "MAXVALUE" {
			t.Errorf("%s: the last month ends at %s", table, end)
		}
	}
}

// ended is a batch with one execution that is planned and ends at an instant.
func ended(f store.Fence, n byte, at job.Instant) (*engine.Batch, job.ExecutionID) {
	id := job.RequestedID(at, [10]byte{n})
	return &engine.Batch{Seq: f.Seq + 1, At: at,
		Executions: []engine.ExecutionWrite{{Row: job.Execution{ID: id, Namespace: "ns", Job: "j", PlannedAt: at, ShardTotal: 1, State: job.ExecutionFailed}}},
		Shards:     []engine.ShardWrite{{Row: job.Shard{Execution: id, State: job.ShardFailed}}},
		Decisions:  []job.Decision{{Namespace: "ns", Name: "j", At: at}},
	}, id
}

// TestAnyInstant: whatever instant a row belongs to, there is a month for it.
func TestAnyInstant(t *testing.T) {
	t.Parallel()
	s := open(t, 1)
	f := owner(t, s)
	for n, at := range []job.Instant{0, instant(1969, 1, 1), instant(1999, 12, 31), instant(2020, 1, 1), instant(2026, 11, 29), instant(2051, 7, 1), instant(9999, 12, 31)} {
		if at < 0 {
			continue // an id holds no instant before 1970
		}
		b, id := ended(f, byte(n), at)
		if err := s.Commit(t.Context(), f, b); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		f.Seq++
		if e, err := s.Execution(t.Context(), "ns", id); err != nil || e.PlannedAt != at {
			t.Errorf("%s: %+v, %v", at, e, err)
		}
	}
	rows, _, err := s.Executions(t.Context(), store.ExecutionFilter{Namespace: "ns"})
	if err != nil || len(rows) != 6 || rows[0].PlannedAt != instant(9999, 12, 31) {
		t.Errorf("%d executions, %v", len(rows), err)
	}
	if rows, err := s.Journal(t.Context(), 0, 0, 10); err != nil || len(rows) != 6 {
		t.Errorf("%d rows of the journal, %v", len(rows), err)
	}
}

// TestMonthsComeAndGo: months are made and dropped by one server while another commits into them, knows months that are
// gone, and reads.
func TestMonthsComeAndGo(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	a, b := openAt(t, postgres.Config{DSN: dsn, Partitions: 1}), openAt(t, postgres.Config{DSN: dsn})
	f := owner(t, a)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // the other server's upkeep and readers
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			postgres.MakeAhead(context.Background(), b, instant(2030+n%3, 1, 1))
			if _, _, err := b.Executions(context.Background(), store.ExecutionFilter{Namespace: "ns"}); err != nil {
				t.Errorf("list: %v", err)
			}
			for _, table := range []string{"history_executions", "history_shards", "decisions", "journal", "logs", "log_chunks"} {
				if _, err := postgres.DropMonthsBefore(context.Background(), b, table, instant(2031, 1, 1)); err != nil {
					t.Errorf("drop: %v", err)
				}
			}
		}
	})
	for n := range 30 {
		batch, _ := ended(f, byte(n), instant(2024+n%9, time.Month(n%12+1), 5))
		if err := a.Commit(t.Context(), f, batch); err != nil {
			t.Errorf("commit %d: %v", n, err)
			break
		}
		f.Seq++
	}
	close(stop)
	wg.Wait()
	names, err := postgres.DropMonthsBefore(t.Context(), b, "history_executions", instant(2032, 6, 1))
	if err != nil || !slices.Contains(names, "2031_01") {
		t.Errorf("dropped %v, %v", names, err)
	}
}

// TestMonthDetachedByHand: the rows of a table that somebody detached are not dropped when its month is needed again.
func TestMonthDetachedByHand(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1})
	f := owner(t, s)
	for n := range 3 {
		batch, _ := ended(f, byte(n), instant(2026, 3, 1))
		if err := s.Commit(t.Context(), f, batch); err != nil {
			t.Fatalf("commit %d: %v", n, err)
		}
		f.Seq++
		if _, err := c.ExecIn(pgtest.Name(dsn), `ALTER TABLE history_executions DETACH PARTITION history_executions_2026_03`); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"history_executions_2026_03_detached_1", "history_executions_2026_03_detached_2", "history_executions_2026_03"} {
		if n, err := c.ExecIn(pgtest.Name(dsn), `SELECT FROM `+name); err != nil || n != 1 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
}

// TestDropThatWasCutOff: a server dies between the two halves of a drop.
func TestDropThatWasCutOff(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1})
	f := owner(t, s)
	at := instant(2026, 3, 1)
	batch, _ := ended(f, 1, at)
	if err := s.Commit(t.Context(), f, batch); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	for _, text := range []string{`COMMENT ON TABLE history_executions_2026_03 IS 'takt: is being dropped'`,
		`ALTER TABLE history_executions DETACH PARTITION history_executions_2026_03`} {
		if _, err := c.ExecIn(pgtest.Name(dsn), text); err != nil {
			t.Fatal(err)
		}
	}
	batch, id := ended(f, 2, at)
	if err := s.Commit(t.Context(), f, batch); err != nil {
		t.Fatalf("a commit into a month that was on its way out: %v", err)
	}
	rows, _, err := s.Executions(t.Context(), store.ExecutionFilter{Namespace: "ns"})
	if err != nil || len(rows) != 1 || rows[0].ID != id {
		t.Errorf("executions of the month that was made anew: %v, %v", rows, err)
	}
	if _, err := c.ExecIn(pgtest.Name(dsn), `SELECT FROM history_executions_2026_03_detached_1`); err == nil {
		t.Error("what a drop left is kept")
	}
	detachHalf(t, dsn)
	names, err := postgres.DropMonthsBefore(t.Context(), s, "history_executions", instant(2026, 5, 1))
	if err != nil || fmt.Sprint(names) != "[2026_03]" {
		t.Errorf("a drop that another one began: %v, %v", names, err)
	}
}

// detachHalf leaves a month half detached: the first half of DETACH CONCURRENTLY is done, the second one waits for a
// transaction and is cancelled.
func detachHalf(t *testing.T, dsn string) {
	t.Helper()
	reader, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close(context.Background()) }()
	if _, err := reader.Exec(t.Context(), `BEGIN; SELECT count(*) FROM history_executions`); err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(t.Context(), dsn+"&lock_timeout=100")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.Background()) }()
	if _, err := other.Exec(t.Context(), `ALTER TABLE history_executions DETACH PARTITION history_executions_2026_03 CONCURRENTLY`); err == nil {
		t.Fatal("the drop did not wait for the reader")
	}
}
