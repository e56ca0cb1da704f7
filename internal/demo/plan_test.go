package demo

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

func manyPaths(n int) []string {
	var paths []string
	for i := range n {
		paths = append(paths, fmt.Sprintf("dir%d/file%d.go", i%17, i))
	}
	return paths
}

func TestPaceKeepsEveryShardLongEnough(t *testing.T) {
	for _, files := range []int{400, 3_000, 40_000} {
		paths := manyPaths(files)
		p, err := paceFor(paths, 8, 0)
		if err != nil {
			t.Fatal(err)
		}
		smallest := files
		for shard := range 8 {
			smallest = min(smallest, len(PathsOf(paths, shard, 8)))
		}
		// A pause follows each batch but the last.
		if least := time.Duration((smallest-1)/p.batch) * p.pause; least < leastShard {
			t.Errorf("%d files: the smallest shard takes %v with %+v", files, least, p)
		}
		if p.takes > 2*time.Minute || p.batch < 1 || p.batch > mostBatch {
			t.Errorf("%d files: %+v", files, p)
		}
	}
}

func TestPaceRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		files int
		rate  float64
		want  string
	}{
		{"too few files", 100, 0, "at least 20 are needed"},
		{"no files", 0, 0, "at least 20"},
		{"too fast", 8_000, 500, "--rate may be at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := paceFor(manyPaths(c.files), 8, c.rate)
			bad, ok := errors.AsType[*BadPlan](err)
			if !ok || !strings.Contains(bad.Message+bad.Hint, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func good() *Result {
	return &Result{Files: 10, ShardsSucceeded: 8, Failovers: 5, Resumed: 5, StaleSink: 1, StaleServer: 1, shards: 8}
}

func TestResultHoldsOnlyWhenEverythingDoes(t *testing.T) {
	if f := good().Faults(); len(f) > 0 {
		t.Fatalf("a good result has faults %q", f)
	}
	for name, spoil := range map[string]func(*Result){
		"missing":          func(r *Result) { r.Missing = 1 },
		"duplicates":       func(r *Result) { r.Duplicates = 1 },
		"shards_succeeded": func(r *Result) { r.ShardsSucceeded = 7 },
		"failovers":        func(r *Result) { r.Failovers = 1 },
		"resumed":          func(r *Result) { r.Resumed = 1 },
		"stale_sink":       func(r *Result) { r.StaleSink = 0 },
		"stale_server":     func(r *Result) { r.StaleServer = 0 },
		"no/such has": func(r *Result) {
			r.countAudit(&Audited{Files: 10, Foreign: 1, Findings: []string{"no/such has an effect"}})
		},
	} {
		r := good()
		spoil(r)
		if f := r.Faults(); len(f) != 1 || !strings.HasPrefix(f[0], name) {
			t.Errorf("%s: faults %q", name, f)
		}
	}
}

func TestCountShards(t *testing.T) {
	var r Result
	r.countShards([]takt.ShardStatus{
		{State: "succeeded", Attempts: []takt.Attempt{{State: "lost"}, {State: "lost", ResumedFrom: 3}, {State: "succeeded", ResumedFrom: 5}}},
		{State: "succeeded", Attempts: []takt.Attempt{{State: "failed"}, {State: "succeeded", ResumedFrom: 5}}},
		{State: "failed", Attempts: []takt.Attempt{{State: "lost"}}},
	})
	if r.shards != 3 || r.ShardsSucceeded != 2 || r.Failovers != 2 || r.Resumed != 3 {
		t.Errorf("%+v", r)
	}
}

func TestViewSaysEachEventOnce(t *testing.T) {
	var out bytes.Buffer
	v := &view{out: &out, began: time.Now()}
	now := time.Now()
	looks := [][]takt.ShardStatus{
		{{Index: 0, State: "queued"}},
		{{Index: 0, State: "running", Worker: "A", Attempt: 1, Attempts: []takt.Attempt{{Number: 1, Token: 7, Worker: "A", State: "running"}}}},
		{{Index: 0, State: "running", Worker: "A", Attempt: 1, Attempts: []takt.Attempt{{Number: 1, Token: 7, Worker: "A", State: "running"}}}},
		{{Index: 0, State: "succeeded", Worker: "B", Attempt: 2, EndedAt: &now, Attempts: []takt.Attempt{
			{Number: 1, Token: 7, Worker: "A", State: "lost"}, {Number: 2, Token: 9, Worker: "B", State: "succeeded", ResumedFrom: 4}}}},
	}
	for _, l := range looks {
		v.show(l)
	}
	v.close()
	var lines []string
	for l := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimSpace(l[strings.Index(l, "s  ")+3:]))
	}
	want := []string{"shard 0: attempt 1 on A, token 7",
		"shard 0: attempt 2 on B, token 9, goes on from checkpoint 4 (A's lease ran out)", "shard 0: succeeded on B"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// On a terminal the bars are drawn in place: as many lines are wiped as were drawn.
func TestViewDrawsBarsInPlace(t *testing.T) {
	var out bytes.Buffer
	v := &view{out: &out, terminal: true, began: time.Now()}
	shards := []takt.ShardStatus{{Index: 0, State: "running", Worker: "A", Attempt: 1, LeaseLeftMs: 3200, Token: 7, Progress: &takt.Progress{Done: 1, Total: 2}},
		{Index: 1, State: "queued"}}
	v.show(shards)
	if got := out.String(); !strings.Contains(got, strings.Repeat("█", 5)+strings.Repeat("░", 5)+"  50%") ||
		!strings.Contains(got, "lease 3.2s") || strings.Contains(got, "\x1b[2A") {
		t.Errorf("first drawing: %q", got)
	}
	out.Reset()
	v.say("hello")
	got := out.String()
	if !strings.HasPrefix(got, "\x1b[2A\x1b[J") || strings.Count(got, " lease ") != 2 || strings.Count(got, "hello") != 1 {
		t.Errorf("an event above the bars: %q", got)
	}
}
