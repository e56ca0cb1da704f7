package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// lead makes a scenario and runs its lines.
func lead(t *testing.T, lines string) *scenario {
	t.Helper()
	s := newScenario()
	s.do(t, lines)
	return s
}

func (s *scenario) do(t *testing.T, lines string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		did, err := s.run(line)
		out.WriteString(did)
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out.String())
		}
	}
	return out.String()
}

// memoryOf is an execution as the engine's memory has it; nil when it is not there.
func (s *scenario) memoryOf(t *testing.T, name string) []job.Shard {
	t.Helper()
	id, _ := s.shardOf(&command{}, name)
	var got *engine.ExecutionView
	reply := s.call("inspect", func(v any) { got = v.(*engine.Inspected).Execution })
	if err := s.step(engine.Inspect{Reply: reply, Query: engine.InspectQuery{Execution: id}}); err != nil {
		t.Fatal(err)
	}
	if got == nil {
		return nil
	}
	return got.Row.Shards
}

func (s *scenario) stored(name string) []job.Shard {
	id, _ := s.shardOf(&command{}, name)
	if r := s.db.live[id]; r != nil {
		return r.shards
	}
	return s.db.history[id].shards
}

// The values of shards that have ended are in the database only, from their batch on and after a load; what
// is said about them still gets the right answer, and a rerun keeps them.
func TestEndedShardsKeepNoValues(t *testing.T) {
	s := lead(t, `
		job files shards=3
		trigger files
		worker A
		report A e1/0 checkpoint 7
		report A e1/0 done success
		report A e1/1 checkpoint 8
		report A e1/1 done error`)
	check := func(when string) {
		t.Helper()
		for i, sh := range s.memoryOf(t, "e1")[:2] {
			if sh.Checkpoint != nil || sh.Result != nil {
				t.Errorf("%s: memory keeps the values of the ended shard %d: %s %s", when, i, sh.Checkpoint, sh.Result)
			}
			if kept := s.stored("e1")[i]; string(kept.Checkpoint) != []string{"7", "8"}[i] || (i == 0) != (kept.Result != nil) {
				t.Errorf("%s: the rows of shard %d lost values: %s %s", when, i, kept.Checkpoint, kept.Result)
			}
		}
	}
	check("ended")
	if out := s.do(t, "report A e1/0 done success token=101 seq=2\nreport A e1/0 done success token=101 seq=3"); !strings.Contains(out, "[accepted]") || !strings.Contains(out, "[stale]") {
		t.Errorf("a repeated and a further report of an ended shard: %s", out)
	}
	s.do(t, "reload")
	check("loaded")
	s.do(t, "report A e1/2 done success\nrerun e1")
	m := s.memoryOf(t, "e1")
	if m[0].Result != nil || string(m[1].Checkpoint) != "8" {
		t.Errorf("rerun: memory has result %s of the one that succeeded, checkpoint %s of the other", m[0].Result, m[1].Checkpoint)
	}
	s.do(t, "poll A\nreport A e1/1 done success")
	for i, sh := range s.stored("e1") {
		if !json.Valid(sh.Result) {
			t.Errorf("the result of shard %d is %q in the end", i, sh.Result)
		}
	}
}

// A report about several executions that are not in memory is answered with what every page told, not with
// the last page alone.
func TestReportWaitsForSeveralPages(t *testing.T) {
	s := lead(t, `
		job files
		trigger files times=2
		worker A
		report A e1/0 done success
		report A e2/0 done success
		pages off`)
	var items []engine.ReportItem
	var refs []engine.ShardRef
	for i, name := range []string{"e1", "e2"} {
		id, _ := s.shardOf(&command{}, name)
		items = append(items, engine.ReportItem{Execution: id, Token: job.Token(101 + i), Seq: 1, Kind: engine.ItemDone, Outcome: engine.OutcomeSuccess})
		refs = append(refs, engine.ShardRef{Execution: id})
	}
	items = append(items, engine.ReportItem{Execution: refs[1].Execution, Shard: 7, Token: 102, Seq: 1, Kind: engine.ItemDone})
	var got *engine.Reported
	reply := s.call("A report again", func(v any) { got = v.(*engine.Reported) })
	events := []engine.Event{engine.Report{Reply: reply, Items: items}}
	for _, asked := range [][]engine.ShardRef{refs[1:], {{Execution: refs[1].Execution, Index: 7}}, refs[:1]} {
		events = append(events, s.db.shardPage(asked))
	}
	for _, ev := range events {
		if got != nil {
			t.Fatalf("answered before %T", ev)
		}
		if err := s.step(ev); err != nil {
			t.Fatal(err)
		}
	}
	if want := []engine.ItemStatus{engine.ItemAccepted, engine.ItemAccepted, engine.ItemUnknown}; got == nil || !slices.Equal(got.Items, want) {
		t.Errorf("answered %v, want %v", got, want)
	}
}

// What has ended leaves nothing behind: no timers for the time-outs that it would have had, no pool, no poll.
func TestEndLeavesNothing(t *testing.T) {
	s := lead(t, `
		job files timeout=1000h handler=index
		worker A slots=1`)
	for i := range 500 {
		s.do(t, fmt.Sprintf("trigger files\nreport A e%d/0 done success\npoll A", i+1))
	}
	timers, pools, polls := s.e.Kept()
	if timers > 100 || pools != 2 || polls != 1 {
		t.Errorf("after 500 executions: %d timers, %d pools and lines, %d polls; want few, 2 and 1", timers, pools, polls)
	}
	s.do(t, "gone A")
	if _, _, polls := s.e.Kept(); polls != 0 {
		t.Errorf("%d polls hang after the only one was given up", polls)
	}
	s.do(t, "poll A\nclose A\nadvance 2s")
	if _, pools, polls := s.e.Kept(); pools+polls != 0 {
		t.Errorf("%d pools and lines, %d polls after the last worker left", pools, polls)
	}
}

// Whom jobs ran after is forgotten when they were edited, deleted or moved away, and not before.
func TestWatchedShrinks(t *testing.T) {
	s := lead(t, `
		job a overlap=allow
		job b overlap=allow`)
	want := func(when string, n int) {
		if got := s.e.Watched(); got != n {
			t.Errorf("%s: %d jobs watch or are watched, want %d", when, got, n)
		}
	}
	for i := range 100 {
		s.do(t, fmt.Sprintf("job c%d after=a,b overlap=allow", i))
	}
	want("a hundred run after the same two", 102)
	s.do(t, "job c0 after=b overlap=allow\njob c1 overlap=allow\njob d delay=5s overlap=allow")
	want("one runs after b alone, one after nothing, and one counts from its own end", 103)
	for i := range 100 {
		s.do(t, fmt.Sprintf("delete c%d", i))
	}
	want("all were deleted but the one", 2)
	s.do(t, "job d delay=5s pool=far@1 overlap=allow")
	want("and that one moved away", 0)
}

// While pages come, all that is due is decided; when they do not come any more, it shows.
func TestUndecided(t *testing.T) {
	s := lead(t, `
		config horizon=20s
		job a every=10s overlap=allow
		advance 25s`)
	if at := s.e.Undecided(); at <= s.wall() || at > s.wall().Add(20*time.Second) {
		t.Errorf("planned up to %s, it is %s", at, s.wall())
	}
	s.do(t, "pages off\nreload")
	if at := s.e.Undecided(); at != 0 {
		t.Errorf("nothing was read: undecided from %s", at)
	}
	s.do(t, "pages on\nadvance 10s\npages off")
	s.do(t, "advance 60s")
	if at := s.e.Undecided(); at > s.wall().Add(-20*time.Second) || at <= wallStart.Add(35*time.Second) {
		t.Errorf("pages do not come: undecided from %s, it is %s", at, s.wall())
	}
	s.do(t, "pages on\nadvance 5s")
	if at := s.e.Undecided(); at <= s.wall() {
		t.Errorf("pages come again: undecided from %s, it is %s", at, s.wall())
	}
}
