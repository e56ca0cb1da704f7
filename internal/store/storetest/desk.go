package storetest

import (
	"encoding/json"
	"reflect"

	"github.com/google/go-cmp/cmp"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// noon is the instant at which cases play.
const noon = job.Instant(1_800_000_000_000)

// desk is where the owner of partition 0 works in a case.
type desk struct {
	tb TB
	s  store.Store
	f  store.Fence
	n  int // of ids made

	level int // of its batches
}

func sit(tb TB, s store.Store) *desk {
	tb.Helper()
	d := &desk{tb: tb, s: s, level: engine.Level}
	rows, err := s.PartitionRows(ctx)
	if err != nil || len(rows) != 2 {
		tb.Fatalf("PartitionRows: %v, %v", rows, err)
	}
	row, err := s.AcquirePartition(ctx, rows[0], "me", 0, engine.Level)
	if err != nil {
		tb.Fatalf("AcquirePartition: %v", err)
	}
	d.f = row.Fence
	return d
}

// commit must go through.
func (d *desk) commit(b engine.Batch) {
	d.tb.Helper()
	b.Seq, b.Level = d.f.Seq+1, d.level
	if err := d.s.Commit(ctx, d.f, &b); err != nil {
		d.tb.Fatalf("Commit: %v", err)
	}
	d.f.Seq++
}

// refused must fail with the verdict and change nothing.
func (d *desk) refused(what, want string, b engine.Batch) {
	d.tb.Helper()
	b.Seq, b.Level = d.f.Seq+1, d.level
	d.unchanged(what, want, func() error { return d.s.Commit(ctx, d.f, &b) })
}

// unchanged runs f, which must fail with the verdict, and compares all that can be read.
func (d *desk) unchanged(what, want string, f func() error) {
	d.tb.Helper()
	before := d.everything()
	if err := f(); verdict(err) != want {
		d.tb.Errorf("%s: answered %s (%v), should be %s", what, verdict(err), err, want)
	}
	if diff := cmp.Diff(before, d.everything()); diff != "" {
		d.tb.Errorf("%s: was refused and changed something:\n%s", what, diff)
	}
}

// everything is a text of what partition 0 and namespace "ns" hold.
func (d *desk) everything() string {
	d.tb.Helper()
	var all []any
	add := func(v any, err error) {
		d.tb.Helper()
		if err != nil {
			d.tb.Fatalf("reading: %v", err)
		}
		all = append(all, v)
	}
	rows, err := d.s.PartitionRows(ctx)
	add(rows, err)
	loaded, err := d.s.LoadPartition(ctx, 0)
	add(loaded, err)
	inbox, err := d.s.InboxPage(ctx, 0, 1000)
	add(inbox, err)
	due, err := d.s.DuePage(ctx, 0, engine.WantDue{Until: endOfTime, Limit: 1000})
	add(due, err)
	backlog, err := d.s.BacklogPage(ctx, 0, engine.WantBacklog{Limit: 1000})
	add(backlog, err)
	scheduled, err := d.s.ScheduledPage(ctx, 0, engine.WantScheduled{Until: endOfTime, Limit: 1000})
	add(scheduled, err)
	jobs, _, err := d.s.Jobs(ctx, "ns", store.Page{Limit: 1000})
	add(jobs, err)
	executions, _, err := d.s.Executions(ctx, store.ExecutionFilter{Namespace: "ns", Page: store.Page{Limit: 1000}})
	add(executions, err)
	for _, e := range executions {
		shards, _, err := d.s.Shards(ctx, "ns", e.ID, store.Page{Limit: 1000})
		add(shards, err)
	}
	decisions, _, err := d.s.Decisions(ctx, "ns", "", store.Page{Limit: 1000})
	add(decisions, err)
	journal, err := d.s.Journal(ctx, 0, 0, 1000)
	add(journal, err)
	text, err := json.MarshalIndent(all, "", " ")
	add(nil, err)
	return string(text)
}

// execution is a new one of job "j" with n shards in a state each, as a batch that inserts it.
func (d *desk) execution(state job.ExecutionState, shards ...job.ShardState) (job.Execution, engine.Batch) {
	d.n++
	at := noon + job.Instant(d.n)
	e := job.Execution{ID: job.PlannedID(job.UID{1}, at), Partition: d.f.Partition, Namespace: "ns", Job: "j", JobUID: job.UID{1}, Revision: 1, Pool: "p", Handler: "h",
		Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: len(shards), State: state, CreatedAt: noon}
	b := engine.Batch{At: noon, Executions: []engine.ExecutionWrite{{Row: e}}}
	for i, st := range shards {
		b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: e.ID, Index: i, State: st}})
	}
	return e, b
}

// insert is execution, committed.
func (d *desk) insert(state job.ExecutionState, shards ...job.ShardState) job.Execution {
	d.tb.Helper()
	e, b := d.execution(state, shards...)
	d.commit(b)
	return e
}

// finish writes an execution from the state it has to another one, with nothing for its shards.
func finish(e job.Execution, to job.ExecutionState) engine.Batch {
	from := e.State
	e.State = to
	return engine.Batch{At: noon, Executions: []engine.ExecutionWrite{{From: from, Row: e}}}
}

// shard is a write of one shard.
func shard(e job.Execution, i int, from, to job.ShardState) engine.Batch {
	return engine.Batch{At: noon, Shards: []engine.ShardWrite{{From: from, Row: job.Shard{Execution: e.ID, Index: i, State: to}}}}
}

// found is what ExecutionPage tells of one execution; nil when it is nowhere.
func (d *desk) found(id job.ExecutionID) *engine.Row {
	d.tb.Helper()
	page, err := d.s.ExecutionPage(ctx, 0, []job.ExecutionID{id})
	if err != nil || len(page.Rows) > 1 {
		d.tb.Fatalf("ExecutionPage: %d rows, %v", len(page.Rows), err)
	}
	if len(page.Rows) == 0 {
		return nil
	}
	return &page.Rows[0]
}

// states are an execution's and its shards' states.
func (d *desk) states(id job.ExecutionID) (job.ExecutionState, []job.ShardState) {
	d.tb.Helper()
	row := d.found(id)
	if row == nil {
		return "", nil
	}
	var all []job.ShardState
	for _, s := range row.Shards {
		all = append(all, s.State)
	}
	return row.Execution.State, all
}

func (d *desk) wantStates(what string, id job.ExecutionID, state job.ExecutionState, shards ...job.ShardState) {
	d.tb.Helper()
	gotState, gotShards := d.states(id)
	if gotState != state || !reflect.DeepEqual(gotShards, shards) {
		d.tb.Errorf("%s: execution is %q with shards %q, should be %q with %q", what, gotState, gotShards, state, shards)
	}
}

// putJob must go through.
func (d *desk) putJob(name string, uid byte, spec job.Spec) (job.Definition, store.Written) {
	d.tb.Helper()
	def, w, err := d.s.PutJob(ctx, store.PutJob{At: noon,
		Definition: job.Definition{UID: job.UID{uid}, Namespace: "ns", Name: name, Spec: spec}})
	if err != nil {
		d.tb.Fatalf("PutJob: %v", err)
	}
	return def, w
}

// trigger must go through.
func (d *desk) trigger(name string, key store.RequestKey) store.Triggered {
	d.tb.Helper()
	d.n++
	at := noon + job.Instant(d.n)
	got, err := d.s.Trigger(ctx, store.Trigger{Namespace: "ns", Job: name, Execution: job.RequestedID(at, [10]byte{byte(d.n)}), Key: key,
		Request: engine.Request{At: at, Key: key.Key, Params: json.RawMessage(`{"x":1}`)}}, toFirst)
	if err != nil {
		d.tb.Fatalf("Trigger: %v", err)
	}
	return got
}

func toFirst(job.Definition) int { return 0 }

// equal compares two values.
func equal[T any](tb TB, what string, got, want T) {
	tb.Helper()
	if !reflect.DeepEqual(got, want) {
		tb.Errorf("%s: (- expected, + got):\n%s", what, cmp.Diff(want, got))
	}
}

func wantVerdict(tb TB, what string, err error, want string) {
	tb.Helper()
	if verdict(err) != want {
		tb.Errorf("%s: answered %s (%v), should be %s", what, verdict(err), err, want)
	}
}
