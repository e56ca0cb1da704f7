package drill_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// A crop is a database with many finished executions. They are not run but written into history as they would stand
// there, for ten million take hours to run; the rest of the database is made by the store itself.
type crop struct {
	n    int
	from job.Instant // planned instant of the first one
	step int64       // ms from one to the next
}

// cropSpan is the time over which the executions of a crop are spread: seven months, so that there are months.
const cropSpan = 210 * 24 * time.Hour

var cropEnd = job.InstantOf(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))

func newCrop(n int) crop {
	return crop{n, cropEnd - job.Instant(cropSpan.Milliseconds()), max(cropSpan.Milliseconds()/int64(n), 1)}
}

// Of a thousand executions 899 are of one namespace, 100 of another and one of a third; of its 200 jobs ten have half of the
// executions; one in 25 did not succeed.
func (c crop) execution(n int) (job.Execution, job.Shard) {
	namespace := "default"
	switch {
	case n%1000 == 7:
		namespace = "rare"
	case n%10 == 3:
		namespace = "team"
	}
	mixed := uint32(n) * 2654435761 >> 8 //nolint:gosec // only has to look random
	j := int(mixed>>1) % 10
	if mixed&1 == 0 {
		j = 10 + int(mixed>>1)%190
	}
	state, shard := job.ExecutionSucceeded, job.ShardSucceeded
	switch mixed / 1000 % 100 {
	case 0, 1:
		state, shard = job.ExecutionFailed, job.ShardFailed
	case 2:
		state, shard = job.ExecutionTimedOut, job.ShardTimedOut
	case 3:
		state, shard = job.ExecutionCancelled, job.ShardCancelled
	}
	at := c.from + job.Instant(int64(n)*c.step)
	uid := job.UID{1, byte(j), namespace[0]}
	e := job.Execution{ID: job.PlannedID(uid, at), Namespace: namespace, Job: cropJob(j), JobUID: uid, Revision: 1, Pool: fmt.Sprintf("pool-%d", j%20),
		Handler: "handle", Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: 1, State: state, CreatedAt: at, StartedAt: at + 3, EndedAt: at + 1500,
		Params: fmt.Appendf(nil, `{"customer":%d,"note":"about a hundred bytes of parameters, as they come","list":[1,2,3]}`, n)}
	s := job.Shard{Execution: e.ID, State: shard, Token: job.Token(n + 1), Worker: "worker-1", Closed: true, Confirmed: true, Attempt: 1,
		LeasedAt: at + 2, StartedAt: at + 3, EndedAt: at + 1500, ReportSeq: 2, Result: []byte(`{"rows":12345}`),
		Attempts: []job.Attempt{{Number: 1, Token: job.Token(n + 1), Worker: "worker-1", State: job.AttemptState(shard), StartedAt: at + 3, EndedAt: at + 1500}}}
	return e, s
}

func cropJob(j int) string { return fmt.Sprintf("job-%03d", j) }

var (
	cropExecutionColumns = strings.Fields(`id partition namespace job job_uid revision pool handler trigger planned_at request_key shard_total
		state reason cancel round created_at started_at ended_at params`)
	cropShardColumns = strings.Fields(`execution idx state reason token session worker closed confirmed attempt faults losses leased_at started_at
		ended_at timeout_at retry_at stop_by report_seq checkpoint checkpoint_seq done total note result error attempts`)
)

func cropExecutionValues(e *job.Execution) []any {
	return []any{e.ID[:], 0, e.Namespace, e.Job, e.JobUID[:], e.Revision, e.Pool, e.Handler, string(e.Trigger), int64(e.PlannedAt), "", e.ShardTotal,
		string(e.State), "", "", 0, int64(e.CreatedAt), int64(e.StartedAt), int64(e.EndedAt), string(e.Params)}
}

func cropShardValues(s *job.Shard) []any {
	attempts := fmt.Sprintf(`[{"number":1,"token":%d,"worker":"worker-1","state":%q,"startedAt":%d,"endedAt":%d}]`, s.Token, s.State, s.StartedAt, s.EndedAt)
	return []any{s.Execution[:], s.Index, string(s.State), "", int64(s.Token), "", s.Worker, true, true, 1, 0, 0, int64(s.LeasedAt), int64(s.StartedAt),
		int64(s.EndedAt), 0, 0, 0, s.ReportSeq, nil, 0, 0, 0, "", string(s.Result), nil, attempts}
}

// bigShards is how many shards the one execution has that is as large as they come.
const bigShards = 1000

func (c crop) big() job.Execution {
	at := cropEnd + 1
	return job.Execution{ID: job.PlannedID(job.UID{9}, at), Namespace: "default", Job: cropJob(0), JobUID: job.UID{9}, Revision: 1, Pool: "pool-0", Handler: "handle",
		Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: bigShards, State: job.ExecutionSucceeded, CreatedAt: at, StartedAt: at, EndedAt: at + 9}
}

// last is the newest execution of the crop proper.
func (c crop) last() job.Execution {
	e, _ := c.execution(c.n - 1)
	return e
}

// prepare makes what the store makes: months, jobs, decisions, a log, what waits.
func (c crop) prepare(ctx context.Context, st store.Store) error {
	rows, err := st.PartitionRows(ctx)
	if err != nil {
		return err
	}
	row, err := st.AcquirePartition(ctx, rows[0], "the one that fills", 0, engine.Level)
	if err != nil {
		return err
	}
	for at := c.from; at < cropEnd; at += job.Instant((24 * time.Hour).Milliseconds()) { // any row makes its month
		b := engine.Batch{Seq: row.Seq + 1, At: at, Decisions: []job.Decision{{Namespace: "default", Name: cropJob(0), Kind: job.DecisionSkipped, At: at, Count: 1}}}
		e := job.Execution{ID: job.PlannedID(job.UID{8}, at), Namespace: "months", Job: "m", Pool: "p", PlannedAt: at, ShardTotal: 1, State: job.ExecutionSucceeded, EndedAt: at}
		b.Executions = []engine.ExecutionWrite{{Row: e}}
		b.Shards = []engine.ShardWrite{{Row: job.Shard{Execution: e.ID, State: job.ShardSucceeded}}}
		if err := c.commit(ctx, st, &row, b); err != nil {
			return err
		}
	}
	var last engine.Batch
	e := c.big()
	last.Executions = append(last.Executions, engine.ExecutionWrite{Row: e})
	for i := range bigShards {
		last.Shards = append(last.Shards, engine.ShardWrite{Row: job.Shard{Execution: e.ID, Index: i, State: job.ShardSucceeded, Token: 1, Attempt: 1,
			Attempts: []job.Attempt{{Number: 1, Token: 1, Worker: "w", State: job.AttemptSucceeded, EndedAt: e.EndedAt}}}})
	}
	for n := range 500 {
		at := cropEnd + 10 + job.Instant(n)
		w := job.Execution{ID: job.PlannedID(job.UID{7}, at), Namespace: "default", Job: cropJob(0), JobUID: job.UID{1, 0, 'd'}, Revision: 1, Pool: "pool-0", Handler: "handle",
			Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: 1, State: job.ExecutionQueued, CreatedAt: at}
		last.Executions = append(last.Executions, engine.ExecutionWrite{Row: w})
		last.Shards = append(last.Shards, engine.ShardWrite{Row: job.Shard{Execution: w.ID, State: job.ShardQueued}})
	}
	if err := c.commit(ctx, st, &row, last); err != nil {
		return err
	}
	if err := c.jobsAndLog(ctx, st); err != nil {
		return err
	}
	return st.ReleasePartition(ctx, row.Fence)
}

func (c crop) commit(ctx context.Context, st store.Store, row *store.PartitionRow, b engine.Batch) error {
	b.Seq = row.Seq + 1
	err := st.Commit(ctx, row.Fence, &b)
	row.Seq++
	return err
}

func (c crop) jobsAndLog(ctx context.Context, st store.Store) error {
	for _, namespace := range []string{"default", "team", "rare"} {
		var set store.ApplyJobs
		for j := range 200 {
			set.Items = append(set.Items, store.PutJob{At: c.from, Definition: job.Definition{UID: job.UID{1, byte(j), namespace[0]}, Namespace: namespace, Name: cropJob(j),
				Spec: job.Spec{Pool: fmt.Sprintf("pool-%d", j%20), Handler: "handle", Disabled: true}}})
		}
		if _, err := st.ApplyJobs(ctx, set); err != nil {
			return err
		}
	}
	e := c.big()
	chunk := store.LogChunk{Execution: e.ID, Token: 1}
	for i := range 5000 {
		chunk.Lines = append(chunk.Lines, store.LogLine{At: e.EndedAt, Stream: store.LogStdout, Bytes: fmt.Appendf(nil, "line %d of a log that is neither short nor long", i)})
	}
	got, err := st.AppendLogs(ctx, store.AppendLogs{Chunks: []store.LogChunk{chunk}, At: e.EndedAt, Limit: 1 << 30})
	if err == nil && got[0].Fate != store.LogTaken {
		err = fmt.Errorf("the log was not taken: %s", got[0].Fate)
	}
	return err
}

// fillPostgres copies the rows.
func (c crop) fillPostgres(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	const piece = 200_000
	for from := 0; from < c.n; from += piece {
		n, to := from, min(from+piece, c.n)
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{"history_executions"}, cropExecutionColumns, pgx.CopyFromFunc(func() ([]any, error) {
			if n == to {
				return nil, nil
			}
			e, _ := c.execution(n)
			n++
			return cropExecutionValues(&e), nil
		})); err != nil {
			return err
		}
		n = from
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{"history_shards"}, cropShardColumns, pgx.CopyFromFunc(func() ([]any, error) {
			if n == to {
				return nil, nil
			}
			_, s := c.execution(n)
			n++
			return cropShardValues(&s), nil
		})); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, `VACUUM ANALYZE history_executions`)
	return err
}

// fillSQLite inserts the rows.
func (c crop) fillSQLite(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)&_pragma=cache_size(-500000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for from := 0; from < c.n; from += 100_000 {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for table, columns := range map[string][]string{"history_executions": cropExecutionColumns, "history_shards": cropShardColumns} {
			st, err := tx.PrepareContext(ctx, `INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`) VALUES (?`+strings.Repeat(", ?", len(columns)-1)+`)`)
			if err != nil {
				return err
			}
			for n := from; n < min(from+100_000, c.n); n++ {
				e, s := c.execution(n)
				values := cropExecutionValues(&e)
				if table == "history_shards" {
					values = cropShardValues(&s)
				}
				if _, err := st.ExecContext(ctx, values...); err != nil {
					return err
				}
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// growPostgres is a filled database; one that has this crop already is taken as it is.
func (c crop) growPostgres(t *testing.T, dsn string) store.Store {
	t.Helper()
	st, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.grow(t, st, func() error { return c.fillPostgres(t.Context(), dsn) })
	return st
}

func (c crop) growSQLite(t *testing.T, dir string) store.Store {
	t.Helper()
	path := filepath.Join(dir, "takt.db")
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	c.grow(t, st, func() error { return c.fillSQLite(t.Context(), path) })
	return st
}

func (c crop) grow(t *testing.T, st store.Store, fill func() error) {
	t.Helper()
	t.Cleanup(func() { _ = st.Close() })
	mark := fmt.Sprintf("filled-with-%d", c.n)
	if _, err := st.Job(t.Context(), "crop", mark); err == nil {
		return
	}
	begun := time.Now()
	if err := c.prepare(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if err := fill(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := st.PutJob(t.Context(), store.PutJob{At: 1, Definition: job.Definition{UID: job.UID{5}, Namespace: "crop", Name: mark, Spec: job.Spec{Pool: "p", Handler: "h"}}}); err != nil {
		t.Fatal(err)
	}
	t.Logf("filled with %d executions in %v", c.n, time.Since(begun).Round(time.Second))
}
