package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const noLimit = 1 << 40

// logged is an execution with an attempt on each shard: that of shard i has token 100+i.
func (d *desk) logged(shards int) job.Execution {
	d.tb.Helper()
	states := make([]job.ShardState, shards)
	for i := range states {
		states[i] = job.ShardRunning
	}
	e, b := d.execution(job.ExecutionRunning, states...)
	for i := range b.Shards {
		row := &b.Shards[i].Row
		row.Token, row.Attempt = job.Token(100+i), 1
		row.Attempts = []job.Attempt{{Number: 1, Token: row.Token, State: job.AttemptRunning, StartedAt: noon}}
	}
	d.commit(b)
	return e
}

// chunkOf is a chunk of plain lines of a shard.
func chunkOf(e job.Execution, shard int, offset int64, lines ...string) store.LogChunk {
	c := store.LogChunk{Execution: e.ID, Shard: shard, Token: job.Token(100 + shard), Offset: offset}
	for i, l := range lines {
		c.Lines = append(c.Lines, store.LogLine{At: noon + job.Instant(i), Stream: store.LogStdout, Bytes: []byte(l)})
	}
	return c
}

// appended is the answer to one chunk, as a text such as "taken 3".
func (d *desk) appended(c store.LogChunk, at job.Instant, limit int64) string {
	d.tb.Helper()
	got, err := d.s.AppendLogs(ctx, store.AppendLogs{Chunks: []store.LogChunk{c}, At: at, Limit: limit})
	if err != nil || len(got) != 1 {
		d.tb.Fatalf("AppendLogs: %v, %v", got, err)
	}
	return fmt.Sprintf("%s %d", got[0].Fate, got[0].Next)
}

// logText is what ReadLogs finds, page by page: "shard/number text", dropped lines as "shard/number -lines/bytes".
func (d *desk) logText(f store.LogFilter) string {
	d.tb.Helper()
	var all []string
	for {
		p, err := d.s.ReadLogs(ctx, f)
		if err != nil {
			d.tb.Fatalf("ReadLogs: %v", err)
		}
		for _, r := range p.Rows {
			text := fmt.Sprintf("%d/%d %s", r.Shard, r.Number, r.Bytes)
			if r.Stream == store.LogDropped {
				text = fmt.Sprintf("%d/%d -%d/%d", r.Shard, r.Number, r.DroppedLines, r.DroppedBytes)
			}
			all = append(all, text)
		}
		if f.After = p.Next; !p.More {
			return strings.Join(all, "; ")
		}
	}
}

func (d *desk) heads(e job.Execution) []store.LogHead {
	d.tb.Helper()
	h, err := d.s.LogHeads(ctx, e.ID, -1)
	if err != nil {
		d.tb.Fatalf("LogHeads: %v", err)
	}
	return h
}

var logCases = []examCase{
	{"Logs/append is known by its number", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.logged(2)
		all := store.LogFilter{Execution: e.ID, Shard: -1}
		for _, step := range []struct {
			c    store.LogChunk
			want string
		}{
			{chunkOf(e, 0, 1, "too far"), "gap 0"},
			{chunkOf(e, 0, 0, "a", "b"), "taken 2"},
			{chunkOf(e, 0, 0, "a", "b"), "taken 2"},
			{chunkOf(e, 0, 1, "b", "c"), "taken 3"},
			{chunkOf(e, 1, 0, "x"), "taken 1"},
			{chunkOf(e, 0, 0), "taken 3"},
			{chunkOf(e, 0, 4, "e"), "gap 3"},
			{chunkOf(e, 0, 3, "d"), "taken 4"},
		} {
			equal(tb, "fate", d.appended(step.c, noon, noLimit), step.want)
		}
		equal(tb, "log", d.logText(all), "0/0 a; 0/1 b; 0/2 c; 1/0 x; 0/3 d")
		last := chunkOf(e, 0, 4)
		last.Final = true
		equal(tb, "final", d.appended(last, noon, noLimit), "taken 4")
		equal(tb, "final again", d.appended(last, noon, noLimit), "taken 4")
		equal(tb, "behind the end", d.appended(chunkOf(e, 0, 4, "e"), noon, noLimit), "closed 4")
		equal(tb, "before the end", d.appended(chunkOf(e, 0, 3, "d"), noon, noLimit), "taken 4")
		equal(tb, "heads", d.heads(e), []store.LogHead{{Shard: 0, Token: 100, Attempt: 1, Next: 4, Closed: true, Bytes: 4 + 4*store.LogLineCost},
			{Shard: 1, Token: 101, Attempt: 1, Next: 1, Bytes: 1 + store.LogLineCost}})
	}},
	{"Logs/only for granted tokens, until a minute after the end", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.logged(2)
		foreign := chunkOf(e, 0, 0, "x")
		foreign.Token = 101
		equal(tb, "token of another shard", d.appended(foreign, noon, noLimit), "unknown 0")
		foreign = chunkOf(job.Execution{ID: job.ExecutionID{1}}, 0, 0, "x")
		equal(tb, "no such execution", d.appended(foreign, noon, noLimit), "unknown 0")
		equal(tb, "nothing is kept of them", len(d.heads(e)), 0)
		end := func(i int) engine.ShardWrite {
			return engine.ShardWrite{From: job.ShardRunning, Row: job.Shard{Execution: e.ID, Index: i, State: job.ShardSucceeded, Token: job.Token(100 + i), Attempt: 1,
				Attempts: []job.Attempt{{Number: 1, Token: job.Token(100 + i), State: job.AttemptSucceeded, StartedAt: noon, EndedAt: noon + 10}}}}
		}
		b := finish(e, job.ExecutionSucceeded)
		b.Shards = []engine.ShardWrite{end(0), end(1)}
		d.commit(b)
		keep := job.Instant(store.LogKept.Milliseconds())
		equal(tb, "history takes lines", d.appended(chunkOf(e, 0, 0, "a"), noon+10+keep, noLimit), "taken 1")
		equal(tb, "too late", d.appended(chunkOf(e, 0, 1, "b"), noon+11+keep, noLimit), "closed 1")
		equal(tb, "too late for a first line", d.appended(chunkOf(e, 1, 0, "b"), noon+11+keep, noLimit), "closed 0")
		equal(tb, "log", d.logText(store.LogFilter{Execution: e.ID, Shard: -1}), "0/0 a")
	}},
	{"Logs/limit, with a visible count", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.logged(1)
		all := store.LogFilter{Execution: e.ID, Shard: -1}
		limit := int64(2 * (10 + store.LogLineCost))
		ten := strings.Repeat("x", 10)
		equal(tb, "to the limit", d.appended(chunkOf(e, 0, 0, ten, ten), noon, limit), "taken 2")
		equal(tb, "beyond", d.appended(chunkOf(e, 0, 2, "1", "22"), noon, limit), "taken 4")
		marked := "0/0 " + ten + "; 0/1 " + ten + "; 0/2 -2/3"
		equal(tb, "marked where it begins", d.logText(all), marked)
		equal(tb, "more", d.appended(chunkOf(e, 0, 4, "333"), noon, limit), "taken 5")
		equal(tb, "again", d.appended(chunkOf(e, 0, 4, "333", "4444"), noon, limit), "taken 6")
		equal(tb, "not marked each time", d.logText(all), marked)
		last := chunkOf(e, 0, 6)
		last.Final = true
		equal(tb, "final", d.appended(last, noon, limit), "taken 6")
		equal(tb, "the rest at the end", d.logText(all), marked+"; 0/6 -2/7")
		h := d.heads(e)[0]
		equal(tb, "count", [2]int64{h.DroppedLines, h.DroppedBytes}, [2]int64{4, 10})
	}},
	{"Logs/the last lines beyond the limit come at the end", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.logged(1)
		all := store.LogFilter{Execution: e.ID, Shard: -1}
		limit := int64(16 * 3 * (2 + store.LogLineCost)) // 48 lines of 2 bytes, and 3 as the tail
		line := func(from, to int) (lines []string) {
			for i := from; i < to; i++ {
				lines = append(lines, fmt.Sprintf("%02d", i))
			}
			return lines
		}
		d.appended(chunkOf(e, 0, 0, line(0, 48)...), noon, limit)
		kept := d.logText(all)
		d.appended(chunkOf(e, 0, 48, line(48, 51)...), noon, limit)
		equal(tb, "nothing is missing yet", d.logText(all), kept)
		equal(tb, "but not shown", d.heads(e)[0].DroppedLines, int64(3))
		d.appended(chunkOf(e, 0, 51, line(51, 53)...), noon, limit)
		equal(tb, "marked where it begins", d.logText(all), kept+"; 0/50 -2/4")
		d.appended(chunkOf(e, 0, 53, line(53, 90)...), noon, limit)
		equal(tb, "not marked each time", d.logText(all), kept+"; 0/50 -2/4")
		last := chunkOf(e, 0, 90, line(90, 91)...)
		last.Final = true
		equal(tb, "final", d.appended(last, noon, limit), "taken 91")
		equal(tb, "how it ended", d.logText(all), kept+"; 0/50 -2/4; 0/88 -38/76; 0/88 88; 0/89 89; 0/90 90")
		h := d.heads(e)[0]
		equal(tb, "count", [2]int64{h.DroppedLines, h.DroppedBytes}, [2]int64{40, 80})
		equal(tb, "bytes kept", h.Bytes, 51*(2+store.LogLineCost))
	}},
	{"Logs/the next attempt shows the tail of one that was cut off", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e, b := d.execution(job.ExecutionRunning, job.ShardRunning)
		row := &b.Shards[0].Row
		row.Token, row.Attempt = 101, 2
		row.Attempts = []job.Attempt{{Number: 1, Token: 100, State: job.AttemptLost, StartedAt: noon, EndedAt: noon + 1}, {Number: 2, Token: 101, State: job.AttemptRunning, StartedAt: noon + 1}}
		d.commit(b)
		all := store.LogFilter{Execution: e.ID, Shard: -1}
		limit := int64(16 * (2 + store.LogLineCost))
		var lines []string
		for i := range 20 {
			lines = append(lines, fmt.Sprintf("%02d", i))
		}
		d.appended(chunkOf(e, 0, 0, lines...), noon, limit)
		before := d.logText(all)
		second := chunkOf(e, 0, 0, "second")
		second.Token = 101
		d.appended(second, noon+2, limit)
		equal(tb, "log", d.logText(all), before+"; 0/19 19; 0/0 second")
		equal(tb, "late lines still come", d.appended(chunkOf(e, 0, 20, "20"), noon+3, limit), "taken 21")
	}},
	{"Logs/bytes stay as they are", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.logged(1)
		c := chunkOf(e, 0, 0, "a\x00b", "\xff\xfe", "", "\x1b[31m\u202e😀", strings.Repeat("long ", 20_000))
		c.Lines[1].Stream, c.Lines[1].Partial, c.Lines[2].At = store.LogStderr, true, -5
		c.Lines = append(c.Lines, store.LogLine{At: noon, Stream: store.LogDropped, Bytes: []byte{}, DroppedLines: 7, DroppedBytes: 99})
		d.appended(c, noon, noLimit)
		p, err := s.ReadLogs(ctx, store.LogFilter{Execution: e.ID, Shard: -1})
		wantVerdict(tb, "ReadLogs", err, "ok")
		for i, r := range p.Rows {
			equal(tb, fmt.Sprintf("line %d", i), r.LogLine, c.Lines[i])
		}
		equal(tb, "lines", len(p.Rows), len(c.Lines))
	}},
	{"Logs/pages, filters and places", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e, other := d.logged(3), d.logged(1)
		for i := range int64(5) {
			for shard := range 3 {
				d.appended(chunkOf(e, shard, 2*i, fmt.Sprint(2*i), fmt.Sprint(2*i+1)), noon+job.Instant(i), noLimit)
			}
		}
		whole := d.logText(store.LogFilter{Execution: e.ID, Shard: -1})
		for _, limit := range []int{1, 2, 3, 7, 1000} {
			equal(tb, fmt.Sprintf("in pages of %d", limit), d.logText(store.LogFilter{Execution: e.ID, Shard: -1, Limit: limit}), whole)
		}
		equal(tb, "in pages of few bytes", d.logText(store.LogFilter{Execution: e.ID, Shard: -1, Bytes: 1}), whole)
		equal(tb, "one shard, lately", d.logText(store.LogFilter{Execution: e.ID, Shard: 1, Since: noon + 3}), "1/6 6; 1/7 7; 1/8 8; 1/9 9")
		equal(tb, "no such attempt", d.logText(store.LogFilter{Execution: e.ID, Shard: -1, Attempt: 2}), "")
		p, err := s.ReadLogs(ctx, store.LogFilter{Execution: e.ID, Shard: 2, Limit: 1000})
		wantVerdict(tb, "ReadLogs", err, "ok")
		equal(tb, "end of what is there", [2]any{len(p.Rows), p.More}, [2]any{10, false})
		d.appended(chunkOf(e, 2, 10, "new"), noon, noLimit)
		equal(tb, "from the place on", d.logText(store.LogFilter{Execution: e.ID, Shard: 2, After: p.Next}), "2/10 new")
		_, err = s.ReadLogs(ctx, store.LogFilter{Execution: other.ID, Shard: -1, After: p.Next})
		wantVerdict(tb, "place of another execution", err, "invalid/bad_after")
		_, err = s.ReadLogs(ctx, store.LogFilter{Execution: e.ID, Shard: -1, After: "../../etc/passwd"})
		wantVerdict(tb, "no place", err, "invalid/bad_after")
	}},
	{"Logs/sweep in small steps", func(tb TB, s store.Store) {
		d := sit(tb, s)
		old, young := d.logged(1), d.logged(1)
		for i := range int64(5) {
			d.appended(chunkOf(old, 0, i, "x"), noon+job.Instant(i), noLimit)
		}
		d.appended(chunkOf(young, 0, 0, "y"), noon+100, noLimit)
		sweep := func(namespace string) int {
			n, err := s.SweepLogs(ctx, store.SweepLogs{Namespace: namespace, Before: noon + 50, Limit: 4})
			wantVerdict(tb, "SweepLogs", err, "ok")
			return n
		}
		equal(tb, "nothing of what is not over, however silent", sweep("ns"), 0)
		for _, e := range []job.Execution{old, young} {
			b := finish(e, job.ExecutionSucceeded)
			b.Shards = []engine.ShardWrite{{From: job.ShardRunning, Row: job.Shard{Execution: e.ID, State: job.ShardSucceeded, Token: 100, Attempt: 1}}}
			d.commit(b)
		}
		second, err := s.ReadLogs(ctx, store.LogFilter{Execution: old.ID, Shard: -1, Limit: 2})
		wantVerdict(tb, "ReadLogs", err, "ok")
		equal(tb, "another namespace", sweep("other"), 0)
		equal(tb, "first step", sweep("ns"), 4)
		equal(tb, "a reader's place stays right", d.logText(store.LogFilter{Execution: old.ID, Shard: -1, After: second.Next}), "0/4 x")
		equal(tb, "what is left is readable", d.logText(store.LogFilter{Execution: old.ID, Shard: -1}), "0/4 x")
		equal(tb, "second step", sweep(""), 2)
		equal(tb, "then nothing", sweep(""), 0)
		equal(tb, "heads", len(d.heads(old)), 0)
		equal(tb, "the young one stays", d.logText(store.LogFilter{Execution: young.ID, Shard: -1}), "0/0 y")
	}},
	{"Logs/random", randomLogs},
}

// randomLogs sends lines in overlapping, repeated and too early chunks and compares with what was written.
func randomLogs(tb TB, s store.Store) {
	d := sit(tb, s)
	e := d.logged(3)
	r := rand.New(rand.NewPCG(1, 2))
	var written [3][]string
	var stored [3]int64
	for range 300 {
		shard := r.IntN(3)
		for range r.IntN(4) {
			line := make([]byte, r.IntN(20))
			for i := range line {
				line[i] = byte(r.IntN(256))
			}
			written[shard] = append(written[shard], string(line))
		}
		from := r.IntN(len(written[shard]) + 1)
		to := from + r.IntN(len(written[shard])-from+1)
		want := fmt.Sprintf("gap %d", stored[shard])
		if int64(from) <= stored[shard] {
			stored[shard] = max(stored[shard], int64(to))
			want = fmt.Sprintf("taken %d", stored[shard])
		}
		equal(tb, "fate", d.appended(chunkOf(e, shard, int64(from), written[shard][from:to]...), noon, noLimit), want)
	}
	for shard := range 3 {
		p, err := s.ReadLogs(ctx, store.LogFilter{Execution: e.ID, Shard: shard, Limit: 10_000})
		wantVerdict(tb, "ReadLogs", err, "ok")
		var problem error
		for i, row := range p.Rows {
			if row.Number != int64(i) || !bytes.Equal(row.Bytes, []byte(written[shard][i])) {
				problem = errors.Join(problem, fmt.Errorf("row %d is line %d: %q", i, row.Number, row.Bytes))
			}
		}
		if problem != nil || int64(len(p.Rows)) != stored[shard] {
			tb.Errorf("shard %d: %d rows of %d: %v", shard, len(p.Rows), stored[shard], problem)
		}
	}
}
