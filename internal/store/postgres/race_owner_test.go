package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
)

// logged commits an execution with an attempt on each shard: that of shard i has token 100+i.
func logged(t *testing.T, s *postgres.Store, f *store.Fence, n byte, shards int) job.Execution {
	t.Helper()
	e := job.Execution{ID: job.RequestedID(noon, [10]byte{n}), Namespace: "ns", Job: "j", JobUID: job.UID{1}, Pool: "p", PlannedAt: noon, ShardTotal: shards, State: job.ExecutionRunning}
	b := engine.Batch{Seq: f.Seq + 1, Executions: []engine.ExecutionWrite{{Row: e}}}
	for i := range shards {
		b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: e.ID, Index: i, State: job.ShardRunning, Token: job.Token(100 + i), Attempt: 1,
			Attempts: []job.Attempt{{Number: 1, Token: job.Token(100 + i), State: job.AttemptRunning, StartedAt: noon}}}})
	}
	if err := s.Commit(t.Context(), *f, &b); err != nil {
		t.Fatal(err)
	}
	f.Seq++
	return e
}

func chunk(e job.Execution, shard, from, to int) store.LogChunk {
	c := store.LogChunk{Execution: e.ID, Shard: shard, Token: job.Token(100 + shard), Offset: int64(from)}
	for n := from; n < to; n++ {
		c.Lines = append(c.Lines, store.LogLine{At: noon, Stream: store.LogStdout, Bytes: fmt.Append(nil, n)})
	}
	return c
}

// Several servers get the same lines of an attempt, in other pieces: each line is kept once, in order.
func TestRaceOfOneLog(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	f := owned(t, both[0])
	e := logged(t, both[0], &f, 1, 1)
	const lines = 60
	got := atOnce(both, callers, func(i int, s *postgres.Store) error {
		for from := 0; from < lines; {
			a, err := s.AppendLogs(context.Background(), store.AppendLogs{Chunks: []store.LogChunk{chunk(e, 0, from, min(from+1+i, lines))}, At: noon, Limit: 1 << 30})
			if err != nil {
				return err
			}
			if from = int(a[0].Next); a[0].Fate != store.LogTaken {
				return errors.New(string(a[0].Fate))
			}
		}
		return nil
	})
	wantCount(t, "writers", got, map[string]int{"ok": callers})
	page, err := both[1].ReadLogs(t.Context(), store.LogFilter{Execution: e.ID, Shard: -1, Limit: 1000})
	if err != nil || len(page.Rows) != lines {
		t.Fatalf("%d lines, %v", len(page.Rows), err)
	}
	for n, row := range page.Rows {
		if row.Number != int64(n) || string(row.Bytes) != fmt.Sprint(n) {
			t.Errorf("line %d is %d %q", n, row.Number, row.Bytes)
		}
	}
}

// Whoever follows the log of an execution, whose shards are written by several servers, misses no line: what comes later
// comes behind what was read.
func TestRaceOfFollowedLogs(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	f := owned(t, both[0])
	e := logged(t, both[0], &f, 1, callers)
	const lines = 40
	written := make(chan map[string]int, 1)
	go func() {
		written <- atOnce(both, callers, func(i int, s *postgres.Store) error {
			for n := range lines {
				chunks := []store.LogChunk{chunk(e, i, n, n+1)}
				if _, err := s.AppendLogs(context.Background(), store.AppendLogs{Chunks: chunks, At: noon, Limit: 1 << 30}); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	next, after, ended := [callers]int{}, "", false
	for {
		page, err := both[1].ReadLogs(t.Context(), store.LogFilter{Execution: e.ID, Shard: -1, After: after, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			if row.Number != int64(next[row.Shard]) {
				t.Fatalf("line %d of shard %d follows %d", row.Number, row.Shard, next[row.Shard]-1)
			}
			next[row.Shard]++
		}
		if after = page.Next; !page.More && ended {
			break
		}
		select {
		case got := <-written:
			wantCount(t, "writers", got, map[string]int{"ok": callers})
			ended = true // one more time to its end
		default:
		}
	}
	for shard, n := range next {
		if n != lines {
			t.Errorf("%d lines of shard %d were read", n, shard)
		}
	}
}

// An execution that moves from the inbox to the live rows, to history and back is always somewhere: for who asks
// something about it, for who reads it, and for its log.
func TestRaceOfMoves(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	f := owned(t, both[0])
	if _, _, err := both[0].PutJob(t.Context(), put("j", "h", 1, 0)); err != nil {
		t.Fatal(err)
	}
	page, err := both[0].InboxPage(t.Context(), 0, 9)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(b engine.Batch) {
		b.Seq = f.Seq + 1
		if err := both[0].Commit(t.Context(), f, &b); err != nil {
			t.Error(err)
		}
		f.Seq++
	}
	commit(engine.Batch{Consumed: []int64{page.Entries[0].ID}})
	for r := range rounds {
		asked, err := both[0].Trigger(t.Context(), store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{byte(r), 9}), Request: engine.Request{At: noon}}, toFirst)
		if err != nil {
			t.Fatal(err)
		}
		id := asked.Execution
		ctx, stop := context.WithCancel(context.Background())
		var looking sync.WaitGroup
		for name, look := range map[string]func() error{
			"ask": func() error {
				w, err := both[1].Ask(context.Background(), store.Ask{Kind: engine.EntryCancel, Namespace: "ns", Execution: id, At: noon})
				_ = w
				return err
			},
			"read":   func() error { _, err := both[1].Execution(context.Background(), "ns", id); return err },
			"shards": func() error { _, _, err := both[1].Shards(context.Background(), "ns", id, store.Page{}); return err },
		} {
			looking.Go(func() {
				for ctx.Err() == nil {
					if err := look(); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
		live := job.Execution{ID: id, Namespace: "ns", Job: "j", JobUID: job.UID{1}, Revision: 1, Pool: "p", PlannedAt: noon, ShardTotal: 1, State: job.ExecutionRunning}
		shard := job.Shard{Execution: id, State: job.ShardRunning, Token: 100, Attempts: []job.Attempt{{Number: 1, Token: 100, State: job.AttemptRunning, StartedAt: noon}}}
		commit(engine.Batch{Consumed: []int64{asked.Entry}, Executions: []engine.ExecutionWrite{{Row: live}}, Shards: []engine.ShardWrite{{Row: shard}}})
		looking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				got, err := both[1].AppendLogs(context.Background(), store.AppendLogs{Chunks: []store.LogChunk{chunk(live, 0, n, n+1)}, At: noon, Limit: 1 << 30})
				if err != nil || got[0].Fate != store.LogTaken {
					t.Errorf("log: %v, %v", got, err)
					return
				}
			}
		})
		for range 5 {
			ended, over := live, shard
			ended.State, ended.EndedAt, over.State = job.ExecutionFailed, noon, job.ShardFailed
			commit(engine.Batch{Executions: []engine.ExecutionWrite{{From: live.State, Row: ended}}, Shards: []engine.ShardWrite{{From: shard.State, Row: over}}})
			commit(engine.Batch{Executions: []engine.ExecutionWrite{{From: ended.State, Row: live}}, Shards: []engine.ShardWrite{{From: over.State, Row: shard}}})
		}
		stop()
		looking.Wait()
	}
}

// Two servers sweep while somebody reads pages: each row is deleted and counted once, what stays is read once and in order,
// and nothing is seen without its shards.
func TestRaceOfSweepsAndPages(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	f := owned(t, both[0])
	const old, kept = 300, 200
	var b engine.Batch
	for n := range old + kept {
		at := noon + job.Instant(n)
		e := job.Execution{ID: job.PlannedID(job.UID{1}, at), Namespace: "ns", Job: "j", Pool: "p", PlannedAt: at, ShardTotal: 3, State: job.ExecutionSucceeded, EndedAt: at}
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: e})
		for i := range 3 {
			b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: e.ID, Index: i, State: job.ShardSucceeded}})
		}
	}
	b.Seq = f.Seq + 1
	if err := both[0].Commit(t.Context(), f, &b); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			readPages(t, both[1], kept)
		}
	})
	var swept atomic.Int64
	got := atOnce(both, 4, func(_ int, s *postgres.Store) error {
		for {
			n, err := s.SweepExecutions(context.Background(), "ns", noon+old, 50)
			swept.Add(int64(n))
			if err != nil || n < 50 {
				return err
			}
		}
	})
	stop()
	reading.Wait()
	wantCount(t, "sweeps", got, map[string]int{"ok": 4})
	if n := swept.Load(); n != old*4 {
		t.Errorf("%d rows swept, there were %d executions with 3 shards each", n, old)
	}
	readPages(t, both[0], kept)
}

func readPages(t *testing.T, s *postgres.Store, kept int) {
	t.Helper()
	p := store.ExecutionFilter{Namespace: "ns", Page: store.Page{Limit: 37}}
	var all []job.ExecutionID
	for {
		rows, next, err := s.Executions(context.Background(), p)
		if err != nil {
			t.Error(err)
			return
		}
		for _, e := range rows {
			all = append(all, e.ID)
		}
		if len(rows) > 0 {
			last := rows[len(rows)-1].ID
			shards, _, err := s.Shards(context.Background(), "ns", last, store.Page{})
			if err == nil && len(shards) != 3 || err != nil && !strings.Contains(err.Error(), "there is no execution") {
				t.Errorf("%d shards of %v, %v", len(shards), last, err)
			}
		}
		if p.After = next; next == "" {
			break
		}
	}
	if len(all) < kept || !slices.IsSortedFunc(all, func(a, b job.ExecutionID) int { return slices.Compare(b[:], a[:]) }) {
		t.Errorf("%d rows, %d stay; or not in order", len(all), kept)
	}
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d rows come twice", len(all)-n)
	}
}

// Servers sweep keys at the same time: each key goes once, and is counted once.
func TestRaceOfKeySweeps(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	if _, _, err := both[0].PutJob(t.Context(), put("j", "h", 1, 0)); err != nil {
		t.Fatal(err)
	}
	var all []store.Trigger
	for n := range 500 {
		all = append(all, store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{byte(n), byte(n >> 8), 1}),
			Request: engine.Request{At: noon}, Key: store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: fmt.Sprint(n)}})
	}
	if _, err := both[0].Triggers(t.Context(), all, toFirst); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	swept := 0
	got := atOnce(both, callers, func(_ int, s *postgres.Store) error {
		n, err := s.SweepRequestKeys(context.Background(), noon+1, 100)
		mu.Lock()
		defer mu.Unlock()
		swept += n
		return err
	})
	wantCount(t, "sweeps", got, map[string]int{"ok": callers})
	for {
		n, err := both[0].SweepRequestKeys(t.Context(), noon+1, 100)
		if swept += n; err != nil || n == 0 {
			break
		}
	}
	if swept != len(all) {
		t.Errorf("%d keys swept, there were %d", swept, len(all))
	}
}
