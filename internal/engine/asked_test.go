package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// A page of another kind may bring an execution that a backfill has asked for. It is waited for still: the answer may be too old by then,
// and the backfill would wait for ever.
func TestAskedThoughAnotherPageBroughtIt(t *testing.T) {
	s := lead(t, "job j cron=*/10_*_*_*_*_*\nadvance 11s quiet\nbackfill j from=10s to=10s unread")
	id := s.db.ordered()[0].row.ID
	e, at := engine.New(s.cfg), s.now()
	at.Mono, at.Wall = at.Mono+time.Second, at.Wall.Add(time.Second)
	res := e.Step(at, []engine.Event{s.db.loaded(true), s.db.inboxPage(10), engine.Tick{}})
	if !slices.Contains(res.Want.Executions, id) || res.Want.Backlog == nil {
		t.Fatalf("wanted: %+v", res.Want)
	}
	old := s.db.executionPage(res.Want.Executions)
	old.Seq--
	cancel := engine.Entry{ID: 99, Kind: engine.EntryCancel, Execution: id, Job: s.jobs["j"].UID}
	res = e.Step(at, []engine.Event{s.db.backlogPage(*res.Want.Backlog), engine.InboxPage{Seq: s.db.seq, Entries: []engine.Entry{cancel}}, engine.Tick{}})
	if n := len(res.Batch.Executions); n != 1 || res.Batch.Executions[0].Row.State != job.ExecutionCancelled {
		t.Fatalf("%d executions are written", n)
	}
	res = e.Step(at, []engine.Event{old, engine.Tick{}})
	if !slices.Contains(res.Want.Executions, id) {
		t.Error("it is not asked for again")
	}
}

// What a backfill runs is cancelled with it, whichever page brings it first to a new owner.
func TestCancelledBackfillAtTakeover(t *testing.T) {
	for name, backlogFirst := range map[string]bool{"by itself": false, "with what is queued": true} {
		s := lead(t, "job j cron=0_0_1_1_1_*\nadvance 1s quiet\njob j cron=*/10_*_*_*_*_*\nbackfill j from=-10s to=-10s\nadvance 100ms quiet\nunfill running unread")
		e, at := engine.New(s.cfg), s.now()
		at.Mono, at.Wall = at.Mono+time.Second, at.Wall.Add(time.Second)
		want := e.Step(at, []engine.Event{s.db.loaded(true), engine.Tick{}}).Want
		if len(want.Executions) != 1 || want.Backlog == nil {
			t.Fatalf("wanted: %+v", want)
		}
		pages := []engine.Event{s.db.executionPage(want.Executions), s.db.backlogPage(*want.Backlog)}
		if backlogFirst {
			slices.Reverse(pages)
		}
		cancelled := 0
		for _, page := range pages {
			for _, row := range e.Step(at, []engine.Event{page, engine.Tick{}}).Batch.Executions {
				if row.Row.State == job.ExecutionCancelled {
					cancelled++
				}
			}
		}
		if cancelled != 1 {
			t.Errorf("brought %s: %d are cancelled, want 1", name, cancelled)
		}
	}
}
