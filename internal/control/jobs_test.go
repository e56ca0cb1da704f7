package control_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

func setOf(n int, pool string) control.ApplyRequest {
	r := control.ApplyRequest{Change: job.Change{By: "me@desk", Reason: "test"}}
	for i := range n {
		r.Items = append(r.Items, put(fmt.Sprintf("job-%02d", i), pool))
	}
	return r
}

func names(t *testing.T, st store.Store) (all []string) {
	t.Helper()
	rows, _, err := st.Jobs(t.Context(), "default", store.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		all = append(all, rows[i].Definition.Name)
	}
	return all
}

// One bad document of fifty: nothing is written, and every bad one is named.
func TestApplyIsAllOrNothing(t *testing.T) {
	c, st := open(t, &owner{}, nil)
	r := setOf(50, "web")
	r.Items[30].Spec.Handler = "a b"
	r.Items[40].Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "61 * * * *"}}}
	r.Items[45].Name = r.Items[3].Name
	_, err := c.Apply(t.Context(), r)
	set, ok := errors.AsType[*job.SetError](err)
	if !ok || len(set.Items) != 3 {
		t.Fatalf("%v", err)
	}
	for i, want := range []struct {
		index       int
		code, field string
	}{{30, "bad_name", "spec.handler"}, {40, "bad_schedule", "spec.schedule.cron"}, {45, "doubled_job", "metadata.name"}} {
		if x := set.Items[i]; x.Index != want.index || x.Err.Code != want.code || x.Err.Field != want.field {
			t.Errorf("item %d: %+v, want %+v", i, x, want)
		}
	}
	r = setOf(50, "web")
	r.Items[49].IfRevision = 7 // only the store can tell
	_, err = c.Apply(t.Context(), r)
	wantCode(t, err, job.KindConflict, "revision_changed")
	if n := len(names(t, st)); n != 0 {
		t.Errorf("%d jobs were written", n)
	}
	r.Items[49].IfRevision = 0
	done, err := c.Apply(t.Context(), r)
	if err != nil || len(done.Jobs) != 50 || done.Jobs[49].Action != store.ActionCreated || done.Jobs[49].Effect != control.Effective {
		t.Errorf("%d, %v", len(done.Jobs), err)
	}
}

// Two sets at once that name the same jobs: each job has the whole of one of them, never half of each.
func TestConcurrentApply(t *testing.T) {
	c, st := open(t, &owner{}, nil)
	const sets, jobs = 8, 20
	var all sync.WaitGroup
	failed := make([]error, sets)
	for n := range sets {
		all.Go(func() {
			r := setOf(jobs, "web")
			for i := range r.Items {
				r.Items[i].Spec.Handler = fmt.Sprintf("set-%d", n)
			}
			_, failed[n] = c.Apply(t.Context(), r)
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	rows, _, err := st.Jobs(t.Context(), "default", store.Page{Limit: 1000})
	if err != nil || len(rows) != jobs {
		t.Fatalf("%d, %v", len(rows), err)
	}
	for i := range rows {
		d := rows[i].Definition
		if d.Spec.Handler != rows[0].Definition.Spec.Handler || d.Revision != sets {
			t.Errorf("%s: revision %d, handler %s, the first has %s", d.Name, d.Revision, d.Spec.Handler, rows[0].Definition.Spec.Handler)
		}
	}
	// Guarded by a revision, one of them wins.
	won := 0
	for n := range sets {
		all.Go(func() {
			r := setOf(jobs, "web")
			for i := range r.Items {
				r.Items[i].Spec.Handler, r.Items[i].IfRevision = fmt.Sprintf("guarded-%d", n), sets
			}
			_, failed[n] = c.Apply(t.Context(), r)
		})
	}
	all.Wait()
	for _, err := range failed {
		if err == nil {
			won++
		} else {
			wantCode(t, err, job.KindConflict, "revision_changed")
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
}

func TestApplyPrunesWithinItsLabels(t *testing.T) {
	c, st := open(t, &owner{}, nil)
	for _, x := range []struct{ namespace, name, app string }{{"default", "a", "x"}, {"default", "b", "x"}, {"default", "c", "y"}, {"other", "d", "x"}} {
		r := put(x.name, "web")
		r.Namespace, r.Labels = x.namespace, map[string]string{"app": x.app}
		mustPut(t, c, r)
	}
	r := setOf(0, "web")
	keep := put("a", "web")
	keep.Labels = map[string]string{"app": "x"}
	r.Items = []control.PutRequest{keep}
	everything, _ := job.ParseSelector("")
	r.Prune = &everything
	_, err := c.Apply(t.Context(), r)
	wantCode(t, err, job.KindInvalid, "prune_everything")
	selector, _ := job.ParseSelector("app=x")
	r.Prune, r.DryRun = &selector, true
	for _, dry := range []bool{true, false} {
		r.DryRun = dry
		set, err := c.Apply(t.Context(), r)
		done := set.Jobs
		if err != nil || len(done) != 2 || done[0].Action != store.ActionUnchanged || done[1].Action != store.ActionPruned || done[1].Definition.Name != "b" {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if got := strings.Join(names(t, st), " "); got != "a c" {
		t.Errorf("left %s", got)
	}
	if _, err := c.Job(t.Context(), "other", "d"); err != nil {
		t.Errorf("another namespace: %v", err)
	}
}

// A refused edit tells what changed since, and who did it.
func TestConflictTellsWhatChanged(t *testing.T) {
	c, _ := open(t, &owner{}, nil)
	r := put("nightly", "web")
	mustPut(t, c, r)
	r.Spec.Handler, r.Change = "other", job.Change{By: "wang@desk", Reason: "faster"}
	mustPut(t, c, r)
	r.IfRevision, r.Spec.Handler = 1, "third"
	_, err := c.PutJob(t.Context(), r)
	wantCode(t, err, job.KindConflict, "revision_changed")
	_, setErr := c.Apply(t.Context(), control.ApplyRequest{Items: []control.PutRequest{r}})
	_, deleteErr := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "nightly", IfRevision: 1})
	_, backErr := c.Rollback(t.Context(), control.RollbackRequest{Namespace: "default", Name: "nightly", To: 1, IfRevision: 1})
	for _, err := range []error{err, setErr, deleteErr, backErr} {
		changed, ok := errors.AsType[*control.Changed](err)
		if !ok || changed.Base.Definition.Spec.Handler != "index" || changed.Have.Definition.Spec.Handler != "other" || changed.Have.Change.By != "wang@desk" {
			t.Errorf("%v: %+v", err, changed)
		}
	}
}

func TestRollback(t *testing.T) {
	c, _ := open(t, &owner{}, nil)
	r := put("nightly", "web")
	r.Labels = map[string]string{"a": "1"}
	mustPut(t, c, r)
	r.Spec.Handler, r.Labels = "other", nil
	mustPut(t, c, r)
	p, err := c.Rollback(t.Context(), control.RollbackRequest{Namespace: "default", Name: "nightly", To: 1})
	if d := p.Row.Definition; err != nil || d.Revision != 3 || d.Spec.Handler != "index" || d.Labels["a"] != "1" {
		t.Errorf("%+v, %v", d, err)
	}
	all, _, err := c.Revisions(t.Context(), "default", "nightly", store.Page{Limit: 1})
	if err != nil || all[0].Change.Reason != "rollback to revision 1" {
		t.Errorf("%+v, %v", all, err)
	}
	_, err = c.Rollback(t.Context(), control.RollbackRequest{Namespace: "default", Name: "nightly", To: 9})
	wantCode(t, err, job.KindNotFound, "revision_not_found")
	if _, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "nightly"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Rollback(t.Context(), control.RollbackRequest{Namespace: "default", Name: "nightly", To: 1})
	wantCode(t, err, job.KindNotFound, "job_not_found")
}

func TestPauseRefuses(t *testing.T) {
	c, _ := open(t, &owner{}, nil)
	mustPut(t, c, put("nightly", "web"))
	for _, x := range []struct {
		r     control.PauseRequest
		field string
	}{
		{control.PauseRequest{Until: job.InstantOf(wall)}, "until"},
		{control.PauseRequest{Change: job.Change{Reason: strings.Repeat("x", control.MaxReason+1)}}, "reason"},
		{control.PauseRequest{Change: job.Change{By: "\xff"}}, "author"},
	} {
		x.r.Namespace, x.r.Name = "default", "nightly"
		_, err := c.Pause(t.Context(), x.r)
		if e, ok := errors.AsType[*job.Error](err); !ok || e.Field != x.field {
			t.Errorf("%v, want field %s", err, x.field)
		}
	}
	p, err := c.Pause(t.Context(), control.PauseRequest{Namespace: "default", Name: "nightly", Until: job.InstantOf(wall) + 1, Change: job.Change{By: "me"}})
	if err != nil || p.Row.Definition.Pause == nil || p.Row.Definition.Revision != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A request of a job that was deleted can not run again, also when another job has its name.
func TestRerunOfADeletedJob(t *testing.T) {
	c, st := open(t, &owner{}, nil)
	mustPut(t, c, put("nightly", "web"))
	asked, err := c.Trigger(t.Context(), control.TriggerRequest{Namespace: "default", Job: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	take(t, st, asked.Execution)
	end := func() {
		p := partition.Of("default", "web", 4)
		rows, err := st.PartitionRows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		row, err := st.Execution(t.Context(), "default", asked.Execution)
		if err != nil {
			t.Fatal(err)
		}
		from := row.State
		row.State = job.ExecutionFailed
		b := engine.Batch{Seq: rows[p].Seq + 1, LastToken: rows[p].LastToken, Executions: []engine.ExecutionWrite{{From: from, Row: row}}}
		if err := st.Commit(t.Context(), rows[p].Fence, &b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "nightly"}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, c, put("nightly", "web"))
	_, err = c.Rerun(t.Context(), control.AskRequest{Namespace: "default", Execution: asked.Execution})
	wantCode(t, err, job.KindConflict, "execution_live") // its end is judged first
	if _, err := c.Cancel(t.Context(), control.AskRequest{Namespace: "default", Execution: asked.Execution}); err != nil {
		t.Errorf("what runs can still be cancelled: %v", err)
	}
	end()
	_, err = c.Rerun(t.Context(), control.AskRequest{Namespace: "default", Execution: asked.Execution})
	wantCode(t, err, job.KindConflict, "job_deleted")
}

func TestFires(t *testing.T) {
	d := job.Definition{CreatedAt: job.InstantOf(wall), Spec: job.Spec{Schedules: []job.Schedule{
		{ID: "main", Spec: schedule.Spec{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai"}},
		{ID: "hours", Spec: schedule.Spec{Every: 13 * time.Hour}},
		{ID: "once", Spec: schedule.Spec{At: wall.Add(13 * time.Hour)}},
	}}}
	var cursors []job.Cursor
	text := func() (s string) {
		for _, f := range control.Fires(&d, cursors, wall, 5) {
			s += f.At.Format("02T15:04Z07:00") + " " + f.Zone + " " + f.Schedule + "\n"
		}
		return s
	}
	want := "02T09:00+08:00 Asia/Shanghai main,hours,once\n02T14:00Z UTC hours\n03T09:00+08:00 Asia/Shanghai main\n03T03:00Z UTC hours\n03T16:00Z UTC hours\n"
	if got := text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	d.Spec.Schedules[1].MaxRuns, d.Spec.AutoPause.AfterFailures = 5, 2
	cursors = []job.Cursor{{Schedule: "main"}, {Schedule: "hours", Runs: 4}, {Schedule: "once"}}
	want = "02T09:00+08:00 Asia/Shanghai main,hours,once\n03T09:00+08:00 Asia/Shanghai main\n04T09:00+08:00 Asia/Shanghai main\n05T09:00+08:00 Asia/Shanghai main\n06T09:00+08:00 Asia/Shanghai main\n"
	if got := text(); got != want {
		t.Errorf("one run of hours is left: got\n%swant\n%s", got, want)
	}
	cursors[0].Failures = 2
	if got := text(); got != "" {
		t.Errorf("failures in a row hold it, and still\n%s", got)
	}
	cursors, d.Spec.Schedules[1].MaxRuns = nil, 0
	d.Pause = &job.Pause{At: job.InstantOf(wall), Until: job.InstantOf(wall.Add(38 * time.Hour))}
	if got := text(); !strings.HasPrefix(got, "03T03:00Z UTC hours\n") {
		t.Errorf("paused until\n%s", got)
	}
	d.Pause.Until = 0
	if got := text(); got != "" {
		t.Errorf("paused\n%s", got)
	}
	d.Pause, d.Spec.Disabled = nil, true
	if got := text(); got != "" {
		t.Errorf("disabled\n%s", got)
	}
}
