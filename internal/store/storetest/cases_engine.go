package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var engineCases = []examCase{
	{"Engine/every field is kept", everyField},
	{"Engine/load", func(tb TB, s store.Store) {
		d := sit(tb, s)
		first, _ := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "old"})
		d.putJob("j", 9, job.Spec{Pool: "p", Handler: "new"})
		running := d.insert(job.ExecutionRunning, job.ShardLeased, job.ShardQueued)
		queued := d.insert(job.ExecutionQueued, job.ShardQueued)
		d.insert(job.ExecutionScheduled, job.ShardQueued)
		cancelling := d.insert(job.ExecutionCancelling)
		d.commit(finish(d.insert(job.ExecutionRunning, job.ShardLeased), job.ExecutionFailed))
		d.commit(engine.Batch{LastToken: 77})
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		equal(tb, "loaded", loaded, engine.Loaded{Seq: d.f.Seq, LastToken: 77, Executions: []engine.Row{
			{Execution: running, Definition: &first, Shards: []job.Shard{
				{Execution: running.ID, Index: 0, State: job.ShardLeased}, {Execution: running.ID, Index: 1, State: job.ShardQueued}}},
			{Execution: cancelling, Definition: &first},
		}, Waiting: []engine.Waiting{{Job: job.UID{1}, ID: queued.ID, PlannedAt: queued.PlannedAt, State: job.ExecutionQueued}}})
		other, err := s.LoadPartition(ctx, 1)
		wantVerdict(tb, "LoadPartition", err, "ok")
		equal(tb, "the other partition", other, engine.Loaded{})
		_, err = s.LoadPartition(ctx, 2)
		wantVerdict(tb, "LoadPartition of none", err, "not_found/partition_not_found")
	}},
	{"Engine/load tells what counts for overlap policies", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		want := engine.Loaded{}
		for _, c := range []struct {
			state   job.ExecutionState
			reason  job.Reason
			trigger job.Trigger
			counts  bool
		}{
			{job.ExecutionScheduled, job.WaitOverlap, job.TriggerSchedule, true},
			{job.ExecutionScheduled, job.WaitReplace, job.TriggerRequest, true},
			{job.ExecutionScheduled, job.WaitDelay, job.TriggerRequest, false},
			{job.ExecutionScheduled, "", job.TriggerSchedule, false},
			{job.ExecutionQueued, "", job.TriggerSchedule, true},
			{job.ExecutionQueued, job.ReasonRerun, job.TriggerCatchUp, true},
			{job.ExecutionQueued, job.ReasonOverlapFree, job.TriggerSchedule, false},
			{job.ExecutionQueued, job.ReasonOverlapTurn, job.TriggerRequest, true},
			{job.ExecutionQueued, "", job.TriggerRequest, false},
		} {
			x, b := d.execution(c.state, job.ShardQueued)
			row := &b.Executions[0].Row
			row.Reason, row.Trigger, row.Round = c.reason, c.trigger, 2
			d.commit(b)
			if c.counts {
				want.Waiting = append(want.Waiting, engine.Waiting{Job: x.JobUID, ID: x.ID, PlannedAt: x.PlannedAt, State: c.state, Reason: c.reason, Round: 2})
			}
		}
		want.Seq = d.f.Seq
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		equal(tb, "loaded", loaded, want)
	}},
	{"Engine/load leaves what ended shards hold", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		x, b := d.execution(job.ExecutionRunning, job.ShardLeased, job.ShardLeased)
		for i := range b.Shards {
			row := &b.Shards[i].Row
			row.Token, row.ReportSeq, row.Checkpoint, row.Worker, row.Attempt = 7, 8, []byte(`{"big":1}`), "w", 1
		}
		d.commit(b)
		done := b.Shards[1].Row
		done.State, done.Reason, done.Closed, done.EndedAt, done.Result = job.ShardFailed, job.ReasonHandlerFatal, true, noon, []byte(`"big"`)
		done.Error = &job.Failure{Message: "long"}
		d.commit(engine.Batch{Shards: []engine.ShardWrite{{From: job.ShardLeased, Row: done}}})
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		equal(tb, "shards", loaded.Executions[0].Shards, []job.Shard{b.Shards[0].Row, {Execution: x.ID, Index: 1, State: job.ShardFailed, Reason: job.ReasonHandlerFatal,
			Token: 7, ReportSeq: 8, Closed: true, EndedAt: noon}})
	}},
	{"Engine/inbox", func(tb TB, s store.Store) {
		d := sit(tb, s)
		first, changed := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		asked := d.trigger("j", store.RequestKey{})
		newest, changedAgain := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "newer"})
		c := job.Cursor{Job: job.UID{1}, Schedule: "s", Next: noon}
		d.commit(engine.Batch{Cursors: []job.Cursor{c}})
		cancel, err := s.Ask(ctx, store.Ask{Kind: engine.EntryCancel, Namespace: "ns", Execution: asked.Execution, Note: "why"})
		wantVerdict(tb, "Ask", err, "ok")
		running := d.insert(job.ExecutionRunning, job.ShardLeased)
		overtakes, err := s.Ask(ctx, store.Ask{Kind: engine.EntryCancel, Namespace: "ns", Execution: running.ID})
		wantVerdict(tb, "Ask", err, "ok")
		want := []engine.Entry{
			{ID: overtakes.Entry, Kind: engine.EntryCancel, Execution: running.ID},
			{ID: changed.Entry, Kind: engine.EntryJobChanged, Job: job.UID{1}, Definition: &newest, Cursors: []job.Cursor{c}},
			{ID: asked.Entry, Kind: engine.EntryTrigger, Job: job.UID{1}, Execution: asked.Execution, Definition: &first, Cursors: []job.Cursor{c}, Pool: "p",
				Request: &engine.Request{At: asked.Execution.PlannedAt(), Params: json.RawMessage(`{"x":1}`)}},
			{ID: changedAgain.Entry, Kind: engine.EntryJobChanged, Job: job.UID{1}, Definition: &newest, Cursors: []job.Cursor{c}},
			{ID: cancel.Entry, Kind: engine.EntryCancel, Execution: asked.Execution, Note: "why"},
		}
		for limit := 1; limit < 7; limit++ {
			page, err := s.InboxPage(ctx, 0, limit)
			wantVerdict(tb, "InboxPage", err, "ok")
			equal(tb, fmt.Sprintf("page of %d", limit), page, engine.InboxPage{Seq: d.f.Seq, Entries: append([]engine.Entry(nil), want[:min(limit, 5)]...), Partial: limit < 5})
		}
	}},
	{"Engine/due", func(tb TB, s store.Store) {
		d := sit(tb, s)
		a, _ := d.putJob("a", 1, job.Spec{Pool: "p", Handler: "h"})
		b, _ := d.putJob("b", 2, job.Spec{Pool: "p", Handler: "h"})
		off, _ := d.putJob("off", 3, job.Spec{Pool: "p", Handler: "h", Disabled: true})
		gone, _ := d.putJob("gone", 9, job.Spec{Pool: "p", Handler: "h"})
		_, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "gone", Deletion: job.Deletion{At: noon}})
		wantVerdict(tb, "DeleteJob", err, "ok")
		cursor := func(d job.Definition, schedule string, next job.Instant) job.Cursor {
			return job.Cursor{Job: d.UID, Schedule: schedule, Revision: 1, Next: next, Last: 1}
		}
		want := []job.Cursor{cursor(b, "x", noon-5), cursor(a, "x", noon), cursor(a, "y", noon), cursor(b, "w", noon)}
		d.commit(engine.Batch{Cursors: append([]job.Cursor{cursor(off, "x", noon), cursor(a, "never", 0), cursor(b, "late", noon+1),
			cursor(gone, "gone", noon)}, want...)})
		var got []job.Cursor
		ask := engine.WantDue{Until: noon, Limit: 3}
		page, err := s.DuePage(ctx, 0, ask)
		wantVerdict(tb, "DuePage", err, "ok")
		equal(tb, "partial, seq, until", []any{page.Partial, page.Seq, page.Until}, []any{true, d.f.Seq, noon})
		for _, it := range page.Items {
			got = append(got, it.Cursor)
		}
		ask.After = &got[len(got)-1]
		page, err = s.DuePage(ctx, 0, ask)
		wantVerdict(tb, "DuePage", err, "ok")
		equal(tb, "partial at the end", page.Partial, false)
		for _, it := range page.Items {
			got = append(got, it.Cursor)
		}
		equal(tb, "due", got, want)
		equal(tb, "definition", page.Items[0].Definition, &b)
		d.putJob("off", 3, job.Spec{Pool: "p", Handler: "h"})
		d.commit(engine.Batch{DropCursors: want})
		page, _ = s.DuePage(ctx, 0, engine.WantDue{Until: noon, Limit: 3})
		equal(tb, "enabled again, the others dropped", len(page.Items), 1)
		d.putJob("off", 3, job.Spec{Pool: "p", Handler: "h", Disabled: true})
		page, _ = s.DuePage(ctx, 0, engine.WantDue{Until: noon, Limit: 3})
		equal(tb, "disabled again, which its owner has not taken in", len(page.Items), 1)
	}},
	{"Engine/backlog", func(tb TB, s store.Store) {
		d := sit(tb, s)
		var want []job.ExecutionID
		for i := range 5 {
			e := d.insert(job.ExecutionQueued, job.ShardQueued, job.ShardRetryWait)
			if i > 0 {
				want = append(want, e.ID)
			} else {
				d.commit(finish(e, job.ExecutionRunning))
			}
		}
		var got []job.ExecutionID
		ask := engine.WantBacklog{Limit: 3}
		for _, partial := range []bool{true, false} {
			page, err := s.BacklogPage(ctx, 0, ask)
			wantVerdict(tb, "BacklogPage", err, "ok")
			equal(tb, "partial and seq", []any{page.Partial, page.Seq}, []any{partial, d.f.Seq})
			for _, row := range page.Rows {
				equal(tb, "shards", len(row.Shards), 2)
				got = append(got, row.Execution.ID)
				ask.PlannedAt, ask.ID = row.Execution.PlannedAt, row.Execution.ID
			}
		}
		equal(tb, "backlog", got, want)
	}},
	{"Engine/executions", func(tb TB, s store.Store) {
		d := sit(tb, s)
		first, _ := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "old"})
		d.putJob("j", 9, job.Spec{Pool: "p", Handler: "new"})
		live := d.insert(job.ExecutionRunning, job.ShardLeased)
		ended := d.insert(job.ExecutionRunning, job.ShardLeased)
		d.commit(finish(ended, job.ExecutionFailed))
		ids := []job.ExecutionID{ended.ID, {5}, live.ID}
		page, err := s.ExecutionPage(ctx, 0, ids)
		wantVerdict(tb, "ExecutionPage", err, "ok")
		equal(tb, "asked and seq", []any{page.Asked, page.Seq}, []any{ids, d.f.Seq})
		equal(tb, "rows", len(page.Rows), 2)
		equal(tb, "ended", page.Rows[0].Execution, withState(ended, job.ExecutionFailed))
		equal(tb, "live", page.Rows[1].Execution, live)
		equal(tb, "definition of its revision", page.Rows[1].Definition, &first)
		page, _ = s.ExecutionPage(ctx, 1, ids)
		equal(tb, "rows of the other partition", len(page.Rows), 0)
	}},
	{"Engine/shards", func(tb TB, s store.Store) {
		d := sit(tb, s)
		live := d.insert(job.ExecutionRunning, job.ShardLeased, job.ShardLeased)
		ended := d.insert(job.ExecutionRunning, job.ShardLeased)
		write := func(id job.ExecutionID, n int, sh job.Shard) {
			sh.Execution, sh.Index, sh.State = id, n, job.ShardLeased
			d.commit(engine.Batch{Shards: []engine.ShardWrite{{From: job.ShardLeased, Row: sh}}})
		}
		write(live.ID, 1, job.Shard{Token: 71, ReportSeq: 5, Closed: true})
		write(ended.ID, 0, job.Shard{Token: 72, ReportSeq: 6, Result: json.RawMessage(`{}`)})
		d.commit(finish(ended, job.ExecutionFailed))
		refs := []engine.ShardRef{{Execution: ended.ID}, {Execution: job.ExecutionID{5}}, {Execution: live.ID, Index: 1}, {Execution: live.ID, Index: 2}, {Execution: live.ID}}
		page, err := s.ShardPage(ctx, 0, refs)
		wantVerdict(tb, "ShardPage", err, "ok")
		equal(tb, "page", page, engine.ShardPage{Seq: d.f.Seq, Asked: refs, Rows: []engine.Settled{
			{ShardRef: refs[0], Token: 72, ReportSeq: 6}, {ShardRef: refs[2], Token: 71, ReportSeq: 5, Closed: true}, {ShardRef: refs[4]}}})
		page, err = s.ShardPage(ctx, 1, refs)
		wantVerdict(tb, "ShardPage", err, "ok")
		equal(tb, "rows of the other partition", len(page.Rows), 0)
	}},
	{"Engine/pages are snapshots", snapshots},
}

// everyField writes a value into each field and reads it back from live rows and from history: no column is forgotten.
func everyField(tb TB, s store.Store) {
	d := sit(tb, s)
	e, b := d.execution(job.ExecutionRunning, job.ShardRunning)
	var sh job.Shard
	fill(reflect.ValueOf(&e).Elem(), 1)
	fill(reflect.ValueOf(&sh).Elem(), 100)
	e.ID, e.Partition, e.ShardTotal, e.State = b.Executions[0].Row.ID, 0, 1, job.ExecutionRunning
	sh.Execution, sh.Index, sh.State = e.ID, 0, job.ShardRunning
	b.Executions[0].Row, b.Shards[0].Row = e, sh
	d.commit(b)
	check := func(what string) {
		row := d.found(e.ID)
		if row == nil {
			tb.Fatalf("%s: the execution is nowhere", what)
		}
		equal(tb, what+": execution", row.Execution, e)
		equal(tb, what+": shard", row.Shards, []job.Shard{sh})
	}
	check("inserted")

	kept := e
	fill(reflect.ValueOf(&e).Elem(), 200)
	fill(reflect.ValueOf(&sh).Elem(), 300)
	// what an execution is does not change
	e.ID, e.Partition, e.Namespace, e.Job, e.JobUID = kept.ID, kept.Partition, kept.Namespace, kept.Job, kept.JobUID
	e.Trigger, e.PlannedAt, e.RequestKey, e.CreatedAt, e.ShardTotal = kept.Trigger, kept.PlannedAt, kept.RequestKey, kept.CreatedAt, 1
	sh.Execution, sh.Index = e.ID, 0
	e.State, sh.State = job.ExecutionCancelling, job.ShardStopping
	write := func(from job.ExecutionState, shard job.ShardState) {
		d.commit(engine.Batch{Executions: []engine.ExecutionWrite{{From: from, Row: e}}, Shards: []engine.ShardWrite{{From: shard, Row: sh}}})
	}
	write(job.ExecutionRunning, job.ShardRunning)
	check("changed")
	e.State, sh.State = job.ExecutionFailed, job.ShardFailed
	write(job.ExecutionCancelling, job.ShardStopping)
	check("ended")
	e.State, sh.State = job.ExecutionQueued, job.ShardQueued
	write(job.ExecutionFailed, job.ShardFailed)
	check("rerun")
}

// fill puts another value into each field of a row.
func fill(v reflect.Value, n int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Unfit" { // which whoever reads says
				fill(v.Field(i), n+int64(i))
			}
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("t%d", n))
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Array:
		v.Index(0).SetUint(uint64(n) % 256)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, n))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n+int64(i))
		}
	default:
		panic("fill: " + v.Type().String())
	}
}

// snapshots reads while commits go on. Each commit ends one execution and starts the next, so a partition
// that does not hold exactly the execution of its Seq was read from two states.
func snapshots(tb TB, s store.Store) {
	d := sit(tb, s)
	const commits = 200
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
				}
				got, err := s.LoadPartition(ctx, 0)
				whole := err == nil && len(got.Executions) == int(min(got.Seq, 1))
				for _, row := range got.Executions {
					whole = whole && row.Execution.PlannedAt == noon+job.Instant(got.Seq) && len(row.Shards) == 2
				}
				if !whole {
					tb.Errorf("read at seq %d: %v, %v", got.Seq, got.Executions, err)
					return
				}
			}
		})
	}
	var before engine.Batch
	for range commits {
		e, b := d.execution(job.ExecutionRunning, job.ShardLeased, job.ShardLeased)
		b.Executions = append(b.Executions, before.Executions...)
		d.commit(b)
		before = finish(e, job.ExecutionFailed)
	}
	close(done)
	readers.Wait()
}
