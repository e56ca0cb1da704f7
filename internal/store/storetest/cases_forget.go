package storetest

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// forgetCases are about what is left of deleted jobs and of events that were set aside.
var forgetCases = []examCase{
	{"Retention/revisions of deleted jobs", func(tb TB, s store.Store) {
		d := sit(tb, s)
		sweeper, ok := s.(store.JobSweeper)
		if !ok {
			tb.Fatalf("the store is no JobSweeper")
		}
		sweep := func(limit int) int {
			tb.Helper()
			n, err := sweeper.SweepJobs(ctx, noon+100, limit)
			wantVerdict(tb, "SweepJobs", err, "ok")
			return n
		}
		remove := func(name string, at job.Instant) {
			tb.Helper()
			done, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: name, Deletion: job.Deletion{At: at}})
			wantVerdict(tb, "DeleteJob", err, "ok")
			consume := engine.Batch{}
			for _, e := range d.inbox(0) {
				if consume.Consumed = append(consume.Consumed, e.ID); e.Kind == engine.EntryJobDeleted {
					equal(tb, "while its owner has not heard of it", sweep(10), 0)
				}
			}
			d.commit(consume)
			equal(tb, "told", done.Partition, 0)
		}
		for _, handler := range []string{"1", "2", "3"} {
			d.putJob("j", 1, job.Spec{Pool: "p", Handler: handler})
		}
		d.putJob("young", 2, job.Spec{Pool: "p", Handler: "h"})
		ended := d.ended(1, noon, noon+10)
		remove("j", noon+20)
		remove("young", noon+100)
		d.putJob("j", 3, job.Spec{Pool: "p", Handler: "next life"})
		equal(tb, "while an execution is kept", sweep(10), 0)
		n, err := s.SweepExecutions(ctx, "ns", noon+50, 100)
		wantVerdict(tb, "SweepExecutions", err, "ok")
		equal(tb, "its execution, with the shard in its row", n, 1)
		_, err = s.Execution(ctx, "ns", ended.ID)
		wantVerdict(tb, "Execution", err, "not_found/execution_not_found")
		equal(tb, "two revisions", sweep(2), 2)
		equal(tb, "the last one, and the job", sweep(10), 2)
		equal(tb, "nothing more", sweep(10), 0)
		_, err = s.Revision(ctx, "ns", "young", 1)
		wantVerdict(tb, "what was deleted later stays", err, "ok")
		row, err := s.Job(ctx, "ns", "j")
		wantVerdict(tb, "Job", err, "ok")
		equal(tb, "the next life", row.Definition.Spec.Handler, "next life")
	}},
	{"Retention/what was set aside", func(tb TB, s store.Store) {
		d := sit(tb, s)
		sweeper, ok := s.(store.JobSweeper)
		if !ok {
			tb.Fatalf("the store is no JobSweeper")
		}
		for i := range job.Instant(5) {
			d.commit(engine.Batch{At: noon + i, Poison: []engine.Poison{{Kind: "Report", Error: "bad"}}})
		}
		for _, want := range []int{2, 1, 0} { // those before noon+3
			n, err := sweeper.SweepPoison(ctx, noon+3, 2)
			wantVerdict(tb, "SweepPoison", err, "ok")
			equal(tb, "deleted", n, want)
		}
	}},
}
