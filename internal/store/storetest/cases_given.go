package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// gave commits an execution of a job whose shards gave results ("" for a shard that failed), live or ended.
func (d *desk) gave(name string, at job.Instant, state job.ExecutionState, results ...string) job.Execution {
	d.tb.Helper()
	x := job.Execution{ID: job.PlannedID(uidOf(name), at), Partition: d.f.Partition, Namespace: "ns", Job: name, JobUID: uidOf(name), Revision: 1, Pool: "p",
		Handler: "h", Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: len(results), State: state, CreatedAt: noon}
	if state.Ended() {
		x.EndedAt = noon + 50
	}
	b := engine.Batch{Executions: []engine.ExecutionWrite{{Row: x}}}
	for i, text := range results {
		s := job.Shard{Execution: x.ID, Index: i, State: job.ShardSucceeded, Token: job.Token(100 + i), EndedAt: noon + job.Instant(10*(i+1)), Result: json.RawMessage(text)}
		if text == "" {
			s.State, s.Result = job.ShardFailed, nil
		}
		b.Shards = append(b.Shards, engine.ShardWrite{Total: len(results), Row: s})
	}
	d.commit(b)
	return x
}

// matched commits by which executions one was decided.
func (d *desk) matched(child job.ExecutionID, parents ...job.Execution) {
	d.tb.Helper()
	m := engine.Matched{Execution: child}
	for i := range parents {
		x := &parents[i]
		m.Parents = append(m.Parents, job.Parent{Job: x.Job, Execution: x.ID, State: x.State, Round: x.Round, PlannedAt: x.PlannedAt, EndedAt: x.EndedAt})
	}
	d.commit(engine.Batch{Matched: []engine.Matched{m}})
}

// given is what an ask is answered with, in one line.
func (d *desk) given(ask store.GivenAsk) string {
	d.tb.Helper()
	all, err := d.s.Given(ctx, []store.GivenAsk{ask})
	wantVerdict(d.tb, "Given", err, "ok")
	var text []string
	for _, g := range all[0] {
		one := fmt.Sprintf("%s %d/%d", g.Job, g.Read, g.Shards)
		for _, r := range g.Results {
			one += fmt.Sprintf(" %d=%s", r.Shard, r.Result)
		}
		text = append(text, one)
	}
	return strings.Join(text, ", ")
}

// givenCases are about what executions get from those of their parents.
var givenCases = []examCase{
	{"Given/in order, within bounds, and on from any shard", func(tb TB, s store.Store) {
		d := sit(tb, s)
		other := d.other()
		d.put(after("a"), after("b"), after("c", "b", "a"))
		child := d.gave("c", noon, job.ExecutionQueued, "")
		equal(tb, "decided by none", d.given(store.GivenAsk{Execution: child.ID, Rows: 9, Bytes: 99}), "")
		b := other.gave("b", noon, job.ExecutionSucceeded, `"bb"`)
		a := d.gave("a", noon, job.ExecutionPartiallySucceeded, `"a0"`, "", `"a2"`, `"a3"`)
		gone := job.Execution{Job: "gone", ID: job.PlannedID(uidOf("gone"), noon), State: job.ExecutionFailed}
		d.matched(child.ID, b, a, gone, job.Execution{Job: "none"})
		for _, c := range []struct {
			ask  store.GivenAsk
			want string
		}{
			{store.GivenAsk{Rows: 9, Bytes: 99}, `b 1/1 0="bb", a 4/4 0="a0" 2="a2" 3="a3", gone 0/0, none 0/0`},
			{store.GivenAsk{Rows: 3, Bytes: 99}, `b 1/1 0="bb", a 2/4 0="a0", gone 0/0, none 0/0`},
			{store.GivenAsk{Rows: 9, Bytes: 11}, `b 1/1 0="bb", a 2/4 0="a0", gone 0/0, none 0/0`},
			{store.GivenAsk{Rows: 9, Bytes: 3}, `b 0/1, a 0/4, gone 0/0, none 0/0`},
			{store.GivenAsk{Rows: 9, Bytes: 1, Parent: "a", From: 2, Least: true}, `a 3/4 2="a2"`},
			{store.GivenAsk{Rows: 9, Bytes: 99, Parent: "a", From: 3}, `a 4/4 3="a3"`},
			{store.GivenAsk{Rows: 9, Bytes: 99, Parent: "a", From: 7}, `a 7/4`},
			{store.GivenAsk{Rows: 9, Bytes: 99, Parent: "stranger"}, ``},
		} {
			c.ask.Execution = child.ID
			equal(tb, fmt.Sprintf("%+v", c.ask), d.given(c.ask), c.want)
		}
		_, err := s.Given(ctx, []store.GivenAsk{{Execution: child.ID, Holder: &store.Holder{Token: 100}, Rows: 1}})
		wantVerdict(tb, "its holder asks", err, "ok")
		for _, who := range []store.Holder{{Token: 99}, {Shard: 1, Token: 101}} {
			_, err := s.Given(ctx, []store.GivenAsk{{Execution: child.ID, Holder: &who, Rows: 1}})
			wantVerdict(tb, "somebody else asks", err, "conflict/token_stale")
		}
		_, err = s.Given(ctx, []store.GivenAsk{{Execution: gone.ID, Holder: &store.Holder{Token: 100}}})
		wantVerdict(tb, "about what is not there", err, "conflict/token_stale")
	}},
	{"Given/the same however often a parent was run again since", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.put(after("a"), after("c", "a"))
		child := d.gave("c", noon, job.ExecutionQueued, "")
		a := d.gave("a", noon, job.ExecutionPartiallySucceeded, `"a0"`, "")
		d.matched(child.ID, a)
		ask := store.GivenAsk{Execution: child.ID, Rows: 9, Bytes: 99}
		equal(tb, "before", d.given(ask), `a 2/2 0="a0"`)
		again := a
		again.State, again.Round, again.EndedAt = job.ExecutionQueued, 1, 0
		shard := job.Shard{Execution: a.ID, Index: 1, State: job.ShardQueued}
		d.commit(engine.Batch{Executions: []engine.ExecutionWrite{{From: a.State, Row: again}}, Shards: []engine.ShardWrite{{From: job.ShardFailed, Total: 2, Row: shard}}})
		equal(tb, "while it runs again", d.given(ask), `a 2/2 0="a0"`)
		again.State, again.EndedAt = job.ExecutionSucceeded, noon+99
		shard.State, shard.EndedAt, shard.Result = job.ShardSucceeded, noon+99, json.RawMessage(`"late"`)
		d.commit(engine.Batch{Executions: []engine.ExecutionWrite{{From: job.ExecutionQueued, Row: again}}, Shards: []engine.ShardWrite{{From: job.ShardQueued, Total: 2, Row: shard}}})
		equal(tb, "after it ran again", d.given(ask), `a 2/2 0="a0"`)
		d.matched(child.ID, again)
		equal(tb, "one that it decided as it is now", d.given(ask), `a 2/2 0="a0" 1="late"`)
	}},
}
