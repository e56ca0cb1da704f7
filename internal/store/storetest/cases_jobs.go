package storetest

import (
	"errors"
	"fmt"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func item(name string, uid byte, handler string) store.PutJob {
	return store.PutJob{At: noon + 5, Change: job.Change{By: "me", Reason: "why " + name},
		Definition: job.Definition{UID: job.UID{uid}, Namespace: "ns", Name: name, Labels: map[string]string{"app": "x"}, Spec: job.Spec{Pool: "p", Handler: handler}}}
}

func forget(d job.Definition) string { return "trigger/" + d.Name }

func actions(all []store.AppliedJob) (text string) {
	for _, a := range all {
		text += fmt.Sprintf("%s:%s:%d ", a.Definition.Name, a.Action, a.Definition.Revision)
	}
	return text
}

var jobCases = []examCase{
	{"Jobs/apply a set", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("same", 1, job.Spec{Pool: "p", Handler: "h"})
		set := store.ApplyJobs{Items: []store.PutJob{item("a", 2, "h"), item("b", 3, "h")}, DryRun: true}
		before := d.everything()
		got, err := s.ApplyJobs(ctx, set)
		wantVerdict(tb, "dry run", err, "ok")
		equal(tb, "dry run", actions(got.Jobs), "a:created:1 b:created:1 ")
		equal(tb, "a dry run writes nothing", d.everything(), before)
		set.DryRun = false
		got, err = s.ApplyJobs(ctx, set)
		wantVerdict(tb, "first", err, "ok")
		equal(tb, "first", actions(got.Jobs), "a:created:1 b:created:1 ")
		if a, b := got.Jobs[0], got.Jobs[1]; a.Before != nil || a.Written.Entry == 0 || a.Written.Entry >= b.Written.Entry {
			tb.Errorf("first: %+v", got)
		}
		set.Items[1] = item("b", 9, "other")
		got, err = s.ApplyJobs(ctx, set)
		wantVerdict(tb, "second", err, "ok")
		equal(tb, "second", actions(got.Jobs), "a:unchanged:1 b:changed:2 ")
		if a, b := got.Jobs[0], got.Jobs[1]; b.Before.Revision != 1 || b.Definition.UID != (job.UID{3}) || a.Written.Entry != 0 {
			tb.Errorf("second: %+v", got)
		}
		v, err := s.Revision(ctx, "ns", "b", 2)
		wantVerdict(tb, "Revision", err, "ok")
		equal(tb, "change", v.Change, job.Change{By: "me", Reason: "why b"})
	}},
	{"Jobs/one bad of fifty", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("job-30", 1, job.Spec{Pool: "p", Handler: "h"})
		var set store.ApplyJobs
		for n := range 50 {
			set.Items = append(set.Items, item(fmt.Sprintf("job-%d", n), byte(n+10), "h"))
		}
		set.Items[30].IfRevision, set.Items[40].IfRevision, set.Items[41].Partition = -1, 7, 1
		var refused *job.SetError
		d.unchanged("two refused", "conflict/revision_changed", func() error {
			_, err := s.ApplyJobs(ctx, set)
			errors.As(err, &refused)
			return err
		})
		if refused == nil || len(refused.Items) != 2 || refused.Items[0].Index != 30 || refused.Items[1].Index != 40 {
			tb.Errorf("refused: %+v", refused)
		}
		set.Items[30].IfRevision, set.Items[40].IfRevision = 0, 0
		set.Items[7].Definition.Spec.Title = "\x00"
		d.unchanged("bad text", "rejected/bad_text", func() error { _, err := s.ApplyJobs(ctx, set); return err })
		set.Items[7].Definition.Spec.Title = ""
		_, err := s.ApplyJobs(ctx, set)
		wantVerdict(tb, "all good", err, "ok")
	}},
	{"Jobs/prune", func(tb TB, s store.Store) {
		d := sit(tb, s)
		_, err := s.ApplyJobs(ctx, store.ApplyJobs{Items: []store.PutJob{item("a", 1, "h"), item("b", 2, "h"), item("c", 3, "h")}})
		wantVerdict(tb, "set", err, "ok")
		d.putJob("other", 4, job.Spec{Pool: "p", Handler: "h"}) // without the label
		prune := &store.Prune{Namespaces: []string{"ns"}, Match: func(d job.Definition) bool { return d.Labels["app"] == "x" },
			Deletion: job.Deletion{At: noon + 6, By: "me"}, Forget: forget}
		got, err := s.ApplyJobs(ctx, store.ApplyJobs{Items: []store.PutJob{item("b", 9, "h")}, Prune: prune})
		wantVerdict(tb, "prune", err, "ok")
		equal(tb, "prune", actions(got.Jobs), "b:unchanged:1 a:pruned:1 c:pruned:1 ")
		equal(tb, "left", all(tb, func(p store.Page) ([]store.JobRow, string, error) { return s.Jobs(ctx, "ns", p) },
			func(r store.JobRow) string { return r.Definition.Name }), "b other ")
	}},
	{"Jobs/delete", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "old"})
		def, put := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		key := store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: "k"}
		asked := d.trigger("j", key)
		running, queued := d.insert(job.ExecutionRunning, job.ShardLeased), d.insert(job.ExecutionQueued, job.ShardQueued)
		cursor := job.Cursor{Job: job.UID{1}, Schedule: "main", Revision: 2, Next: noon}
		d.commit(engine.Batch{Cursors: []job.Cursor{cursor}, Consumed: []int64{put.Entry}})
		remove := store.DeleteJob{Namespace: "ns", Name: "j", IfRevision: 1, Forget: "trigger/j", Deletion: job.Deletion{At: noon + 7, Cancel: true, By: "me", Reason: "gone"}}
		d.unchanged("another revision", "conflict/revision_changed", func() error { _, err := s.DeleteJob(ctx, remove); return err })
		remove.IfRevision = 2
		got, err := s.DeleteJob(ctx, remove)
		wantVerdict(tb, "delete", err, "ok")
		def.Deleted = &remove.Deletion
		equal(tb, "deleted", got.Definition, def)
		equal(tb, "live", got.Live, 2)
		d.unchanged("again", "not_found/job_not_found", func() error { _, err := s.DeleteJob(ctx, remove); return err })
		_, err = s.Job(ctx, "ns", "j")
		wantVerdict(tb, "Job", err, "not_found/job_not_found")
		page, err := s.InboxPage(ctx, 0, 10)
		wantVerdict(tb, "InboxPage", err, "ok")
		var kinds []string
		for _, e := range page.Entries {
			kinds = append(kinds, string(e.Kind))
			if e.Definition == nil || e.Definition.Deleted == nil {
				tb.Errorf("%s comes without the deleted definition: %+v", e.Kind, e.Definition)
			}
		}
		equal(tb, "inbox", kinds, []string{"job_deleted", "cancel_job", "job_changed", "trigger"})
		equal(tb, "the queued one comes with it", page.Entries[1].Queued, []job.ExecutionID{queued.ID})
		equal(tb, "cursors come with the deletion", page.Entries[0].Cursors, []job.Cursor{cursor})
		due, err := s.DuePage(ctx, 0, engine.WantDue{Until: endOfTime, Limit: 10})
		wantVerdict(tb, "DuePage", err, "ok")
		equal(tb, "nothing is due", len(due.Items), 0)
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		if len(loaded.Executions) != 1 || loaded.Executions[0].Definition == nil || loaded.Executions[0].Definition.Spec.Handler != "old" {
			tb.Errorf("definition of what runs: %+v", loaded.Executions)
		}
		if row := d.found(running.ID); row.Definition == nil || row.Definition.Deleted == nil {
			tb.Errorf("definition of a running execution: %+v", row.Definition)
		}
		_, err = s.Execution(ctx, "ns", asked.Execution)
		wantVerdict(tb, "a request that waits", err, "ok")

		fresh, _ := d.putJob("j", 5, job.Spec{Pool: "p", Handler: "new"})
		equal(tb, "created again", []any{fresh.UID, fresh.Revision}, []any{job.UID{5}, int64(1)})
		equal(tb, "its key is new", d.trigger("j", key).Repeated, false)
		row, err := s.Job(ctx, "ns", "j")
		wantVerdict(tb, "Job again", err, "ok")
		equal(tb, "it has no cursors", len(row.Cursors), 0)
	}},
	{"Jobs/pause", func(tb TB, s store.Store) {
		d := sit(tb, s)
		def, _ := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		resume := store.PauseJob{Namespace: "ns", Name: "j", At: noon}
		before := d.everything()
		_, w, err := s.PauseJob(ctx, resume)
		wantVerdict(tb, "resume of what is not paused", err, "ok")
		equal(tb, "no entry", []any{w, d.everything()}, []any{store.Written{}, before})
		pause := resume
		pause.Pause = &job.Pause{At: noon, Until: noon + 99, By: "me", Reason: "audit"}
		got, w, err := s.PauseJob(ctx, pause)
		wantVerdict(tb, "pause", err, "ok")
		def.Pause = pause.Pause
		equal(tb, "paused", got, def)
		if w.Entry == 0 {
			tb.Errorf("no entry")
		}
		def, _ = d.putJob("j", 1, job.Spec{Pool: "p", Handler: "other"})
		equal(tb, "an edit leaves it paused", def.Pause, pause.Pause)
		c := job.Cursor{Job: job.UID{1}, Schedule: "main", Revision: 1, Held: noon, Last: noon - 1}
		d.commit(engine.Batch{Cursors: []job.Cursor{c}})
		page, err := s.InboxPage(ctx, 0, 10)
		wantVerdict(tb, "InboxPage", err, "ok")
		first := page.Entries[0]
		equal(tb, "the pause overtakes", first.ID, w.Entry)
		equal(tb, "cursor", first.Cursors, []job.Cursor{c})
		if first.Before == nil || first.Before.Revision != 1 || first.Before.Spec.Handler != "h" {
			tb.Errorf("the revision that the cursor is of: %+v", first.Before)
		}
		got, _, err = s.PauseJob(ctx, resume)
		wantVerdict(tb, "resume", err, "ok")
		equal(tb, "resumed", got.Pause, nil)
		resume.Name = "x"
		d.unchanged("no job", "not_found/job_not_found", func() error { _, _, err := s.PauseJob(ctx, resume); return err })
		pause.Pause.Reason = "\x00"
		d.unchanged("bad text", "rejected/bad_text", func() error { _, _, err := s.PauseJob(ctx, pause); return err })
	}},
	{"Jobs/revisions", func(tb TB, s store.Store) {
		d := sit(tb, s)
		for n := range 5 {
			d.putJob("j", 1, job.Spec{Pool: "p", Handler: fmt.Sprint(n)})
		}
		read := func() string {
			return all(tb, func(p store.Page) ([]store.Revision, string, error) { return s.Revisions(ctx, "ns", "j", p) },
				func(v store.Revision) string {
					return fmt.Sprintf("%d %s", v.Definition.Revision, v.Definition.Spec.Handler)
				})
		}
		equal(tb, "newest first", read(), "5 4 4 3 3 2 2 1 1 0 ")
		_, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon + 1}})
		wantVerdict(tb, "delete", err, "ok")
		equal(tb, "of a deleted job", read(), "5 4 4 3 3 2 2 1 1 0 ")
		d.putJob("j", 2, job.Spec{Pool: "p", Handler: "z"})
		equal(tb, "of the next life", read(), "1 z ")
		_, err = s.Revision(ctx, "ns", "j", 2)
		wantVerdict(tb, "no such revision", err, "not_found/revision_not_found")
		_, err = s.Revision(ctx, "ns", "x", 1)
		wantVerdict(tb, "no such job", err, "not_found/job_not_found")
		_, _, err = s.Revisions(ctx, "ns", "x", store.Page{})
		wantVerdict(tb, "no such job", err, "not_found/job_not_found")
	}},
}
