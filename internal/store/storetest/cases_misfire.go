package storetest

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var misfireCases = []examCase{
	{"Misfire/owed", func(tb TB, s store.Store) {
		d := sit(tb, s)
		for i := byte(1); i <= 3; i++ {
			d.putJob(string('a'+rune(i)), i, job.Spec{Pool: "p", Handler: "h", Disabled: i == 3})
		}
		of := func(i byte, schedule string, owed job.Instant) job.Cursor {
			c := job.Cursor{Job: job.UID{i}, Schedule: schedule, Revision: 1, Next: noon + 1, Owed: owed, OwedTo: owed + 5, Runs: 7}
			if schedule == "y" && owed != 0 {
				c.Owe(job.InstantRange{From: owed + 7, To: owed + 8})
				c.Owe(job.InstantRange{From: owed + 10, To: owed + 10})
			}
			return c
		}
		load := func() bool {
			l, err := s.LoadPartition(ctx, 0)
			wantVerdict(tb, "LoadPartition", err, "ok")
			return l.Owes
		}
		if load() {
			tb.Errorf("nothing is owed")
		}
		all := []job.Cursor{of(1, "x", noon), of(1, "y", 0), of(2, "x", noon-9), of(2, "y", noon-3), of(3, "x", noon)}
		d.commit(engine.Batch{Cursors: all})
		if !load() {
			tb.Errorf("something is owed")
		}
		var got []job.Cursor
		for want := (engine.WantDue{Owed: true, Limit: 2}); ; {
			page, err := s.DuePage(ctx, 0, want)
			wantVerdict(tb, "DuePage", err, "ok")
			for _, it := range page.Items {
				if !page.Owed || it.Definition == nil || it.Definition.UID != it.Cursor.Job {
					tb.Errorf("page: %+v", page)
				}
				got = append(got, it.Cursor)
			}
			if !page.Partial {
				break
			}
			want.After = &got[len(got)-1]
		}
		equal(tb, "by job and schedule, disabled ones too", got, []job.Cursor{all[0], all[2], all[3], all[4]})
		all[3].OwesOn(0)
		d.commit(engine.Batch{Cursors: all[3:4]})
		page, err := s.DuePage(ctx, 0, engine.WantDue{Owed: true, Limit: 1, After: &all[2]})
		wantVerdict(tb, "DuePage", err, "ok")
		if len(page.Items) != 1 {
			tb.Fatalf("behind the first range: %+v", page)
		}
		equal(tb, "behind the first range", page.Items[0].Cursor, all[3])
	}},
	{"Misfire/streaks", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		u := job.UID{1}
		at := func() (all []int) {
			row, err := s.Job(ctx, "ns", "j")
			wantVerdict(tb, "Job", err, "ok")
			for _, c := range row.Cursors {
				all = append(all, c.Failures)
			}
			return all
		}
		x := job.Cursor{Job: u, Schedule: "x", Revision: 1, Failures: 2}
		d.commit(engine.Batch{Cursors: []job.Cursor{x}})
		equal(tb, "a new cursor has what it says", at(), []int{2})
		x.Failures = 9
		d.commit(engine.Batch{Cursors: []job.Cursor{x}})
		equal(tb, "a write of the cursor leaves it alone", at(), []int{2})
		d.commit(engine.Batch{Streaks: []engine.Streak{{Job: u, Failed: 3}}, Cursors: []job.Cursor{{Job: u, Schedule: "y", Revision: 1, Failures: 5}}})
		equal(tb, "counted before the cursors of the batch", at(), []int{5, 5})
		resume := store.PauseJob{Namespace: "ns", Name: "j", At: noon}
		_, w, err := s.PauseJob(ctx, resume)
		wantVerdict(tb, "PauseJob", err, "ok")
		page, err := s.InboxPage(ctx, 0, 10)
		wantVerdict(tb, "InboxPage", err, "ok")
		if equal(tb, "it overtakes", page.Entries[0].ID, w.Entry); page.Entries[0].Kind != engine.EntryJobResumed || w.Entry == 0 {
			tb.Errorf("entry of a resume: %+v", page.Entries[0])
		}
		d.commit(engine.Batch{Streaks: []engine.Streak{{Job: u, Reset: true, Most: 5}}})
		equal(tb, "a success does not resume", at(), []int{5, 5})
		d.commit(engine.Batch{Streaks: []engine.Streak{{Job: u, Reset: true, Most: 6}, {Job: u, Failed: 1}}})
		equal(tb, "anew, in their order", at(), []int{1, 1})
		d.commit(engine.Batch{Streaks: []engine.Streak{{Job: job.UID{7}, Failed: 1}}})
		equal(tb, "of a job that has no cursors", at(), []int{1, 1})
	}},
}
