package storetest

import (
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// other is the desk of the owner of partition 1.
func (d *desk) other() *desk {
	d.tb.Helper()
	rows, err := d.s.PartitionRows(ctx)
	wantVerdict(d.tb, "PartitionRows", err, "ok")
	row, err := d.s.AcquirePartition(ctx, rows[1], "you", 0, engine.Level)
	wantVerdict(d.tb, "AcquirePartition", err, "ok")
	return &desk{tb: d.tb, s: d.s, f: row.Fence, n: 1000}
}

// move puts job "j" with a pool of the given partition.
func (d *desk) move(partition int, handler string) (job.Definition, store.Written) {
	d.tb.Helper()
	def, w, err := d.s.PutJob(ctx, store.PutJob{Partition: partition, At: noon,
		Definition: job.Definition{UID: job.UID{1}, Namespace: "ns", Name: "j", Spec: job.Spec{Pool: "p", Handler: handler}}})
	wantVerdict(d.tb, "PutJob", err, "ok")
	return def, w
}

// inbox is what a partition has to take in.
func (d *desk) inbox(partition int) []engine.Entry {
	d.tb.Helper()
	page, err := d.s.InboxPage(ctx, partition, 100)
	wantVerdict(d.tb, "InboxPage", err, "ok")
	return page.Entries
}

// dueIn lists the schedules that a partition plans.
func (d *desk) dueIn(partition int) (names string) {
	d.tb.Helper()
	page, err := d.s.DuePage(ctx, partition, engine.WantDue{Until: endOfTime, Limit: 100})
	wantVerdict(d.tb, "DuePage", err, "ok")
	for _, it := range page.Items {
		names += it.Cursor.Schedule + " "
	}
	return names
}

func planning(schedule string, next job.Instant) job.Cursor {
	return job.Cursor{Job: job.UID{1}, Schedule: schedule, Revision: 1, Next: next, Last: noon - 1}
}

func cursors(all ...job.Cursor) engine.Batch { return engine.Batch{Cursors: all} }

// moveCases are about who plans a job, and how that changes.
var moveCases = []examCase{
	{"Move/cursors are handed over with the entry", func(tb TB, s store.Store) {
		a := sit(tb, s)
		b := a.other()
		_, made := a.move(0, "h")
		a.commit(engine.Batch{Cursors: []job.Cursor{planning("x", noon), planning("y", noon+1)}, Consumed: []int64{made.Entry}})
		_, moved := a.move(1, "h2")
		equal(tb, "the planner is told", moved.Partition, 0)
		entry := a.inbox(0)[0]
		equal(tb, "entry, planner, place", []any{entry.ID, entry.Planner, entry.Place}, []any{moved.Entry, 0, 1})
		b.refused("the new one plans before it was given the job", "fenced/planner_guard", cursors(planning("x", noon+9)))
		b.refused("a schedule of its own", "fenced/planner_guard", cursors(planning("z", noon+9)))
		b.refused("it takes the job", "fenced/planner_guard", engine.Batch{Handovers: []engine.Handover{{Job: job.UID{1}, Partition: 1}}})
		b.refused("it takes the entry", "fenced/entry_guard", engine.Batch{Consumed: []int64{moved.Entry}})
		b.refused("it forwards the entry", "fenced/entry_guard", engine.Batch{Forwarded: []engine.Forward{{Entry: moved.Entry, Partition: 1}}})
		a.refused("no such entry", "fenced/entry_guard", engine.Batch{Forwarded: []engine.Forward{{Entry: moved.Entry + 50, Partition: 1}}})
		a.commit(engine.Batch{Cursors: []job.Cursor{planning("x", noon+2)}, DropCursors: []job.Cursor{planning("y", 0)},
			Handovers: []engine.Handover{{Job: job.UID{1}, Partition: 1}}, Forwarded: []engine.Forward{{Entry: moved.Entry, Partition: 1}}})
		equal(tb, "old and new", []any{a.dueIn(0), a.dueIn(1), len(a.inbox(0))}, []any{"", "x ", 0})
		entry = a.inbox(1)[0]
		equal(tb, "the entry has its number", []any{entry.ID, entry.Planner, entry.Place}, []any{moved.Entry, 1, 1})
		equal(tb, "instants travel unchanged", entry.Cursors, []job.Cursor{planning("x", noon+2)})
		pending, err := s.EntryPending(ctx, moved.Entry)
		wantVerdict(tb, "EntryPending", err, "ok")
		equal(tb, "it is pending still", pending, true)
		a.refused("the old one plans on", "fenced/planner_guard", cursors(planning("x", noon+3)))
		a.refused("another schedule", "fenced/planner_guard", cursors(planning("y", noon+3)))
		a.refused("it gives the job away again", "fenced/planner_guard", engine.Batch{Handovers: []engine.Handover{{Job: job.UID{1}, Partition: 0}}})
		a.commit(engine.Batch{DropCursors: []job.Cursor{planning("x", 0)}})
		equal(tb, "what is another's can not be dropped", a.dueIn(1), "x ")
		b.commit(engine.Batch{Cursors: []job.Cursor{planning("x", noon+4), planning("z", noon+5)}, Consumed: []int64{moved.Entry}})
		equal(tb, "the new one plans", a.dueIn(1), "x z ")
	}},
	{"Move/who makes the first cursors", func(tb TB, s store.Store) {
		a := sit(tb, s)
		b := a.other()
		a.move(0, "h")
		_, moved := a.move(1, "h2")
		equal(tb, "without cursors the planner is where it was created", moved.Partition, 0)
		b.refused("the pool's partition has nothing to say yet", "fenced/planner_guard", cursors(planning("x", noon)))
		a.refused("nothing to hand over", "fenced/planner_guard", engine.Batch{Handovers: []engine.Handover{{Job: job.UID{1}, Partition: 1}}})
		give := cursors(planning("x", noon))
		give.Handovers = []engine.Handover{{Job: job.UID{1}, Partition: 1}}
		a.commit(give)
		equal(tb, "made and given away at once", a.dueIn(1), "x ")
		b.commit(engine.Batch{DropCursors: []job.Cursor{planning("x", 0)}})
		b.refused("whoever dropped the last one", "fenced/planner_guard", cursors(planning("x", noon)))
		_, again := a.move(1, "h3")
		equal(tb, "then it is where it was created", again.Partition, 0)
		a.commit(cursors(planning("x", noon)))
		a.refused("of no job", "fenced/planner_guard", cursors(job.Cursor{Job: job.UID{99}, Schedule: "x", Next: noon}))
	}},
	{"Move/pause, resume and deletion find the planner", func(tb TB, s store.Store) {
		a := sit(tb, s)
		b := a.other()
		a.move(0, "h")
		queued := a.insert(job.ExecutionQueued, job.ShardQueued)
		there := b.insert(job.ExecutionQueued, job.ShardQueued)
		b.insert(job.ExecutionRunning, job.ShardLeased)
		a.move(1, "h2")
		give := cursors(planning("x", noon))
		give.Handovers = []engine.Handover{{Job: job.UID{1}, Partition: 1}}
		a.commit(give)
		for _, pause := range []*job.Pause{{At: noon}, nil} {
			_, w, err := s.PauseJob(ctx, store.PauseJob{Namespace: "ns", Name: "j", At: noon, Pause: pause})
			wantVerdict(tb, "PauseJob", err, "ok")
			equal(tb, "pause", w.Partition, 1)
		}
		done, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon, Cancel: true, Reason: "gone"}})
		wantVerdict(tb, "DeleteJob", err, "ok")
		equal(tb, "deletion, and what lives in both", []any{done.Partition, done.Live}, []any{1, 3})
		for partition, want := range [][]job.ExecutionID{{queued.ID}, {there.ID}} {
			n := 0
			for _, e := range a.inbox(partition) {
				if e.Kind == engine.EntryCancelJob {
					n++
					equal(tb, "what waits there", e.Queued, want)
					equal(tb, "why", []any{e.Note, e.Definition.Deleted.Cancel, e.Planner}, []any{"gone", true, 1})
				}
			}
			equal(tb, "one entry for each partition", n, 1)
		}
	}},
	{"Move/a new life of a name has a home of its own", func(tb TB, s store.Store) {
		a := sit(tb, s)
		b := a.other()
		a.move(0, "h")
		a.commit(cursors(planning("x", noon)))
		_, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon}})
		wantVerdict(tb, "DeleteJob", err, "ok")
		def, w, err := s.PutJob(ctx, store.PutJob{Partition: 1, At: noon, Definition: job.Definition{UID: job.UID{2}, Namespace: "ns", Name: "j", Spec: job.Spec{Pool: "p", Handler: "h"}}})
		wantVerdict(tb, "PutJob", err, "ok")
		equal(tb, "its planner", w.Partition, 1)
		b.commit(cursors(job.Cursor{Job: def.UID, Schedule: "x", Next: noon}))
		a.commit(engine.Batch{DropCursors: []job.Cursor{planning("x", 0)}}) // the old life is still its own planner's
		equal(tb, "the old and the new", []any{a.dueIn(0), a.dueIn(1)}, []any{"", "x "})
	}},
	{"Bytes/inbox", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		large := []byte(`"` + strings.Repeat("x", 200<<10) + `"`)
		n := store.PageBytes/len(large) + 2
		for i := range n {
			_, err := s.Trigger(ctx, store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{9: byte(i)}),
				Request: engine.Request{At: noon, Params: large}}, toFirst)
			wantVerdict(tb, "Trigger", err, "ok")
		}
		for left := n + 1; left > 0; {
			page, err := s.InboxPage(ctx, 0, 1000)
			wantVerdict(tb, "InboxPage", err, "ok")
			bytes := 0
			b := engine.Batch{}
			for _, e := range page.Entries {
				if b.Consumed = append(b.Consumed, e.ID); e.Request != nil {
					bytes += len(e.Request.Params)
				}
			}
			if bytes > store.PageBytes || len(page.Entries) == 0 {
				tb.Fatalf("a page of %d entries has %d bytes", len(page.Entries), bytes)
			}
			left -= len(page.Entries)
			equal(tb, "there are more", page.Partial, left > 0)
			d.commit(b)
		}
	}},
	{"Move/requests go where the newest pool is", func(tb TB, s store.Store) {
		a := sit(tb, s)
		a.move(0, "h")
		asked := func() store.Triggered {
			t := store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{9: byte(a.n)}), Request: engine.Request{At: noon}}
			a.n++
			got, err := s.Trigger(ctx, t, func(d job.Definition) int { return int(d.Revision - 1) })
			wantVerdict(tb, "Trigger", err, "ok")
			return got
		}
		before := asked()
		a.move(1, "h2")
		equal(tb, "before and after", []any{before.Partition, asked().Partition}, []any{0, 1})
		cancel, err := s.Ask(ctx, store.Ask{Kind: engine.EntryCancel, Namespace: "ns", Execution: before.Execution})
		wantVerdict(tb, "Ask", err, "ok")
		equal(tb, "a cancel follows its execution", cancel.Partition, 0)
	}},
}
