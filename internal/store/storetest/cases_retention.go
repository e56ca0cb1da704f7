package storetest

import (
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// ended commits an execution of job "j" with n shards that was planned and ended at the given instants.
func (d *desk) ended(n int, planned, end job.Instant) job.Execution {
	d.tb.Helper()
	states := make([]job.ShardState, n)
	for i := range states {
		states[i] = job.ShardRunning
	}
	e, b := d.execution(job.ExecutionRunning, states...)
	e.PlannedAt, e.ID = planned, job.PlannedID(e.JobUID, planned)
	b.Executions[0].Row = e
	for i := range b.Shards {
		b.Shards[i].Row.Execution = e.ID
	}
	d.commit(b)
	row := e
	row.State, row.EndedAt = job.ExecutionSucceeded, end
	b = engine.Batch{At: end, Executions: []engine.ExecutionWrite{{From: e.State, Row: row}}}
	for i := range n {
		b.Shards = append(b.Shards, engine.ShardWrite{From: job.ShardRunning, Row: job.Shard{Execution: e.ID, Index: i, State: job.ShardSucceeded}})
	}
	d.commit(b)
	return row
}

// retentionCases are about what is deleted, and when.
var retentionCases = []examCase{
	{"Retention/settings", func(tb TB, s store.Store) {
		d := sit(tb, s)
		names, err := d.s.Namespaces(ctx)
		wantVerdict(tb, "Namespaces", err, "ok")
		equal(tb, "no namespaces", len(names), 0)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		names, err = d.s.Namespaces(ctx)
		wantVerdict(tb, "Namespaces", err, "ok")
		equal(tb, "namespaces", names, []string{"ns"})
		r, err := s.Retention(ctx, "ns")
		wantVerdict(tb, "Retention", err, "ok")
		equal(tb, "nobody set it", r, store.Retention{Namespace: "ns"})
		for _, want := range []store.Retention{
			{Namespace: "ns", Executions: 48 * time.Hour, Logs: time.Hour}, {Namespace: "ns", Logs: 2 * time.Hour}, {Namespace: "ns"},
		} {
			wantVerdict(tb, "PutRetention", s.PutRetention(ctx, want), "ok")
			r, err = s.Retention(ctx, "ns")
			wantVerdict(tb, "Retention", err, "ok")
			equal(tb, "what was set", r, want)
		}
		r, err = s.Retention(ctx, "other")
		wantVerdict(tb, "Retention", err, "ok")
		equal(tb, "another namespace", r, store.Retention{Namespace: "other"})
	}},
	{"Retention/executions", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.level = engine.LevelRows // a row for each shard
		old := d.ended(5, noon, noon+10)
		long := d.ended(1, noon+1, noon+200) // planned early, ended late
		edge := d.ended(1, noon+2, noon+100) // ended at the instant itself
		young := d.ended(2, noon+150, noon+160)
		sweep := func(namespace string, limit int) int {
			n, err := s.SweepExecutions(ctx, namespace, noon+100, limit)
			wantVerdict(tb, "SweepExecutions", err, "ok")
			return n
		}
		equal(tb, "another namespace", sweep("other", 10), 0)
		equal(tb, "first step", sweep("ns", 3), 3)
		_, err := s.Execution(ctx, "ns", old.ID)
		wantVerdict(tb, "an execution goes before its shards", err, "not_found/execution_not_found")
		_, _, err = s.Shards(ctx, "ns", old.ID, store.Page{Limit: 10})
		wantVerdict(tb, "its shards are not shown", err, "not_found/execution_not_found")
		equal(tb, "second step", sweep("ns", 3), 3)
		equal(tb, "then nothing", sweep("ns", 3), 0)
		for _, e := range []job.Execution{long, edge, young} {
			_, err := s.Execution(ctx, "ns", e.ID)
			wantVerdict(tb, "what ended later stays", err, "ok")
		}
	}},
	{"Retention/executions whose shards lie in blocks", func(tb TB, s store.Store) {
		d := sit(tb, s)
		old := d.ended(5, noon, noon+10)
		young := d.ended(2, noon+150, noon+160)
		for _, want := range []int{1, 1, 0} { // its row, and that of its block
			n, err := s.SweepExecutions(ctx, "ns", noon+100, 1)
			wantVerdict(tb, "SweepExecutions", err, "ok")
			equal(tb, "rows", n, want)
		}
		_, err := s.Execution(ctx, "ns", old.ID)
		wantVerdict(tb, "what is old", err, "not_found/execution_not_found")
		shards, _, err := s.Shards(ctx, "ns", young.ID, store.Page{Limit: 10})
		wantVerdict(tb, "Shards", err, "ok")
		equal(tb, "shards that stay", len(shards), 2)
	}},
	{"Retention/an execution that a request waits for stays", func(tb TB, s store.Store) {
		d := sit(tb, s)
		old := d.ended(1, noon, noon+10)
		_, err := s.Ask(ctx, store.Ask{Kind: engine.EntryRerun, Namespace: "ns", Execution: old.ID, At: noon + 500})
		wantVerdict(tb, "Ask", err, "ok")
		n, err := s.SweepExecutions(ctx, "ns", noon+100, 10)
		wantVerdict(tb, "SweepExecutions", err, "ok")
		equal(tb, "deleted", n, 0)
		_, err = s.Execution(ctx, "ns", old.ID)
		wantVerdict(tb, "Execution", err, "ok")
	}},
	{"Retention/journal and decisions", func(tb TB, s store.Store) {
		d := sit(tb, s)
		for i := range job.Instant(6) {
			d.commit(engine.Batch{At: noon + i, Decisions: []job.Decision{{Namespace: "ns", Name: "j", Kind: job.DecisionSkipped, At: noon + i, Count: 1}}})
		}
		swept := func(n int, err error) int {
			tb.Helper()
			wantVerdict(tb, "sweep", err, "ok")
			return n
		}
		// A clock that was ahead for a while keeps nothing alive.
		d.commit(engine.Batch{At: noon + 1000, Decisions: []job.Decision{{Namespace: "ns", Name: "j", Kind: job.DecisionSkipped, At: noon + 1000, Count: 1}}})
		d.commit(engine.Batch{At: noon + 3, Decisions: []job.Decision{{Namespace: "ns", Name: "j", Kind: job.DecisionSkipped, At: noon + 3, Count: 1}}})
		d.commit(engine.Batch{At: noon + 5, Decisions: []job.Decision{{Namespace: "ns", Name: "j", Kind: job.DecisionSkipped, At: noon + 5, Count: 1}}})
		equal(tb, "journal, first step", swept(s.SweepJournal(ctx, d.f.Partition, noon+4, 3)), 3)
		equal(tb, "journal, up to the instant", swept(s.SweepJournal(ctx, d.f.Partition, noon+4, 100)), 5)
		equal(tb, "journal, another partition", swept(s.SweepJournal(ctx, d.f.Partition+1, noon+100, 100)), 0)
		equal(tb, "journal, all but the newest", swept(s.SweepJournal(ctx, d.f.Partition, noon+2000, 100)), 0)
		rows, err := s.Journal(ctx, d.f.Partition, 0, 100)
		wantVerdict(tb, "Journal", err, "ok")
		equal(tb, "rows left", len(rows), 1)
		equal(tb, "the newest", rows[0].At, noon+5)
		equal(tb, "decisions, first step", swept(s.SweepDecisions(ctx, noon+4, 3)), 3)
		equal(tb, "decisions, up to the instant", swept(s.SweepDecisions(ctx, noon+4, 100)), 5)
		left, _, err := s.Decisions(ctx, "ns", "", store.Page{Limit: 100})
		wantVerdict(tb, "Decisions", err, "ok")
		equal(tb, "decisions left", len(left), 1)
	}},
	{"Retention/a clock that was ahead for long", func(tb TB, s store.Store) {
		d := sit(tb, s)
		made := func(ats ...job.Instant) {
			for _, at := range ats {
				d.commit(engine.Batch{At: at, Decisions: []job.Decision{{Namespace: "ns", Name: "j", Kind: job.DecisionSkipped, At: at, Count: 1}}})
			}
		}
		const ahead = noon + 100_000
		made(noon, ahead, ahead+1, ahead+2, ahead+3, ahead+4, ahead+5, ahead+6, noon+1, noon+10, noon+11)
		for name, sweep := range map[string]func(before job.Instant, limit int) (int, error){
			"decisions": func(before job.Instant, limit int) (int, error) { return s.SweepDecisions(ctx, before, limit) },
			"journal": func(before job.Instant, limit int) (int, error) {
				return s.SweepJournal(ctx, d.f.Partition, before, limit)
			},
		} {
			for i, want := range []int{3, 3, 3, 0} {
				n, err := sweep(noon+2, 3)
				wantVerdict(tb, name, err, "ok")
				equal(tb, fmt.Sprintf("%s, step %d", name, i), n, want)
			}
		}
	}},
}
