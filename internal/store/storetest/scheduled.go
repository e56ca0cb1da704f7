package storetest

import (
	"context"
	"fmt"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func (w *twin) ScheduledPage(_ context.Context, partition int, want engine.WantScheduled) (engine.ScheduledPage, error) {
	out := engine.ScheduledPage{Seq: w.parts[partition].Seq, After: want.After, Through: engine.EndOf(want.Until)}
	for _, e := range ordered(w.live, byPlanned) {
		if e.Partition != partition || e.State != job.ExecutionScheduled || e.Reason != job.WaitDelay || e.PlannedAt > want.Until ||
			store.PlaceOf(&e).Compare(want.After) <= 0 {
			continue
		}
		if len(out.Rows) == want.Limit {
			out.Through = store.PlaceOf(&out.Rows[want.Limit-1].Execution)
			break
		}
		row := w.row(e)
		row.Home = w.home(e.JobUID, e.Revision, partition)
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// compareScheduled walks pages as the engine does.
func (h *history) compareScheduled(p int, until job.Instant, limit int) {
	h.tb.Helper()
	want := engine.WantScheduled{Until: until, Limit: limit}
	for want.After.Compare(engine.EndOf(until)) < 0 {
		page, _ := both(h, "ScheduledPage", func(s store.Store) (engine.ScheduledPage, error) { return s.ScheduledPage(ctx, p, want) })
		want.After = page.Through
	}
}

// delayed asks for an execution at an instant; it must go through.
func (d *desk) delayed(name, key string, at job.Instant) store.Triggered {
	d.tb.Helper()
	d.n++
	got, err := d.s.Trigger(ctx, store.Trigger{Namespace: "ns", Job: name, Execution: job.RequestedID(at, [10]byte{byte(d.n)}),
		Key:     store.RequestKey{Namespace: "ns", Operation: store.TriggerOperation(name), Key: key},
		Request: engine.Request{At: at, Delayed: true, Key: key}}, toFirst)
	if err != nil {
		d.tb.Fatalf("Trigger: %v", err)
	}
	return got
}

// scheduledRow is a new execution that waits for its instant, as its owner writes it.
func (d *desk) scheduledRow(at job.Instant, key string) job.Execution {
	d.tb.Helper()
	_, b := d.execution(job.ExecutionScheduled, job.ShardQueued)
	w := &b.Executions[0].Row
	w.PlannedAt, w.Reason, w.RequestKey, w.Trigger = at, job.WaitDelay, key, job.TriggerRequest
	x := *w
	d.commit(b)
	return x
}

var scheduledCases = []examCase{
	{"Engine/scheduled", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		var want []job.ExecutionID
		for n := range 5 {
			want = append(want, d.scheduledRow(noon+job.Instant(n/2), "").ID) // two at an instant
		}
		d.scheduledRow(noon+3, "") // behind what is asked for
		d.insert(job.ExecutionQueued, job.ShardQueued)
		other, b := d.execution(job.ExecutionScheduled, job.ShardQueued)
		b.Executions[0].Row.Reason = job.WaitOverlap
		d.commit(b)
		for limit := 1; limit < 7; limit++ {
			var got []job.ExecutionID
			ask := engine.WantScheduled{Until: noon + 2, Limit: limit}
			for ask.After.Compare(engine.EndOf(noon+2)) < 0 {
				page, err := s.ScheduledPage(ctx, 0, ask)
				wantVerdict(tb, "ScheduledPage", err, "ok")
				if page.Seq != d.f.Seq || page.After != ask.After || len(page.Rows) > limit || page.Through.Compare(ask.After) <= 0 {
					tb.Fatalf("page of %d behind %v: seq %d, %d rows, through %v", limit, ask.After, page.Seq, len(page.Rows), page.Through)
				}
				for _, r := range page.Rows {
					got = append(got, r.Execution.ID)
					if len(r.Shards) != 1 || r.Definition == nil {
						tb.Errorf("row %+v", r)
					}
				}
				ask.After = page.Through
			}
			equal(tb, fmt.Sprintf("pages of %d", limit), got, want)
		}
		last := d.found(want[0]).Execution
		last.PlannedAt = noon + 2
		d.commit(engine.Batch{Executions: []engine.ExecutionWrite{{From: job.ExecutionScheduled, Row: last}}})
		page, err := s.ScheduledPage(ctx, 0, engine.WantScheduled{After: engine.EndOf(noon + 1), Until: noon + 2, Limit: 9})
		wantVerdict(tb, "ScheduledPage", err, "ok")
		if len(page.Rows) != 2 || page.Rows[0].Execution.ID != want[0] || page.Rows[0].Execution.PlannedAt != noon+2 {
			tb.Errorf("the instant of an execution was not changed: %+v", page.Rows)
		}
		d.wantStates("of another reason", other.ID, job.ExecutionScheduled, job.ShardQueued)
	}},
	{"Control/delayed", func(tb TB, s store.Store) {
		d := sit(tb, s)
		def, _ := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		made := d.delayed("j", "k", noon+99_000)
		page, err := s.InboxPage(ctx, 0, 9)
		wantVerdict(tb, "InboxPage", err, "ok")
		e := page.Entries[len(page.Entries)-1]
		equal(tb, "request", e.Request, &engine.Request{At: noon + 99_000, Delayed: true, Key: "k"})
		equal(tb, "kind, execution, definition", []any{e.Kind, e.Execution, e.Definition}, []any{engine.EntryDelayed, made.Execution, &def})
		shown, err := s.Execution(ctx, "ns", made.Execution)
		wantVerdict(tb, "Execution", err, "ok")
		equal(tb, "shown as", []any{shown.State, shown.Reason, shown.PlannedAt}, []any{job.ExecutionScheduled, job.WaitDelay, noon + 99_000})
		equal(tb, "asked again", d.delayed("j", "k", noon+99_000).Execution, made.Execution)
		n, err := s.SweepRequestKeys(ctx, noon+99_000, 9)
		wantVerdict(tb, "SweepRequestKeys", err, "ok")
		equal(tb, "swept before its instant", n, 0)
		d.commit(engine.Batch{Poison: []engine.Poison{{Entry: e.ID, Kind: "InboxPage"}}, Consumed: []int64{e.ID}})
		_, err = s.Requested(ctx, store.RequestKey{Namespace: "ns", Operation: store.TriggerOperation("j"), Key: "k"})
		wantVerdict(tb, "the key of what was set aside", err, "not_found/request_not_found")
	}},
	{"Control/reschedule", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		reschedule := func(id job.ExecutionID, due job.Instant) error {
			_, err := s.Ask(ctx, store.Ask{Kind: engine.EntryReschedule, Namespace: "ns", Execution: id, Due: due, At: noon, Note: "why"})
			return err
		}
		asked := d.delayed("j", "k", noon+1000)
		wantVerdict(tb, "of what its owner has not taken in", reschedule(asked.Execution, noon+5000), "ok")
		page, err := s.InboxPage(ctx, 0, 9)
		wantVerdict(tb, "InboxPage", err, "ok")
		e := page.Entries[len(page.Entries)-1]
		equal(tb, "entry", []any{e.Kind, e.Execution, e.Request, e.Note}, []any{engine.EntryReschedule, asked.Execution, &engine.Request{At: noon + 5000}, "why"})
		k := store.RequestKey{Namespace: "ns", Operation: store.TriggerOperation("j"), Key: "k"}
		id, err := s.Requested(ctx, k)
		wantVerdict(tb, "Requested", err, "ok")
		equal(tb, "Requested", id, asked.Execution)
		n, err := s.SweepRequestKeys(ctx, noon+5000, 9)
		wantVerdict(tb, "SweepRequestKeys", err, "ok")
		equal(tb, "swept before the new instant", n, 0)
		live := d.scheduledRow(noon+1000, "k")
		wantVerdict(tb, "of a live one", reschedule(live.ID, noon+1), "ok")
		now := d.trigger("j", store.RequestKey{})
		running := d.insert(job.ExecutionRunning, job.ShardLeased)
		ended := d.insert(job.ExecutionRunning, job.ShardLeased)
		d.commit(finish(ended, job.ExecutionFailed))
		held, b := d.execution(job.ExecutionScheduled, job.ShardQueued)
		b.Executions[0].Row.Reason = job.WaitOverlap
		d.commit(b)
		for _, id := range []job.ExecutionID{now.Execution, running.ID, ended.ID, held.ID} {
			d.unchanged("of what waits for no instant", "conflict/execution_not_scheduled", func() error { return reschedule(id, noon+1) })
		}
		d.unchanged("nowhere", "not_found/execution_not_found", func() error { return reschedule(job.ExecutionID{1}, noon+1) })
		n, err = s.SweepRequestKeys(ctx, noon+5001, 9)
		wantVerdict(tb, "SweepRequestKeys", err, "ok")
		equal(tb, "swept behind the new instant", n, 1)
		_, err = s.Requested(ctx, k)
		wantVerdict(tb, "a key that was swept", err, "not_found/request_not_found")
	}},
}
