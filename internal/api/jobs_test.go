package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

const applyPath = "/api/v1/apply"

// set is the body of an apply with n jobs; change edits one by its index.
func set(n int, more string, change map[int]string) string {
	var docs []string
	for i := range n {
		spec := `{"pool":"web","handler":"index","schedule":{"every":"1h"}}`
		if c, ok := change[i]; ok {
			spec = c
		}
		docs = append(docs, fmt.Sprintf(`{"job":{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"job-%02d","labels":{"app":"x"}},"spec":%s}}`, i, spec))
	}
	return `{"documents":[` + strings.Join(docs, ",") + `],"author":"wang@desk","reason":"test"` + more + `}`
}

func (n *node) problem(method, path, body string, status int, code string, header ...string) takt.Problem {
	n.t.Helper()
	got, b := n.ask(method, path, body, header...)
	var p takt.Problem
	if err := json.Unmarshal(b, &p); err != nil || got != status || p.Code != code {
		n.t.Fatalf("%s %s: %d %s (%v), want %d %s", method, path, got, b, err, status, code)
	}
	return p
}

// Whoever finds the fault, the reader of JSON, the schema or the rules behind it: it names its document, and
// nothing is written.
func TestApplyNamesEachFault(t *testing.T) {
	n := startNode(t)
	for _, x := range []struct {
		spec, code string
		status     int
		fields     []string
	}{
		{`{"pool":"web","handler":"index","polo":1}`, "unknown_field", 422, []string{"documents[30].job.spec.polo"}},
		{`{"pool":"web","handler":"index","shards":{"count":0}}`, "invalid_field", 422, []string{"documents[30].job.spec.shards.count"}},
		{`{"pool":"web","handler":"index","schedule":{"cron":"61 * * * *"}}`, "bad_schedule", 422, []string{"documents[30].job.spec.schedule.cron"}},
		{`{"pool":"web","handler":"index","schedule":{"every":"1m","cron":"1 * * * *"}}`, "schedule_not_single", 422, []string{"documents[30].job.spec.schedule"}},
		{`{"pool":"web","handler":"index","schedules":[{"name":"main","every":"1m"}]}`, "bad_name", 422, []string{"documents[30].job.spec.schedules[0].name"}},
		{`{"pool":"web","handler":"index","schedules":[{"name":"a","every":"1m"},{"name":"a","every":"2m"}]}`, "bad_name", 422, []string{"documents[30].job.spec.schedules[1].name"}},
		{`{"pool":"web","handler":"index","after":[{"job":"load","match":"day"}]}`, "bad_match", 422, []string{"documents[30].job.spec.after[0].match"}},
		{`{"pool":"web","handler":"index","after":[{"job":"load"},{"job":"load","within":"1ms"}],"schedule":{"cron":"61 * * * *","timeZone":"Mars/Base"},"overlap":{"policy":"skip","maxQueued":1}}`,
			"documents_refused", 422, []string{"documents[30].job.spec.schedule.timeZone", "documents[30].job.spec.schedule.cron", "documents[30].job.spec.after[1].within",
				"documents[30].job.spec.after[1].job", "documents[30].job.spec.overlap.maxQueued"}},
	} {
		status, b := n.ask("POST", applyPath, set(50, "", map[int]string{30: x.spec}))
		var p takt.Problem
		if err := json.Unmarshal(b, &p); err != nil || status != x.status || p.Hint == "" || len(p.Errors) != len(x.fields) {
			t.Errorf("%s: %d %s", x.spec, status, b)
			continue
		}
		if p.Detail != "1 document of the set is refused; nothing was written" && x.code != "unknown_field" && x.code != "invalid_field" {
			t.Errorf("%s: %s", x.spec, p.Detail)
		}
		for i, f := range x.fields {
			if p.Errors[i].Field != f {
				t.Errorf("%s: field %q, want %q", x.spec, p.Errors[i].Field, f)
			}
		}
		if p.Code != x.code && x.code != "invalid_field" {
			t.Errorf("%s: code %s, want %s", x.spec, p.Code, x.code)
		}
	}
	n.problem("POST", applyPath, set(1, `,"prune":"!"`, nil), 422, "bad_selector")
	n.problem("POST", applyPath, set(1, `,"dryrun":true`, nil), 422, "unknown_field")
	if list := asked[takt.JobList](n, "GET", jobs, ""); len(list.Items) != 0 {
		t.Errorf("%d jobs were written", len(list.Items))
	}
}

// A single document with several faults is told all of them, too.
func TestPutNamesEachFault(t *testing.T) {
	n := startNode(t)
	const doc = `{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"a"},"spec":{"pool":"web","handler":"index","after":[{"job":"a"}],"misfire":{"limit":3}}}`
	p := n.problem("PUT", jobs+"/a", doc, 422, "bad_misfire")
	if len(p.Errors) != 2 || p.Errors[0].Field != "spec.misfire.limit" || p.Errors[1].Field != "spec.after[0].job" || p.Errors[1].Code != "dependency_cycle" ||
		!strings.HasSuffix(p.Detail, "; and 1 other fault") {
		t.Errorf("%+v", p)
	}
}

func TestApplyAndItsPreview(t *testing.T) {
	n := startNode(t)
	dry := asked[takt.ApplyResult](n, "POST", applyPath, set(3, `,"dryRun":true`, nil))
	if len(dry.Items) != 3 || !dry.DryRun || dry.Items[0].Action != "created" || dry.Items[0].Effect != "" || len(dry.Items[0].Fires) != 5 {
		t.Errorf("dry run %+v", dry)
	}
	if list := asked[takt.JobList](n, "GET", jobs, ""); len(list.Items) != 0 {
		t.Errorf("%d jobs were written", len(list.Items))
	}
	asked[takt.ApplyResult](n, "POST", applyPath, set(3, "", nil))
	changed := asked[takt.ApplyResult](n, "POST", applyPath, set(2, `,"prune":"app=x"`, map[int]string{1: `{"pool":"web","handler":"other","schedule":{"every":"2h"}}`}))
	var actions, fields []string
	for _, x := range changed.Items {
		actions = append(actions, x.Action)
	}
	for _, f := range changed.Items[1].Changes {
		fields = append(fields, f.Field+" "+string(f.Before)+" "+string(f.After))
	}
	if got := strings.Join(actions, " "); got != "unchanged changed pruned" {
		t.Errorf("actions %s", got)
	}
	if got := strings.Join(fields, "; "); got != `spec.handler "index" "other"; spec.schedule.every "1h" "2h"` {
		t.Errorf("changes %s", got)
	}
	if x := changed.Items[1]; len(x.Fires) != 5 || len(x.FiresBefore) != 5 || x.Fires[0].At.Sub(x.FiresBefore[0].At).Hours() != 1 || x.Fires[0].TimeZone != "UTC" {
		t.Errorf("fires %+v, before %+v", x.Fires, x.FiresBefore)
	}
	history := asked[takt.JobRevisionList](n, "GET", jobs+"/job-01/revisions", "")
	if len(history.Items) != 2 || history.Items[0].Author != "wang@desk" || history.Items[0].Reason != "test" || len(history.Items[0].Changes) != 2 {
		t.Errorf("history %+v", history)
	}
}

// A phase of 0s is one: the rate counts from 1970, not from the job's creation. It reads back, and both ways to write it are the same.
func TestPhaseOfNothing(t *testing.T) {
	n := startNode(t)
	spec := `{"pool":"web","handler":"index","schedule":{"every":"2h"%[1]s},"schedules":[{"name":"x","every":"1h"%[2]s}]}`
	asked[takt.Job](n, "PUT", one, doc(fmt.Sprintf(spec, `,"phase":"0s"`, `,"phase":"0"`)))
	got := asked[takt.Job](n, "PUT", one, doc(fmt.Sprintf(spec, `,"phase":"2h"`, `,"phase":"1h"`)))
	if got.Metadata.Revision != 1 {
		t.Errorf("a whole period is another revision: %d", got.Metadata.Revision)
	}
	if s := got.Spec.Schedule; s.Phase == nil || *s.Phase != s.Every || got.Spec.Schedules[0].Phase == nil {
		t.Errorf("read back as %+v, %+v", s, got.Spec.Schedules)
	}
	if at := got.Status.NextPlannedAt; at == nil || at.UnixMilli()%3_600_000 != 0 {
		t.Errorf("next at %v", at)
	}
	got = asked[takt.Job](n, "PUT", one, doc(fmt.Sprintf(spec, "", "")))
	if got.Metadata.Revision != 2 || got.Spec.Schedule.Phase != nil || got.Spec.Schedules[0].Phase != nil {
		t.Errorf("without a phase: revision %d, %+v", got.Metadata.Revision, got.Spec.Schedule)
	}
}

func TestConflictSaysWhatChanged(t *testing.T) {
	n := startNode(t)
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index"}`))
	asked[takt.Job](n, "PUT", one+"?author=%E7%8E%8B&reason=faster", doc(`{"pool":"web","handler":"other","shards":{"count":4}}`))
	p := n.problem("PUT", one, doc(`{"pool":"web","handler":"third"}`), 409, "revision_changed", "If-Match", `"1"`)
	if !strings.Contains(p.Detail, "has revision 2, the change rests on 1; newest change by 王 at ") || !strings.Contains(p.Detail, "(faster)") {
		t.Errorf("detail %s", p.Detail)
	}
	want := []takt.ProblemError{{Field: "spec.handler", Message: `was "index", is "other" now`}, {Field: "spec.shards.count", Message: "was absent, is 4 now"}}
	if len(p.Errors) != 2 || p.Errors[0] != want[0] || p.Errors[1] != want[1] {
		t.Errorf("errors %+v", p.Errors)
	}
	n.problem("DELETE", one, "", 409, "revision_changed", "If-Match", `"1"`)
	n.problem("POST", one+"/rollback", `{"to":1}`, 409, "revision_changed", "If-Match", `"1"`)
}

// Pause, request, resume, delete, create again: what a person sees of it.
func TestLifeOfAJob(t *testing.T) {
	n := startNode(t)
	first := asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index","schedule":{"every":"1h"}}`))
	paused := asked[takt.Job](n, "POST", one+"/pause", `{"reason":"audit","author":"me","until":"2999-01-01T00:30:00Z"}`)
	if s := paused.Status; s.Paused == nil || s.Paused.Reason != "audit" || s.Paused.By != "me" || s.Effect != "effective" || s.NextPlannedAt == nil || s.NextPlannedAt.Year() != 2999 {
		t.Errorf("paused %+v", paused.Status)
	}
	n.problem("POST", one+"/pause", `{"until":"2001-01-01T00:00:00Z"}`, 422, "out_of_range")
	run := asked[takt.Triggered](n, "POST", one+"/trigger", "")
	if run.Effect != "effective" {
		t.Errorf("request while paused: %+v", run)
	}
	open := asked[takt.Job](n, "POST", one+"/pause", "")
	if open.Status.Paused == nil || open.Status.Paused.Until != nil || open.Status.NextPlannedAt != nil {
		t.Errorf("paused without an end: %+v", open.Status)
	}
	resumed := asked[takt.Job](n, "POST", one+"/resume", "")
	if resumed.Status.Paused != nil || resumed.Status.NextPlannedAt == nil || resumed.Metadata.Revision != 1 {
		t.Errorf("resumed %+v", resumed.Status)
	}
	n.problem("DELETE", one+"?running=later", "", 422, "bad_value")
	gone := asked[takt.DeletedJob](n, "DELETE", one+"?running=cancel&author=me", "")
	if gone.Live != 1 || gone.Running != "cancel" || gone.Effect != "effective" || gone.UID != first.Metadata.UID {
		t.Errorf("deleted %+v", gone)
	}
	if e := asked[takt.Execution](n, "GET", execs+"/"+run.Execution, ""); e.State != "cancelled" || e.Reason != "job_deleted" {
		t.Errorf("its execution %+v", e)
	}
	n.problem("DELETE", one, "", 404, "job_not_found")
	n.problem("POST", one+"/trigger", "", 404, "job_not_found")
	n.problem("POST", execs+"/"+run.Execution+"/rerun", "", 409, "job_deleted")
	if h := asked[takt.JobRevisionList](n, "GET", one+"/revisions", ""); len(h.Items) != 1 {
		t.Errorf("history of a deleted job %+v", h)
	}
	again := asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index","schedule":{"every":"1h"}}`))
	if again.Metadata.UID == first.Metadata.UID || again.Metadata.Revision != 1 || again.Status.Paused != nil || again.Status.LastPlannedAt != nil {
		t.Errorf("created again %+v %+v", again.Metadata, again.Status)
	}
}
