package storetest

import (
	"fmt"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// How executions lie that one commit grants is the adapter's business, and nothing that is read shows it.
var lotCases = []examCase{
	{"Granted/many at once", func(tb TB, s store.Store) { manyGranted(tb, s, engine.Level) }},
	{"Granted/many at once, beside servers of an earlier version", func(tb TB, s store.Store) { manyGranted(tb, s, engine.LevelBlocks) }},
	{"Granted/what is refused", grantedRefused},
	{"Granted/by one owner after the other", grantedByOwners},
	{"Granted/again and again, some for long", grantedForLong},
	{"Granted/of a job that is deleted", grantedOfDeleted},
	{"Granted/of a day that another job waits for", grantedOfDay},
}

// gang are unsharded executions as they should be read.
type gang struct {
	*desk
	all []*engine.Row // in the order of their ids
}

func newGang(tb TB, s store.Store) *gang {
	g := &gang{desk: sit(tb, s)}
	g.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
	return g
}

// come makes n executions in a state, as a batch; every third is of another pool.
func (g *gang) come(n int, state job.ExecutionState, shard job.ShardState) (came []*engine.Row, b engine.Batch) {
	b.At = noon
	for range n {
		e, _ := g.execution(state, shard)
		if g.n%3 == 0 {
			e.Pool = "q"
		}
		e.Params, e.RequestKey, e.Trigger = fmt.Appendf(nil, `{"n":%d}`, g.n), fmt.Sprint("key ", g.n), job.TriggerRequest
		if g.n%4 == 0 {
			e.Params = nil
		}
		row := &engine.Row{Execution: e, Shards: []job.Shard{{Execution: e.ID, State: shard}}}
		if shard == job.ShardLeased {
			grant(row)
		}
		came = append(came, row)
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: row.Execution})
		b.Shards = append(b.Shards, engine.ShardWrite{Total: 1, Row: row.Shards[0]})
	}
	g.all = append(g.all, came...)
	return came, b
}

func grant(row *engine.Row) {
	granted(&row.Shards[0])
	row.Execution.State, row.Execution.StartedAt = job.ExecutionRunning, noon+1
	row.Shards[0].Token = job.Token(row.Execution.PlannedAt - noon + 1000)
	row.Shards[0].Attempts[0].Token = row.Shards[0].Token
}

// write changes executions and their shards, as a batch.
func (g *gang) write(b *engine.Batch, rows []*engine.Row, change func(*engine.Row)) {
	for _, row := range rows {
		from, shardFrom := row.Execution, row.Shards[0]
		change(row)
		if !sameExecution(&from, &row.Execution) {
			b.Executions = append(b.Executions, engine.ExecutionWrite{From: from.State, Row: row.Execution})
		}
		if fmt.Sprint(shardFrom) != fmt.Sprint(row.Shards[0]) {
			b.Shards = append(b.Shards, engine.ShardWrite{From: shardFrom.State, Total: 1, Row: row.Shards[0]})
		}
	}
}

func sameExecution(a, b *job.Execution) bool { return fmt.Sprint(*a) == fmt.Sprint(*b) }

// change commits what write makes.
func (g *gang) change(rows []*engine.Row, change func(*engine.Row)) {
	g.tb.Helper()
	b := engine.Batch{At: noon}
	g.write(&b, rows, change)
	g.commit(b)
}

func succeed(row *engine.Row) {
	succeeded(&row.Shards[0])
	row.Execution.State, row.Execution.EndedAt = job.ExecutionSucceeded, noon+5
}

// check reads them in every way.
func (g *gang) check(what string) {
	g.tb.Helper()
	var ids []job.ExecutionID
	var refs []engine.ShardRef
	var want []engine.Row
	var settled []engine.Settled
	for _, row := range g.all {
		sh := &row.Shards[0]
		ids = append(ids, row.Execution.ID)
		want = append(want, engine.Row{Execution: row.Execution, Shards: row.Shards})
		refs = append(refs, engine.ShardRef{Execution: row.Execution.ID})
		settled = append(settled, engine.Settled{ShardRef: refs[len(refs)-1], Token: sh.Token, ReportSeq: sh.ReportSeq, Closed: sh.Closed})
	}
	page, err := g.s.ExecutionPage(ctx, 0, ids)
	wantVerdict(g.tb, "ExecutionPage", err, "ok")
	equal(g.tb, what+": by the owner", bare(page.Rows), want)
	shards, err := g.s.ShardPage(ctx, 0, refs)
	wantVerdict(g.tb, "ShardPage", err, "ok")
	equal(g.tb, what+": what was settled", shards.Rows, settled)
	loaded, err := g.s.LoadPartition(ctx, 0)
	wantVerdict(g.tb, "LoadPartition", err, "ok")
	equal(g.tb, what+": at a take-over", bare(loaded.Executions), slices.DeleteFunc(slices.Clone(want), func(row engine.Row) bool {
		return row.Execution.State.Ended() || row.Execution.State == job.ExecutionQueued
	}))
	live := map[job.ExecutionState]int{}
	for _, row := range g.all {
		e := row.Execution
		if !e.State.Ended() {
			live[e.State]++
		}
		got, err := g.s.Execution(ctx, "ns", e.ID)
		wantVerdict(g.tb, "Execution", err, "ok")
		equal(g.tb, what+": one", got, e)
		one, _, err := g.s.Shards(ctx, "ns", e.ID, store.Page{Limit: 10})
		wantVerdict(g.tb, "Shards", err, "ok")
		equal(g.tb, what+": its shard", one, row.Shards)
	}
	counts, err := g.s.Counts(ctx)
	wantVerdict(g.tb, "Counts", err, "ok")
	equal(g.tb, what+": counted", counts.Live, live)
	g.checkLists(what)
}

// bare are rows without definitions.
func bare(rows []engine.Row) (all []engine.Row) {
	for _, row := range rows {
		row.Definition = nil
		all = append(all, row)
	}
	return all
}

func (g *gang) checkLists(what string) {
	g.tb.Helper()
	for _, f := range []store.ExecutionFilter{{}, {Job: "j"}, {Job: "k"}, {Pool: "p"}, {Pool: "q"}, {Job: "j", Pool: "q"}, {State: job.ExecutionRunning}, {State: job.ExecutionRunning, Pool: "q"},
		{State: job.ExecutionCancelling}, {State: job.ExecutionQueued}, {State: job.ExecutionSucceeded}, {Namespace: "other"}} {
		if f.Namespace == "" {
			f.Namespace = "ns"
		}
		var want []job.Execution
		for _, row := range g.all {
			e := row.Execution
			if e.Namespace == f.Namespace && (f.Job == "" || e.Job == f.Job) && (f.Pool == "" || e.Pool == f.Pool) && (f.State == "" || e.State == f.State) {
				want = append(want, e)
			}
		}
		slices.SortFunc(want, func(a, b job.Execution) int { return -slices.Compare(a.ID[:], b.ID[:]) })
		for _, size := range []int{3, 100} {
			var listed []job.Execution
			f.Page = store.Page{Limit: size}
			for more := true; more; more = f.After != "" {
				rows, next, err := g.s.Executions(ctx, f)
				wantVerdict(g.tb, "Executions", err, "ok")
				if len(rows) > size {
					g.tb.Fatalf("%s: a page of %d has %d rows", what, size, len(rows))
				}
				listed, f.After = append(listed, rows...), next
			}
			equal(g.tb, fmt.Sprintf("%s: list of %+v", what, f), listed, want)
		}
	}
}

func manyGranted(tb TB, s store.Store, level int) {
	g := newGang(tb, s)
	g.level = level
	queued, b := g.come(20, job.ExecutionQueued, job.ShardQueued)
	g.commit(b)
	came, b := g.come(20, job.ExecutionRunning, job.ShardLeased)
	g.write(&b, queued[:18], grant)
	g.commit(b)
	g.check("granted")
	for what, of := range map[string]struct {
		row   *engine.Row
		token job.Token
		want  string
	}{"granted": {came[3], came[3].Shards[0].Token, "taken 1"}, "of another token": {came[4], 5, "unknown 0"}, "out of the queue": {queued[4], queued[4].Shards[0].Token, "taken 1"}} {
		lines := chunkOf(of.row.Execution, 0, 0, what)
		lines.Token = of.token
		equal(tb, "lines of one that is "+what, g.appended(lines, noon, 1<<20), of.want)
	}
	n, err := s.SweepLogs(ctx, store.SweepLogs{Namespace: "ns", Before: noon + 1000, Limit: 10})
	wantVerdict(tb, "SweepLogs", err, "ok")
	equal(tb, "logs swept of what is under way", n, 0)

	g.change(slices.Concat(came[:5], queued[:5]), succeed)
	g.check("some ended")
	g.change([]*engine.Row{came[5], queued[5]}, func(row *engine.Row) { told(&row.Shards[0]) })
	g.change([]*engine.Row{came[6], came[5]}, func(row *engine.Row) { row.Execution.State, row.Execution.Cancel = job.ExecutionCancelling, "because" })
	g.change([]*engine.Row{came[7], queued[7]}, func(row *engine.Row) { // the shard stays as it is
		row.Execution.State, row.Execution.EndedAt = job.ExecutionCancelled, noon+6
	})
	g.change([]*engine.Row{came[8], queued[8]}, func(row *engine.Row) {
		row.Execution.State, row.Shards[0] = job.ExecutionQueued, job.Shard{Execution: row.Execution.ID, State: job.ShardQueued, Losses: 1}
	})
	g.check("some changed")
	b = engine.Batch{At: noon} // all at once
	g.write(&b, []*engine.Row{came[5], came[9], came[10], queued[9]}, succeed)
	g.write(&b, []*engine.Row{came[11], queued[10]}, func(row *engine.Row) { told(&row.Shards[0]) })
	g.write(&b, []*engine.Row{came[8], queued[8], queued[19]}, grant)
	g.commit(b)
	g.check("changed at once")
	g.change([]*engine.Row{came[7]}, func(row *engine.Row) { // run again
		row.Execution.State, row.Execution.EndedAt, row.Execution.Round = job.ExecutionQueued, 0, 1
	})
	g.change(slices.Concat(came[12:], queued[11:18]), succeed)
	g.check("nearly all ended")
}

func grantedRefused(tb TB, s store.Store) {
	g := newGang(tb, s)
	queued, b := g.come(6, job.ExecutionQueued, job.ShardQueued)
	g.commit(b)
	came, b := g.come(6, job.ExecutionRunning, job.ShardLeased)
	g.write(&b, queued[:4], grant)
	g.commit(b)
	g.change([]*engine.Row{came[0]}, succeed)
	good := func() (b engine.Batch) {
		row := *came[1]
		row.Shards = slices.Clone(row.Shards)
		b.At = noon
		g.write(&b, []*engine.Row{&row}, succeed)
		return b
	}
	for _, row := range []*engine.Row{came[2], queued[2]} {
		e, sh := row.Execution, row.Shards[0]
		ended, running, queuedAgain := e, sh, e
		ended.State, running.State, queuedAgain.State = job.ExecutionSucceeded, job.ShardRunning, job.ExecutionQueued
		for what, spoil := range map[string]func(*engine.Batch){
			"one that is there": func(b *engine.Batch) {
				b.Executions, b.Shards = append(b.Executions, engine.ExecutionWrite{Row: e}), append(b.Shards, engine.ShardWrite{Total: 1, Row: sh})
			},
			"one that is there, queued": func(b *engine.Batch) { b.Executions = append(b.Executions, engine.ExecutionWrite{Row: queuedAgain}) },
			"one that is there, ended":  func(b *engine.Batch) { b.Executions = append(b.Executions, engine.ExecutionWrite{Row: ended}) },
			"a grant of what runs": func(b *engine.Batch) {
				b.Executions = append(b.Executions, engine.ExecutionWrite{From: job.ExecutionQueued, Row: e})
				b.Shards = append(b.Shards, engine.ShardWrite{From: job.ShardQueued, Total: 1, Row: sh})
			},
			"an end from another state": func(b *engine.Batch) {
				b.Executions = append(b.Executions, engine.ExecutionWrite{From: job.ExecutionCancelling, Row: ended})
			},
			"an end from another state of the shard": func(b *engine.Batch) {
				b.Executions = append(b.Executions, engine.ExecutionWrite{From: job.ExecutionRunning, Row: ended})
				b.Shards = append(b.Shards, engine.ShardWrite{From: job.ShardRunning, Total: 1, Row: running})
			},
			"another state of the shard": func(b *engine.Batch) {
				b.Shards = append(b.Shards, engine.ShardWrite{From: job.ShardQueued, Total: 1, Row: running})
			},
			"a shard that is there": func(b *engine.Batch) { b.Shards = append(b.Shards, engine.ShardWrite{Total: 1, Row: sh}) },
			"a rerun of what runs": func(b *engine.Batch) {
				b.Executions = append(b.Executions, engine.ExecutionWrite{From: job.ExecutionFailed, Row: queuedAgain})
			},
		} {
			b := good()
			spoil(&b)
			g.refused(what, "fenced/state_guard", b)
		}
	}
	again := came[0].Execution
	again.State, again.EndedAt = job.ExecutionRunning, 0
	g.refused("one that has ended", "fenced/state_guard", engine.Batch{At: noon, Executions: []engine.ExecutionWrite{{Row: again}},
		Shards: []engine.ShardWrite{{Total: 1, Row: job.Shard{Execution: again.ID, State: job.ShardLeased}}}})
	g.check("after refusals")
	g.f.Epoch--
	g.refused("by somebody else", "fenced/fence", good())
	g.f.Epoch++
	g.change(came[1:3], succeed)
	g.check("went on")
}

// grantedByOwners: each owner knows what the one before left.
func grantedByOwners(tb TB, s store.Store) {
	g := newGang(tb, s)
	came, b := g.come(12, job.ExecutionRunning, job.ShardLeased)
	g.commit(b)
	for i := range 4 {
		rows, err := s.PartitionRows(ctx)
		wantVerdict(tb, "PartitionRows", err, "ok")
		row, err := s.AcquirePartition(ctx, rows[0], fmt.Sprint("owner ", i%2), 0, engine.Level)
		wantVerdict(tb, "AcquirePartition", err, "ok")
		g.f = row.Fence
		g.change(came[3*i:3*i+1], func(row *engine.Row) { told(&row.Shards[0]) })
		g.change(came[3*i+1:3*i+2], succeed)
		_, b := g.come(3, job.ExecutionRunning, job.ShardLeased)
		g.commit(b)
		g.check(fmt.Sprint("owner ", i))
	}
}

// grantedForLong: what runs on and on while others come and go.
func grantedForLong(tb TB, s store.Store) {
	g := newGang(tb, s)
	for i := range 40 {
		came, b := g.come(10, job.ExecutionRunning, job.ShardLeased)
		g.commit(b)
		g.change(came[:9], succeed)
		if i%10 == 9 {
			g.check(fmt.Sprint("round ", i))
		}
	}
}

func grantedOfDeleted(tb TB, s store.Store) {
	g := newGang(tb, s)
	came, b := g.come(10, job.ExecutionRunning, job.ShardLeased)
	g.commit(b)
	g.change(came[:3], succeed)
	got, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon}})
	wantVerdict(tb, "DeleteJob", err, "ok")
	equal(tb, "under way", got.Live, 7)
	g.commit(engine.Batch{Consumed: ids(g.waiting())})
	sweeper, ok := s.(store.JobSweeper)
	if !ok {
		return
	}
	swept := func(what string, want int) {
		n, err := sweeper.SweepJobs(ctx, noon+100, 100)
		wantVerdict(tb, "SweepJobs", err, "ok")
		equal(tb, what, n, want)
	}
	swept("revisions swept while some run", 0)
	g.change(came[3:], succeed)
	swept("revisions swept while history has some", 0)
}

func grantedOfDay(tb TB, s store.Store) {
	g := newGang(tb, s)
	c := after("c", "j")
	c.Definition.Spec.After[0] = job.After{Job: "j", Match: job.MatchDay, TimeZone: "Asia/Shanghai"}
	g.put(c)
	newest := func(what string) {
		tb.Helper()
		first, last := g.all[0].Execution, g.all[len(g.all)-1].Execution
		page, err := s.UpstreamPage(ctx, 0, []engine.UpstreamAsk{{Child: uidOf("c"), Waiting: first.ID}})
		wantVerdict(tb, "UpstreamPage", err, "ok")
		if len(page.Items) != 1 || len(page.Items[0].Parents) != 1 {
			tb.Fatalf("%s: %+v", what, page)
		}
		p := page.Items[0].Parents[0]
		equal(tb, what, []any{p.Execution, p.State}, []any{last.ID, last.State})
	}
	came, b := g.come(20, job.ExecutionRunning, job.ShardLeased)
	g.commit(b)
	newest("under way")
	g.change(came[:18], succeed)
	newest("others have ended")
	g.change(came[18:], succeed)
	newest("it has ended, too")
	_, b = g.come(9, job.ExecutionQueued, job.ShardQueued)
	g.commit(b)
	newest("in line")
}
