package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// How the shards of a large execution lie in rows is the adapter's business, and nothing that is read shows it.
var blockCases = []examCase{
	{"Shards/many of one execution", func(tb TB, s store.Store) { manyShards(tb, s, engine.Level) }},
	{"Shards/many of one execution, of an earlier version", func(tb TB, s store.Store) { manyShards(tb, s, engine.LevelRows) }},
	{"Shards/what of many is refused", func(tb TB, s store.Store) { manyRefused(tb, s) }},
	{"Shards/many that cannot be read", func(tb TB, s store.Store) { manyUnfit(tb, s) }},
}

// crowd is one execution with all its shards as they should be read.
type crowd struct {
	*desk
	e      job.Execution
	shards []job.Shard
}

// newCrowd makes an execution of 150 queued shards.
func newCrowd(tb TB, s store.Store, level int) *crowd {
	l := &crowd{desk: sit(tb, s)}
	l.level = level
	states := make([]job.ShardState, 150)
	for i := range states {
		states[i] = job.ShardQueued
	}
	l.e = l.insert(job.ExecutionRunning, states...)
	for i := range states {
		l.shards = append(l.shards, job.Shard{Execution: l.e.ID, Index: i, State: job.ShardQueued})
	}
	return l
}

// write changes shards, as a batch.
func (l *crowd) write(b *engine.Batch, indexes []int, change func(*job.Shard)) {
	for _, i := range indexes {
		from := l.shards[i].State
		change(&l.shards[i])
		b.Shards = append(b.Shards, engine.ShardWrite{From: from, Total: len(l.shards), Row: l.shards[i]})
	}
}

func (l *crowd) change(indexes []int, change func(*job.Shard)) {
	l.tb.Helper()
	b := engine.Batch{At: noon}
	l.write(&b, indexes, change)
	l.commit(b)
}

// check reads them in every way.
func (l *crowd) check(what string) {
	l.tb.Helper()
	equal(l.tb, what+": by the owner", l.found(l.e.ID).Shards, l.shards)
	for _, size := range []int{40, 64, 1000} {
		var listed []job.Shard
		page := store.Page{Limit: size}
		for more := true; more; more = page.After != "" {
			rows, next, err := l.s.Shards(ctx, "ns", l.e.ID, page)
			wantVerdict(l.tb, "Shards", err, "ok")
			if len(rows) > size {
				l.tb.Fatalf("%s: a page of %d has %d rows", what, size, len(rows))
			}
			listed, page.After = append(listed, rows...), next
		}
		equal(l.tb, fmt.Sprintf("%s: in pages of %d", what, size), listed, l.shards)
	}
	var refs []engine.ShardRef
	var want []engine.Settled
	for i := 0; i < len(l.shards); i += 7 {
		sh := &l.shards[i]
		refs = append(refs, engine.ShardRef{Execution: l.e.ID, Index: i})
		want = append(want, engine.Settled{ShardRef: refs[len(refs)-1], Token: sh.Token, ReportSeq: sh.ReportSeq, Closed: sh.Closed})
	}
	refs = append(refs, engine.ShardRef{Execution: l.e.ID, Index: len(l.shards)}, engine.ShardRef{Execution: l.e.ID, Index: 5000})
	page, err := l.s.ShardPage(ctx, 0, refs)
	wantVerdict(l.tb, "ShardPage", err, "ok")
	equal(l.tb, what+": what was settled", page.Rows, want)
}

// granted is what a lease does to a shard.
func granted(sh *job.Shard) {
	sh.State, sh.Reason, sh.Token, sh.Session, sh.Worker, sh.Attempt = job.ShardLeased, job.RouteLeastBusy, job.Token(1000+sh.Index), "s1", "w1", 1
	sh.LeasedAt, sh.TimeoutAt = noon+1, noon+60_000
	sh.Attempts = []job.Attempt{{Number: 1, Token: sh.Token, Worker: "w1", State: job.AttemptRunning, StartedAt: noon + 1}}
}

func succeeded(sh *job.Shard) {
	sh.State, sh.Reason, sh.Session, sh.ReportSeq, sh.EndedAt, sh.TimeoutAt = job.ShardSucceeded, "", "", 2, noon+5, 0
	sh.Attempts = []job.Attempt{{Number: 1, Token: sh.Token, Worker: "w1", State: job.AttemptSucceeded, StartedAt: noon + 1, EndedAt: noon + 5}}
}

// told has more to say than fits with others.
func told(sh *job.Shard) {
	sh.State, sh.ReportSeq, sh.CheckpointSeq = job.ShardRunning, 1, 1
	sh.Checkpoint = json.RawMessage(`"` + strings.Repeat("x", 3000) + `"`)
}

func failed(sh *job.Shard) {
	sh.State, sh.Reason, sh.Session, sh.Faults, sh.EndedAt, sh.TimeoutAt = job.ShardFailed, job.ReasonHandlerError, "", 1, noon+7, 0
	sh.Error = &job.Failure{Class: "error", Message: "no such thing"}
	sh.Attempts = []job.Attempt{{Number: 1, Token: sh.Token, Worker: "w1", State: job.AttemptFailed, Reason: job.ReasonHandlerError, StartedAt: noon + 1, EndedAt: noon + 7, Error: sh.Error}}
}

// rangeOf are the numbers from one to before another.
func rangeOf(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func manyShards(tb TB, s store.Store, level int) {
	l := newCrowd(tb, s, level)
	other := l.insert(job.ExecutionRunning, job.ShardLeased, job.ShardQueued)
	l.check("new")
	l.change(rangeOf(0, 130), granted)
	l.change([]int{3, 64, 65, 128}, told)
	l.check("under way")
	l.change([]int{0, 1, 66, 67}, succeeded)
	l.change([]int{2, 127}, failed)
	l.change([]int{64}, succeeded) // a large one
	l.check("some ended")
	loaded, err := s.LoadPartition(ctx, 0)
	wantVerdict(tb, "LoadPartition", err, "ok")
	for _, row := range loaded.Executions {
		if row.Execution.ID != l.e.ID {
			continue
		}
		want := make([]job.Shard, len(l.shards))
		for i := range l.shards {
			want[i] = store.EndedShard(l.shards[i])
		}
		equal(tb, "at a take-over", row.Shards, want)
	}
	l.change(rangeOf(130, 150), granted)
	b := engine.Batch{At: noon}
	l.e.State, l.e.EndedAt = job.ExecutionPartiallySucceeded, noon+9
	b.Executions = []engine.ExecutionWrite{{From: job.ExecutionRunning, Row: l.e}}
	l.write(&b, append(rangeOf(68, 127), rangeOf(130, 150)...), succeeded) // of one block none
	l.commit(b)
	l.check("in history")
	l.wantStates("another", other.ID, job.ExecutionRunning, job.ShardLeased, job.ShardQueued)

	l.e.State, l.e.EndedAt, l.e.Round = job.ExecutionQueued, 0, 1
	b = engine.Batch{At: noon, Executions: []engine.ExecutionWrite{{From: job.ExecutionPartiallySucceeded, Row: l.e}}}
	l.write(&b, []int{2, 127}, func(sh *job.Shard) { sh.State, sh.Reason, sh.EndedAt, sh.Faults = job.ShardQueued, "", 0, 0 })
	l.commit(b)
	l.check("run again")
	for what, of := range map[string]struct {
		shard int
		token job.Token
		want  string
	}{"large": {65, l.shards[65].Token, "taken 1"}, "small": {66, l.shards[66].Token, "taken 1"}, "not granted": {66, 5, "unknown 0"}, "not there": {150, 5, "unknown 0"}} {
		lines := chunkOf(l.e, of.shard, 0, what)
		lines.Token = of.token
		equal(tb, "lines of one that is "+what, l.appended(lines, noon, 1<<20), of.want)
	}
}

func manyRefused(tb TB, s store.Store) {
	l := newCrowd(tb, s, engine.Level)
	l.change(rangeOf(0, 100), granted)
	l.change([]int{70}, told)
	write := func(i int, from, to job.ShardState) engine.ShardWrite {
		sh := l.shards[i]
		sh.State = to
		return engine.ShardWrite{From: from, Total: len(l.shards), Row: sh}
	}
	good := write(5, job.ShardLeased, job.ShardRunning)
	for what, bad := range map[string]engine.ShardWrite{
		"another state":                    write(6, job.ShardQueued, job.ShardLeased),
		"another state in another block":   write(99, job.ShardRunning, job.ShardSucceeded),
		"another state of a large one":     write(70, job.ShardLeased, job.ShardRunning),
		"one that is there":                write(7, "", job.ShardQueued),
		"a large one that is there":        write(70, "", job.ShardQueued),
		"one that is not there":            {From: job.ShardQueued, Row: job.Shard{Execution: l.e.ID, Index: 150, State: job.ShardLeased}},
		"one of a block that is not there": {From: job.ShardQueued, Row: job.Shard{Execution: l.e.ID, Index: 700, State: job.ShardLeased}},
	} {
		l.refused(what, "fenced/state_guard", engine.Batch{At: noon, Shards: []engine.ShardWrite{good, bad}})
		ended := finish(l.e, job.ExecutionFailed)
		ended.Shards = []engine.ShardWrite{good, bad}
		l.refused(what+", at the end", "fenced/state_guard", ended)
	}
	l.commit(engine.Batch{At: noon, Shards: []engine.ShardWrite{{Row: job.Shard{Execution: l.e.ID, Index: 150, State: job.ShardQueued}}}})
	l.shards = append(l.shards, job.Shard{Execution: l.e.ID, Index: 150, State: job.ShardQueued})
	l.check("one more")
	l.f.Epoch--
	l.refused("by somebody else", "fenced/fence", engine.Batch{At: noon, Shards: []engine.ShardWrite{write(6, job.ShardQueued, job.ShardLeased)}})
}

// manyUnfit: a block that cannot be read is marked, and hides nothing else (case C73).
func manyUnfit(tb TB, s store.Store) {
	l := newCrowd(tb, s, engine.Level)
	other := l.insert(job.ExecutionRunning, job.ShardLeased, job.ShardQueued)
	spoiler, ok := s.(Spoiler)
	if !ok {
		tb.Fatalf("%T cannot be spoilt: the case needs that", s)
	}
	const spoil = `UPDATE shards SET block = %s WHERE idx = (SELECT min(idx) + 1 FROM shards) AND block IS NOT NULL`
	if err := spoiler.Spoil(ctx, fmt.Sprintf(spoil, `x'0102'`)); err != nil { // PostgreSQL writes it otherwise
		if err := spoiler.Spoil(ctx, fmt.Sprintf(spoil, `'\x0102'`)); err != nil {
			tb.Fatalf("spoiling: %v", err)
		}
	}
	unfit := func(shards []job.Shard) (all []int) {
		for i := range shards {
			if shards[i].Unfit != "" {
				all = append(all, shards[i].Index)
			}
		}
		return all
	}
	loaded, err := s.LoadPartition(ctx, 0)
	wantVerdict(tb, "LoadPartition", err, "ok")
	got := map[job.ExecutionID][]int{}
	for _, row := range loaded.Executions {
		got[row.Execution.ID] = unfit(row.Shards)
	}
	equal(tb, "unfit at a take-over", got, map[job.ExecutionID][]int{l.e.ID: {64}, other.ID: nil})
	shards, _, err := s.Shards(ctx, "ns", l.e.ID, store.Page{Limit: 1000})
	wantVerdict(tb, "Shards", err, "ok")
	equal(tb, "unfit for people", unfit(shards), []int{64})
	equal(tb, "shown", len(shards), 150-64+1)
}
