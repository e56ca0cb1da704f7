package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// uidOf gives each name of a case a uid.
func uidOf(name string) (u job.UID) {
	copy(u[:], name)
	return u
}

// after is a job of namespace "ns" that runs after others.
func after(name string, parents ...string) store.PutJob {
	p := store.PutJob{Partition: 0, At: noon, Definition: job.Definition{UID: uidOf(name), Namespace: "ns", Name: name, Spec: job.Spec{Pool: "p", Handler: "h"}}}
	for _, parent := range parents {
		p.Definition.Spec.After = append(p.Definition.Spec.After, job.After{Job: parent})
	}
	return p
}

func (d *desk) put(all ...store.PutJob) {
	d.tb.Helper()
	for _, p := range all {
		_, _, err := d.s.PutJob(ctx, p)
		wantVerdict(d.tb, "PutJob", err, "ok")
	}
}

// ran commits an execution of a job that ended in the given state.
func (d *desk) ran(name string, at job.Instant, state job.ExecutionState) job.Execution {
	d.tb.Helper()
	x := job.Execution{ID: job.PlannedID(uidOf(name), at), Partition: d.f.Partition, Namespace: "ns", Job: name, JobUID: uidOf(name), Revision: 1, Pool: "p",
		Handler: "h", Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: 1, State: state, CreatedAt: noon, EndedAt: noon}
	d.commit(engine.Batch{Executions: []engine.ExecutionWrite{{Row: x}},
		Shards: []engine.ShardWrite{{Total: 1, Row: job.Shard{Execution: x.ID, State: job.ShardSucceeded}}}})
	return x
}

// told lists who is told in a partition's inbox of which end.
func (d *desk) told(partition int) (all []string) {
	d.tb.Helper()
	for _, e := range d.inbox(partition) {
		if e.Kind == engine.EntryParentEnded {
			all = append(all, e.Definition.Name+" "+e.Execution.String())
		}
	}
	return all
}

// upstreamCases are about jobs that run after others.
var upstreamCases = []examCase{
	{"Upstream/parents are there, and in no circle", func(tb TB, s store.Store) {
		d := sit(tb, s)
		put := func(p store.PutJob) func() error {
			return func() error { _, _, err := s.PutJob(ctx, p); return err }
		}
		d.unchanged("an unknown parent", "invalid/parent_not_found", put(after("b", "a")))
		d.unchanged("itself", "invalid/dependency_cycle", put(after("a", "a")))
		d.put(after("a"), after("b", "a"), after("c", "b"))
		d.unchanged("a circle of three", "invalid/dependency_cycle", put(after("a", "c")))
		apply := func(a store.ApplyJobs) func() error {
			return func() error { _, err := s.ApplyJobs(ctx, a); return err }
		}
		set := func(all ...store.PutJob) store.ApplyJobs { return store.ApplyJobs{Items: all} }
		d.unchanged("a circle within a set", "invalid/dependency_cycle", apply(set(after("x", "y"), after("y", "x"))))
		d.unchanged("a set with a parent that is nowhere", "invalid/parent_not_found", apply(set(after("x", "y"), after("z"))))
		_, err := s.ApplyJobs(ctx, set(after("x", "y"), after("y")))
		wantVerdict(tb, "a child before its parent in one set", err, "ok")
		_, err = s.ApplyJobs(ctx, set(after("a", "b"), after("b")))
		wantVerdict(tb, "an edge turned round in one set", err, "ok")
		var refused *job.SetError
		_, err = s.ApplyJobs(ctx, set(after("z"), after("x", "nobody")))
		if !errors.As(err, &refused) || len(refused.Items) != 1 || refused.Items[0].Index != 1 || refused.Items[0].Err.Field != "spec.after[0].job" {
			tb.Errorf("the refused item is not named: %v", err)
		}
	}},
	{"Upstream/a parent stays as long as it has children", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.put(after("a"), after("b", "a"), after("c", "a"))
		del := func(name string) func() error {
			return func() error {
				_, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: name, Deletion: job.Deletion{At: noon}})
				return err
			}
		}
		d.unchanged("it has two", "conflict/job_has_children", del("a"))
		wantVerdict(tb, "a child goes", del("b")(), "ok")
		d.put(after("c"))
		wantVerdict(tb, "it has none any more", del("a")(), "ok")
		d.put(after("p"), after("q", "p"))
		prune := func(keep ...store.PutJob) error {
			_, err := s.ApplyJobs(ctx, store.ApplyJobs{Items: keep, Prune: &store.Prune{Namespaces: []string{"ns"}, Match: func(job.Definition) bool { return true },
				Deletion: job.Deletion{At: noon}, Forget: func(job.Definition) string { return "" }}})
			return err
		}
		d.unchanged("a set prunes it and keeps the child", "conflict/job_has_children", func() error { return prune(after("q", "p")) })
		wantVerdict(tb, "a set keeps the child without it", prune(after("q")), "ok")
		d.put(after("r"), after("s", "r"))
		wantVerdict(tb, "a set prunes both", prune(after("z")), "ok")
	}},
	{"Upstream/an end is told to the planners of children, and where they wait", func(tb TB, s store.Store) {
		a := sit(tb, s)
		b := a.other()
		there := after("there", "a")
		there.Partition = 1
		counts := after("counts")
		counts.Definition.Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Delay: time.Minute}}}
		a.put(after("a"), after("here", "a"), there, after("other", "here"), counts)
		x := a.ran("a", noon, job.ExecutionSucceeded)
		equal(tb, "here", a.told(0), []string{"here " + x.ID.String()})
		equal(tb, "there", a.told(1), []string{"there " + x.ID.String()})
		if all := a.inbox(1); len(all) == 2 {
			equal(tb, "entry", []any{all[1].Planner, all[1].Job}, []any{1, uidOf("there")})
		}
		waits := job.Execution{ID: job.PlannedID(uidOf("here"), noon+1), Partition: 1, Namespace: "ns", Job: "here", JobUID: uidOf("here"), Revision: 1, Pool: "p",
			Handler: "h", Trigger: job.TriggerAfter, PlannedAt: noon + 1, ShardTotal: 1, State: job.ExecutionScheduled, Reason: job.WaitUpstream}
		b.commit(engine.Batch{Executions: []engine.ExecutionWrite{{Row: waits}}, Shards: []engine.ShardWrite{{Total: 1, Row: job.Shard{Execution: waits.ID, State: job.ShardQueued}}}})
		page, err := s.AwaitingPage(ctx, 1, engine.WantAwaiting{Limit: 5})
		wantVerdict(tb, "AwaitingPage", err, "ok")
		equal(tb, "what waits", page.Items, []engine.Awaiting{{Execution: waits.ID, Child: uidOf("here")}})
		y := a.ran("a", noon+1, job.ExecutionFailed)
		equal(tb, "where it waits, too", a.told(1), []string{"there " + x.ID.String(), "here " + y.ID.String(), "there " + y.ID.String()})
		z := a.ran("counts", noon, job.ExecutionSucceeded)
		equal(tb, "its own end", slices.Contains(a.told(0), "counts "+z.ID.String()), true)
		n := len(a.told(0)) + len(a.told(1))
		a.ran("other", noon, job.ExecutionSucceeded)
		equal(tb, "nobody runs after it", len(a.told(0))+len(a.told(1)), n)
	}},
	{"Upstream/which execution of a parent is meant", func(tb TB, s store.Store) {
		d := sit(tb, s)
		c := after("c", "a", "b", "day")
		c.Definition.Spec.After[1].Match = job.MatchLatest
		c.Definition.Spec.After[2] = job.After{Job: "day", Match: job.MatchDay, TimeZone: "Asia/Shanghai"}
		c.Definition.Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: time.Hour}}}
		d.put(after("a"), after("b"), after("day"), c)
		day := job.Instant(24 * time.Hour / time.Millisecond)
		d.ran("a", noon-1, job.ExecutionSucceeded)
		same := d.ran("a", noon, job.ExecutionFailed)
		d.ran("b", noon-day, job.ExecutionSucceeded)
		newest := d.ran("b", noon-5, job.ExecutionSucceeded)
		d.ran("b", noon-9*day, job.ExecutionFailed) // of an older instant, ended later
		d.ran("day", noon-day, job.ExecutionSucceeded)
		of := d.ran("day", noon-60_000, job.ExecutionTimedOut)
		d.ran("day", noon+day, job.ExecutionSucceeded)
		waits := job.Execution{ID: job.PlannedID(uidOf("c"), noon), Namespace: "ns", Job: "c", JobUID: uidOf("c"), Revision: 1, Pool: "p", Handler: "h",
			Trigger: job.TriggerSchedule, PlannedAt: noon, ShardTotal: 1, State: job.ExecutionScheduled, Reason: job.WaitUpstream}
		d.commit(engine.Batch{Executions: []engine.ExecutionWrite{{Row: waits}}, Shards: []engine.ShardWrite{{Total: 1, Row: job.Shard{Execution: waits.ID, State: job.ShardQueued}}}})
		page, err := s.UpstreamPage(ctx, 0, []engine.UpstreamAsk{{Child: uidOf("c"), Waiting: waits.ID}, {Child: uidOf("c"), Ended: same.ID}})
		wantVerdict(tb, "UpstreamPage", err, "ok")
		for _, u := range page.Items {
			got := []job.ExecutionID{u.Target, u.Parents[0].Execution, u.Parents[1].Execution, u.Parents[2].Execution}
			equal(tb, "target and parents", got, []job.ExecutionID{waits.ID, same.ID, newest.ID, of.ID})
			equal(tb, "row", []any{u.Row.Execution.ID, len(u.Row.Shards), u.Row.Definition.Name, u.Parents[2].State}, []any{waits.ID, 1, "c", job.ExecutionTimedOut})
		}
		equal(tb, "seq", page.Seq, d.f.Seq)
		parents := []job.Parent{{Job: "a", Execution: same.ID, State: job.ExecutionFailed, PlannedAt: noon}}
		d.commit(engine.Batch{Matched: []engine.Matched{{Execution: waits.ID, Parents: parents}}})
		_, matched, err := s.Upstream(ctx, waits)
		wantVerdict(tb, "Upstream", err, "ok")
		equal(tb, "by which it was decided", matched, parents)
	}},
	{"Upstream/a decision stands for what would be made", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.put(after("a"), after("c", "a"))
		x, y := d.ran("a", noon, job.ExecutionSucceeded), d.ran("a", noon+1, job.ExecutionSucceeded)
		decided := func() (all []bool) {
			page, err := s.UpstreamPage(ctx, 0, []engine.UpstreamAsk{{Child: uidOf("c"), Ended: x.ID}, {Child: uidOf("c"), Ended: y.ID}})
			wantVerdict(tb, "UpstreamPage", err, "ok")
			for _, u := range page.Items {
				equal(tb, "row", u.Row == nil, true)
				all = append(all, u.Decided)
			}
			return all
		}
		equal(tb, "before", decided(), []bool{false, false})
		skipped := func(uid job.UID, schedule string, at job.Instant) job.Decision {
			return job.Decision{Job: uid, Namespace: "ns", Name: "c", Schedule: schedule, Kind: job.DecisionSkipped, Reason: job.ReasonPaused, From: at, To: at, Count: 1, At: noon}
		}
		d.commit(engine.Batch{At: noon, Decisions: []job.Decision{skipped(uidOf("c"), "main", noon), skipped(uidOf("a"), "", noon), skipped(uidOf("c"), "", noon+2)}})
		equal(tb, "of a schedule, another job, a later instant", decided(), []bool{false, false})
		d.commit(engine.Batch{At: noon, Decisions: []job.Decision{skipped(uidOf("c"), "", noon)}})
		equal(tb, "behind it", decided(), []bool{true, false})
	}},
}
