//go:build unix

package storetest

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// under is a partition with n running shards of n/each executions, held by sessions of 100 slots; of sharded ones as many
// shards have ended beside them, with what they left.
func under(tb testing.TB, s store.Store, f store.Fence, n, each, level int) {
	tb.Helper()
	ctx, total := context.Background(), 2*each
	if each == 1 {
		total = 1
	}
	def := job.Definition{UID: job.UID{1}, Namespace: "default", Name: "bench", Spec: job.Spec{Pool: "main", Handler: "noop", Shards: total,
		Timeout: job.Timeout{Attempt: time.Hour}}}
	if _, _, err := s.PutJob(ctx, store.PutJob{Definition: def, At: 1}); err != nil {
		tb.Fatal(err)
	}
	put := func(b *engine.Batch) {
		f.Seq++
		b.Level = level
		if b.Seq = f.Seq; len(b.Executions)+len(b.Sessions) > 0 {
			if err := s.Commit(ctx, f, b); err != nil {
				tb.Fatal(err)
			}
		}
	}
	var b engine.Batch
	session := func(i int) job.SessionID { return job.SessionIDOf(0, "default", "main", fmt.Sprint("w", i), "1") }
	for i := range (n + 99) / 100 {
		b.Sessions = append(b.Sessions, job.Session{ID: session(i), Namespace: "default", Pool: "main", Worker: fmt.Sprint("w", i), Incarnation: "1",
			Handlers: []string{"noop"}, Slots: 100, TTL: 15 * time.Second, Beat: 3 * time.Second, Margin: 1500 * time.Millisecond})
	}
	put(&b)
	b = engine.Batch{}
	for i := range n / each {
		x, sh := runningRows(int64(i))
		x.ShardTotal = total
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: x})
		for k := range total {
			sh := sh
			sh.Index, sh.Checkpoint, sh.TimeoutAt = k, []byte(`{"at":123456,"file":"of a run that goes on from there"}`), x.PlannedAt.Add(time.Hour)
			running := i*each + k/2
			if sh.Token, sh.Session = job.Token(running+1), session(running/100); k%2 == 1 {
				sh.State, sh.Session, sh.Result = job.ShardSucceeded, "", []byte(`{"rows":12345,"bytes":678901234}`)
			}
			b.Shards = append(b.Shards, engine.ShardWrite{Row: sh})
		}
		if len(b.Shards) > 10_000 {
			put(&b)
			b = engine.Batch{}
		}
	}
	put(&b)
}

func runningRows(n int64) (job.Execution, job.Shard) {
	at := job.Instant(1_800_000_000_000 + n)
	uid := job.UID{1}
	id := job.PlannedID(uid, at)
	return job.Execution{
			ID: id, Namespace: "default", Job: "bench", JobUID: uid, Revision: 1, Pool: "main", Handler: "noop", Trigger: job.TriggerRequest,
			PlannedAt: at, Params: []byte(`{"customer":4711,"note":"about a hundred bytes of parameters, as they come","list":[1,2,3]}`),
			ShardTotal: 1, State: job.ExecutionRunning, CreatedAt: at, StartedAt: at,
		}, job.Shard{
			Execution: id, State: job.ShardLeased, Token: job.Token(n), Session: "0.0123456789abcdef01234567", Worker: "worker-1",
			Attempt: 1, LeasedAt: at, Attempts: []job.Attempt{{Number: 1, Token: job.Token(n), Worker: "worker-1", State: job.AttemptRunning, StartedAt: at}},
		}
}

// takeOver is what a new owner does once it has the lease, until it grants, answers and plans.
func takeOver(tb testing.TB, s store.Engine) (load, step time.Duration, e *engine.Engine) {
	tb.Helper()
	begun := time.Now()
	loaded, err := s.LoadPartition(context.Background(), 0)
	if err != nil {
		tb.Fatal(err)
	}
	load = time.Since(begun)
	loaded.Takeover = true
	e = engine.New(engine.Default())
	r := e.Step(engine.Now{Wall: 1_800_000_100_000, Mono: time.Hour}, []engine.Event{loaded, engine.Tick{}})
	if len(r.Batch.Executions)+len(r.Batch.Shards) > 0 {
		tb.Fatalf("the load changes %d executions and %d shards", len(r.Batch.Executions), len(r.Batch.Shards))
	}
	return load, time.Since(begun) - load, e
}

// cpu is the processor's time that this process has used.
func cpu(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TakeOver is the benchmark of a new owner of 100,000 running shards; of sharded executions as many have ended beside
// them. The target is 2 s after the lease for load-ms and step-ms together; cpu-ms is the processor's time that this
// process used for both, collector included, which a loaded machine changes less. held-MB is what the engine keeps.
func TakeOver(b *testing.B, open func(*testing.B) (store.Store, store.Fence)) {
	for name, shape := range map[string]struct {
		each  int
		level int
	}{"unsharded": {1, engine.Level}, "unsharded, of earlier versions": {1, 0}, "two shards each": {2, engine.Level}, "1,000 shards each": {1000, engine.Level},
		"1,000 shards each, of earlier versions": {1000, engine.LevelRows}} {
		b.Run(name, func(b *testing.B) {
			s, f := open(b)
			under(b, s, f, 100_000, shape.each, shape.level)
			var load, step, used time.Duration
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			b.ReportAllocs()
			for b.Loop() {
				u := cpu(b)
				l, st, e := takeOver(b, s)
				load, step, used = load+l, step+st, used+cpu(b)-u
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(e)
				b.StartTimer()
			}
			b.ReportMetric(float64(load.Milliseconds())/float64(b.N), "load-ms")
			b.ReportMetric(float64(step.Milliseconds())/float64(b.N), "step-ms")
			b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "held-MB")
		})
	}
}
