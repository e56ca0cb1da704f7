package storetest

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// rowIn is what the page of a partition tells of an execution.
func (d *desk) rowIn(partition int, id job.ExecutionID) (engine.Row, engine.Elsewhere) {
	d.tb.Helper()
	page, err := d.s.ExecutionPage(ctx, partition, []job.ExecutionID{id})
	wantVerdict(d.tb, "ExecutionPage", err, "ok")
	if len(page.Rows) == 0 {
		return engine.Row{}, page.Elsewhere[id]
	}
	return page.Rows[0], engine.Elsewhere{}
}

// followCases are about what waits and goes with its job to another partition.
var followCases = []examCase{
	{"Follow/where a job is", func(tb TB, s store.Store) {
		a := sit(tb, s)
		_, made := a.move(0, "h")
		a.commit(engine.Batch{At: noon, Consumed: []int64{made.Entry}})
		x := a.scheduledRow(noon+5, "")
		home := func() *engine.Home {
			tb.Helper()
			row, _ := a.rowIn(0, x.ID)
			page, err := s.ScheduledPage(ctx, 0, engine.WantScheduled{Until: noon + 10, Limit: 10})
			wantVerdict(tb, "ScheduledPage", err, "ok")
			equal(tb, "both pages", page.Rows[0].Home, row.Home)
			return row.Home
		}
		equal(tb, "here, and under the newest revision", home(), (*engine.Home)(nil))
		a.move(0, "h2")
		equal(tb, "under another revision", home(), &engine.Home{Place: 0, Pool: "p", Planner: 0})
		a.move(1, "h3")
		equal(tb, "moved, with nothing to hand over", home(), &engine.Home{Place: 1, Pool: "p", Planner: 1})
		a.commit(cursors(planning("main", noon+60_000)))
		equal(tb, "about to move", home(), &engine.Home{Place: 1, Pool: "p", Planner: 0})
		a.commit(engine.Batch{At: noon, Handovers: []engine.Handover{{Job: job.UID{1}, Partition: 1}}})
		equal(tb, "moved", home(), &engine.Home{Place: 1, Pool: "p", Planner: 1})
		_, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon}})
		wantVerdict(tb, "DeleteJob", err, "ok")
		equal(tb, "deleted", home(), (*engine.Home)(nil))
	}},
	{"Follow/an execution is sent", func(tb TB, s store.Store) {
		a := sit(tb, s)
		b := a.other()
		_, made := a.move(0, "h")
		a.commit(engine.Batch{At: noon, Consumed: []int64{made.Entry}})
		x := a.scheduledRow(noon+5, "")
		sent := x
		sent.Partition, sent.Reason = 1, job.WaitMove
		a.commit(engine.Batch{At: noon, Executions: []engine.ExecutionWrite{{From: x.State, Sent: true, Row: sent}}})
		_, away := a.rowIn(0, x.ID)
		equal(tb, "it is elsewhere", away, engine.Elsewhere{State: job.ExecutionScheduled, Partition: 1})
		page, _ := s.ScheduledPage(ctx, 0, engine.WantScheduled{Until: noon + 10, Limit: 10})
		equal(tb, "and not in the pages of where it was", len(page.Rows), 0)
		all := a.inbox(1)
		if len(all) != 1 {
			tb.Fatalf("the inbox of the other partition holds %+v", all)
		}
		equal(tb, "entry", []any{all[0].Kind, all[0].Execution, all[0].Job, all[0].Definition.Revision}, []any{engine.EntryArrived, x.ID, x.JobUID, int64(1)})
		row, _ := b.rowIn(1, x.ID)
		equal(tb, "row", []any{row.Execution, len(row.Shards)}, []any{sent, 1})
		taken := sent
		taken.State, taken.Reason, taken.Pool = job.ExecutionQueued, "", "q"
		b.commit(engine.Batch{At: noon, Consumed: []int64{all[0].ID}, Executions: []engine.ExecutionWrite{{From: sent.State, Row: taken}}})
		row, _ = b.rowIn(1, x.ID)
		equal(tb, "taken in", row.Execution, taken)
		backlog, _ := s.BacklogPage(ctx, 1, engine.WantBacklog{Limit: 10})
		equal(tb, "in its backlog", len(backlog.Rows), 1)
		asked, err := s.Ask(ctx, store.Ask{Kind: engine.EntryCancel, Namespace: "ns", Execution: x.ID, At: noon})
		wantVerdict(tb, "Ask", err, "ok")
		equal(tb, "who is asked about it", asked.Partition, 1)
	}},
	{"Follow/an ended execution is sent", func(tb TB, s store.Store) {
		a := sit(tb, s)
		b := a.other()
		a.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		x := a.insert(job.ExecutionQueued, job.ShardQueued, job.ShardQueued)
		done := finish(x, job.ExecutionFailed)
		done.Shards = append(shard(x, 0, job.ShardQueued, job.ShardFailed).Shards, shard(x, 1, job.ShardQueued, job.ShardSucceeded).Shards...)
		a.commit(done)
		again := x
		again.State, again.Reason, again.Round, again.Partition = job.ExecutionScheduled, job.WaitMove, 1, 1
		a.commit(engine.Batch{At: noon, Executions: []engine.ExecutionWrite{{From: job.ExecutionFailed, Sent: true, Row: again}},
			Shards: shard(x, 0, job.ShardFailed, job.ShardQueued).Shards})
		row, _ := b.rowIn(1, x.ID)
		equal(tb, "it lives there", []any{row.Execution, row.Shards[0].State, row.Shards[1].State}, []any{again, job.ShardQueued, job.ShardSucceeded})
		equal(tb, "entries", len(a.inbox(1)), 1)
	}},
	{"Follow/to where it is", func(tb TB, s store.Store) {
		a := sit(tb, s)
		_, made := a.move(0, "h")
		a.commit(engine.Batch{At: noon, Consumed: []int64{made.Entry}})
		x := a.scheduledRow(noon+5, "")
		sent := x
		sent.Reason = job.WaitMove
		a.commit(engine.Batch{At: noon, Executions: []engine.ExecutionWrite{{From: x.State, Sent: true, Row: sent}}})
		equal(tb, "entry", []any{len(a.inbox(0)), a.inbox(0)[0].Kind}, []any{1, engine.EntryArrived})
	}},
	{"Follow/a backfill is sent", func(tb TB, s store.Store) {
		a, def := plannedJob(tb, s)
		b := a.other()
		made, w, _ := a.backfill(1, noon-2000, noon)
		p := job.BackfillProgress{ID: made.ID, State: job.BackfillRunning, Cursor: noon - 1000, Succeeded: 1, Started: noon, Pool: "q"}
		sent := engine.SentBackfill{ID: made.ID, Job: def.UID, Namespace: "ns", Revision: made.Revision, Partition: 1}
		a.refused("one that has not begun", "fenced/backfill_guard", engine.Batch{At: noon, SentBackfills: []engine.SentBackfill{sent}})
		b.refused("of another partition", "fenced/backfill_guard", engine.Batch{At: noon, SentBackfills: []engine.SentBackfill{sent}})
		a.commit(engine.Batch{At: noon, Consumed: []int64{w.Entry}, Backfills: []job.BackfillProgress{p}, SentBackfills: []engine.SentBackfill{sent}})
		a.refused("sent already", "fenced/backfill_guard", engine.Batch{At: noon, Backfills: []job.BackfillProgress{p}})
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		there, err := s.LoadPartition(ctx, 1)
		wantVerdict(tb, "LoadPartition", err, "ok")
		if len(loaded.Backfills) != 0 || len(there.Backfills) != 1 {
			tb.Fatalf("partition 0 has %+v, partition 1 %+v", loaded.Backfills, there.Backfills)
		}
		equal(tb, "as it was", there.Backfills[0].Progress, p)
		all := a.inbox(1)
		if len(all) != 1 || all[0].Backfill == nil {
			tb.Fatalf("the inbox of the other partition holds %+v", all)
		}
		equal(tb, "entry", []any{all[0].Kind, all[0].Execution, all[0].Backfill.Partition, all[0].Definition.Revision, all[0].Pool},
			[]any{engine.EntryBackfill, made.ID, 1, made.Revision, def.Spec.Pool})
		p.Succeeded++
		b.commit(engine.Batch{At: noon, Consumed: []int64{all[0].ID}, Backfills: []job.BackfillProgress{p}})
		_, told, err := s.CancelBackfill(ctx, store.CancelBackfill{Namespace: "ns", ID: made.ID, Cancel: job.BackfillCancel{At: noon}})
		wantVerdict(tb, "CancelBackfill", err, "ok")
		equal(tb, "who is told of its cancel", told.Partition, 1)
	}},
}
