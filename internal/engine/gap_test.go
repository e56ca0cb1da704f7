package engine_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// What people asked while nobody owned the partition comes before what was due meanwhile: a new owner that is brought both in one step
// moves, or cancels, what would have begun.
func TestAskedWhileNobodyOwned(t *testing.T) {
	for _, kind := range []engine.EntryKind{engine.EntryReschedule, engine.EntryCancel} {
		s := lead(t, "job files\ntrigger files in=10s\nworker A slots=1")
		rows := s.db.ordered()
		id := rows[0].row.ID
		e, at := engine.New(s.cfg), s.now()
		at.Mono, at.Wall = at.Mono+20*time.Second, at.Wall.Add(20*time.Second)
		want := e.Step(at, []engine.Event{s.db.loaded(true), engine.Tick{}}).Want
		if want.Scheduled == nil {
			t.Fatal("nothing is asked for that waits for its instant")
		}
		entry := engine.Entry{ID: 99, Kind: kind, Execution: id, Job: s.jobs["files"].UID, Request: &engine.Request{At: at.Wall.Add(time.Minute)}}
		res := e.Step(at, []engine.Event{s.db.scheduledPage(*want.Scheduled), engine.InboxPage{Seq: s.db.seq, Entries: []engine.Entry{entry}}, engine.Tick{}})
		b := &res.Batch
		if len(b.Executions) != 1 || len(b.Consumed) != 1 {
			t.Fatalf("%s: %d executions are written, %d entries consumed", kind, len(b.Executions), len(b.Consumed))
		}
		x := &b.Executions[0].Row
		moved := x.State == job.ExecutionScheduled && x.PlannedAt == entry.Request.At
		if ended := x.State == job.ExecutionCancelled; kind == engine.EntryReschedule && !moved || kind == engine.EntryCancel && !ended {
			t.Errorf("%s: the execution is %s for %v", kind, x.State, x.PlannedAt.Time())
		}
	}
}

// An owner that stood still for less than its lease finds in its memory what came due meanwhile, and in the inbox what people asked before
// that: it reads the inbox first. When none of it comes, it waits no longer than a second.
func TestAskedWhileTheOwnerStoodStill(t *testing.T) {
	for _, asked := range []engine.EntryKind{engine.EntryReschedule, engine.EntryCancel, ""} {
		s := lead(t, "job files\ntrigger files in=10s\nworker A slots=1")
		id := s.db.ordered()[0].row.ID
		e, at := engine.New(s.cfg), s.now()
		step := func(after time.Duration, events ...engine.Event) engine.Result {
			at.Mono, at.Wall = at.Mono+after, at.Wall.Add(after)
			return e.Step(at, append(events, engine.Tick{}))
		}
		want := step(8*time.Second, s.db.loaded(false)).Want
		step(time.Millisecond, s.db.scheduledPage(*want.Scheduled))
		if res := step(4 * time.Second); !res.Batch.Empty() || !res.Want.Inbox {
			t.Fatalf("%q: it begins before the inbox was read (%v), which is asked for: %v", asked, res.Batch.Executions, res.Want.Inbox)
		}
		var events []engine.Event
		if asked != "" {
			events = append(events, engine.InboxPage{Seq: s.db.seq, Entries: []engine.Entry{{ID: 99, Kind: asked, Execution: id, Job: s.jobs["files"].UID,
				Request: &engine.Request{At: at.Wall.Add(time.Minute)}}}})
		}
		states := []job.ExecutionState{}
		for _, r := range []engine.Result{step(50 * time.Millisecond), step(50*time.Millisecond, events...), step(900 * time.Millisecond)} {
			for i := range r.Batch.Executions {
				states = append(states, r.Batch.Executions[i].Row.State)
			}
		}
		is := map[engine.EntryKind]job.ExecutionState{engine.EntryReschedule: job.ExecutionScheduled, engine.EntryCancel: job.ExecutionCancelled, "": job.ExecutionQueued}[asked]
		if len(states) != 1 || states[0] != is {
			t.Errorf("%q: the execution is %v, want %s", asked, states, is)
		}
	}
}
