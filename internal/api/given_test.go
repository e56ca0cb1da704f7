package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const polls = `{"session":"` + session + `","epoch":5,"call":2,"number":9,"free":3,"waitMs":5}`

// assigned is an answer to a poll: shards of executions by number, from 100 on of such that ran after others.
func assigned(numbers ...int) *engine.Polled {
	out := &engine.Polled{}
	for _, n := range numbers {
		e := job.Execution{ID: job.RequestedID(5000, [10]byte{5: byte(n)}), Namespace: "default", Job: "j", ShardTotal: 8}
		out.Assignments = append(out.Assignments, engine.Assignment{Execution: e, Shard: len(out.Assignments), Token: job.Token(n), RunsAfter: n >= 100})
	}
	return out
}

func TestPollTellsParents(t *testing.T) {
	r := newRig(t, nil)
	parent := job.PlannedID(job.UID{1}, 5000)
	r.store.given = func(store.GivenAsk) ([]store.Given, error) {
		return []store.Given{
			{Parent: job.Parent{Job: "a", Execution: parent, State: job.ExecutionSucceeded, PlannedAt: 5000, EndedAt: 6000}, Shards: 2, Read: 1,
				Results: []store.ShardResult{{Shard: 0, Result: json.RawMessage(`{"password":"p"}`)}}},
			{Parent: job.Parent{Job: "b"}}}, nil
	}
	r.owners.answer = answers(assigned(1, 100, 2, 100, 101))
	got := ok[takt.PollResponse](r, post(work+"poll", polls))
	at, ended := time.UnixMilli(5000).UTC(), time.UnixMilli(6000).UTC()
	want := []takt.AssignedParent{
		{ParentExecution: takt.ParentExecution{Job: "a", Execution: parent.String(), State: "succeeded", PlannedAt: &at, EndedAt: &ended}, Shards: 2, Read: 1,
			Results: []takt.ParentResult{{Shard: 0, Result: json.RawMessage(`{"password":"p"}`)}}}, // handlers get what people see masked
		{ParentExecution: takt.ParentExecution{Job: "b"}}}
	for i, a := range got.Assignments {
		if (a.Token < 100) != (a.Parents == nil) {
			t.Errorf("assignment %d: %+v", i, a.Parents)
		}
	}
	if d := cmp.Diff(want, got.Assignments[1].Parents); d != "" || len(got.Assignments) != 5 {
		t.Errorf("%d assignments, parents (-want +got)\n%s", len(got.Assignments), d)
	}
	if len(r.store.givens) != 1 || len(r.store.givens[0]) != 2 || r.store.givens[0][0].Bytes != 256<<10 {
		t.Errorf("each execution is read once: %+v", r.store.givens)
	}
	r.store.givens = nil
	r.owners.answer = answers(assigned(1, 2, 3))
	if got := ok[takt.PollResponse](r, post(work+"poll", polls)); len(got.Assignments) != 3 || r.store.givens != nil {
		t.Errorf("without parents nothing is read: %+v", r.store.givens)
	}
}

// Together the results of one answer stay within bounds, however many shards it brings, and no transaction is long.
func TestPollOfManyWithParents(t *testing.T) {
	r := newRig(t, nil)
	numbers := slices.Repeat([]int{100}, 40)
	for n := 101; n < 140; n++ {
		numbers = append(numbers, n)
	}
	r.owners.answer = answers(assigned(numbers...))
	ok[takt.PollResponse](r, post(work+"poll", polls))
	asked := 0
	for _, some := range r.store.givens {
		asked += len(some)
		for _, ask := range some {
			if len(some) > 16 || ask.Bytes*len(numbers) > 4<<20 || ask.Rows*40 > 4096 || ask.Rows < 1 {
				t.Errorf("%d at once, %+v", len(some), ask)
			}
		}
	}
	if asked != 40 {
		t.Errorf("%d executions were read, want 40", asked)
	}
}

// What cannot be read is left for the next poll; nothing is handed out without its parents.
func TestPollWhenParentsCannotBeRead(t *testing.T) {
	r := newRig(t, nil)
	bad := assigned(103).Assignments[0].Execution.ID
	r.store.given = func(ask store.GivenAsk) ([]store.Given, error) {
		if ask.Execution == bad {
			return nil, job.Errorf(job.KindUnavailable, "store_unavailable", "the database is away")
		}
		return []store.Given{{Parent: job.Parent{Job: "a"}}}, nil
	}
	r.owners.answer = answers(assigned(1, 103, 2))
	got := ok[takt.PollResponse](r, post(work+"poll", polls))
	if len(got.Assignments) != 2 || got.Assignments[0].Token != 1 || got.Assignments[1].Token != 2 || !strings.Contains(r.log.String(), "offered again with the next poll") {
		t.Errorf("answered %+v\n%s", got.Assignments, r.log)
	}
	numbers := []int{}
	for n := 120; n < 136; n++ { // as many as one transaction reads
		numbers = append(numbers, n)
	}
	r.owners.answer = answers(assigned(append(numbers, 103)...))
	if got := ok[takt.PollResponse](r, post(work+"poll", polls)); len(got.Assignments) != 16 || got.Assignments[0].Parents == nil {
		t.Errorf("what was read before is handed out: %d", len(got.Assignments))
	}
	r.owners.answer = answers(assigned(103))
	w := r.do(post(work+"poll", polls))
	if w.Code != 503 || !strings.Contains(w.Body.String(), "store_unavailable") || w.Header().Get(takt.EpochHeader) != fmt.Sprint(int64(epoch)) {
		t.Errorf("nothing else is to be said: %d %s, epoch %s", w.Code, w.Body, w.Header().Get(takt.EpochHeader))
	}
}

func TestWorkerParents(t *testing.T) {
	r := newRig(t, nil)
	id := job.RequestedID(5000, [10]byte{1})
	r.store.given = func(store.GivenAsk) ([]store.Given, error) {
		return []store.Given{{Parent: job.Parent{Job: "a"}, Shards: 9, Read: 4, Results: []store.ShardResult{{Shard: 3, Result: json.RawMessage(`"x"`)}}}}, nil
	}
	ask := `{"execution":"` + id.String() + `","shard":2,"token":77,"job":"a","from":3,"later":true}`
	got := ok[takt.ParentsResponse](r, post(work+"parents", ask))
	want := takt.ParentsResponse{Shards: 9, Read: 4, Results: []takt.ParentResult{{Shard: 3, Result: json.RawMessage(`"x"`)}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	asked := r.store.givens[0][0]
	if asked.Execution != id || *asked.Holder != (store.Holder{Shard: 2, Token: 77}) || asked.Parent != "a" || asked.From != 3 || !asked.Least {
		t.Errorf("asked %+v", asked)
	}
	for what, c := range map[string]struct{ old, new, code string }{
		"no id": {id.String(), "x", "invalid_field"}, "shard": {`"shard":2`, `"shard":-1`, "invalid_field"}, "token": {`"token":77`, `"token":0`, "invalid_field"},
		"from": {`"from":3`, `"from":-3`, "invalid_field"}, "job": {`"job":"a"`, `"job":""`, "invalid_field"},
	} {
		if w := r.do(post(work+"parents", strings.Replace(ask, c.old, c.new, 1))); w.Code != 422 || !strings.Contains(w.Body.String(), c.code) {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	r.store.given = nil
	if w := r.do(post(work+"parents", ask)); w.Code != 404 || !strings.Contains(w.Body.String(), "not_a_parent") {
		t.Errorf("a stranger: %d %s", w.Code, w.Body)
	}
}

// A whole server: what a wide parent gave comes to its child whole, more than goes along with an assignment, and to nobody else.
func TestParentsOverTheStore(t *testing.T) {
	n := startNode(t)
	const shards = 5
	big := strings.Repeat("x", 100<<10)
	saw := make(chan string, 1)
	var stale error
	n.employ(func(ctx context.Context, task *takt.Task) error {
		if task.Job() == "wide" {
			return task.SetResult(fmt.Sprint(task.Shard(), big))
		}
		text := ""
		for _, p := range task.Parents() {
			text += fmt.Sprint(p.Job, " ", p.Execution, " ", p.State)
			for r, err := range task.ParentResults(ctx, p.Job) {
				if err != nil {
					return err
				}
				text += fmt.Sprint(" ", r.Shard, string(r.Result) == fmt.Sprintf("%q", fmt.Sprint(r.Shard, big)))
			}
		}
		q := fmt.Sprintf(`{"execution":%q,"shard":0,"token":%d,"job":"wide"}`, task.Execution(), task.Token()-1)
		if status, body := n.ask("POST", work+"parents", q); status != 409 || !strings.Contains(string(body), "token_stale") {
			stale = errors.New(string(body))
		}
		saw <- text
		return nil
	})
	put := func(name, spec string) {
		asked[takt.Job](n, "PUT", jobs+"/"+name, strings.Replace(doc(spec), "nightly", name, 1))
	}
	put("wide", fmt.Sprintf(`{"pool":"web","handler":"index","shards":{"count":%d}}`, shards))
	put("child", `{"pool":"web","handler":"index","after":[{"job":"wide"}]}`)
	id := asked[takt.Triggered](n, "POST", jobs+"/wide/trigger", "").Execution
	want := "wide " + id + " succeeded"
	for i := range shards {
		want += fmt.Sprint(" ", i, true)
	}
	if got := within(t, saw); got != want || stale != nil {
		t.Errorf("the child saw %s, want %s; with an old token: %v", got, want, stale)
	}
}

// A child reads the same on each attempt, also when its parent was run again between them and gave more.
func TestParentsStayTheSame(t *testing.T) {
	n := startNode(t)
	saw, goOn := make(chan string, 3), make(chan error, 3)
	n.employ(func(ctx context.Context, task *takt.Task) error {
		if task.Job() == "wide" {
			if task.Shard() == 1 && task.Attempt() == 1 {
				return takt.Fatal(errors.New("not yet"))
			}
			return task.SetResult(task.Shard())
		}
		text := ""
		for _, p := range task.Parents() {
			text += fmt.Sprint(p.Job, " ", p.State)
			for r, err := range task.ParentResults(ctx, p.Job) {
				text += fmt.Sprint(" ", r.Shard, err)
			}
		}
		saw <- text
		select {
		case err := <-goOn:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, func(c *takt.WorkerConfig) { c.Slots = 4 }) // the parent runs again while the child does
	put := func(name, spec string) {
		asked[takt.Job](n, "PUT", jobs+"/"+name, strings.Replace(doc(spec), "nightly", name, 1))
	}
	put("wide", `{"pool":"web","handler":"index","shards":{"count":2}}`)
	put("child", `{"pool":"web","handler":"index","after":[{"job":"wide","on":"finished"}],"retry":{"maxAttempts":2,"backoff":{"initial":"1ms"}}}`)
	id := asked[takt.Triggered](n, "POST", jobs+"/wide/trigger", "").Execution
	const want = "wide partially_succeeded 0 <nil>"
	if got := within(t, saw); got != want {
		t.Errorf("the first attempt saw %s, want %s", got, want)
	}
	asked[takt.Asked](n, "POST", execs+"/"+id+"/rerun", "")
	if e, err := n.client().Wait(t.Context(), id); err != nil || e.State != "succeeded" {
		t.Fatalf("the parent is %s, %v", e.State, err)
	}
	goOn <- errors.New("again")
	if got := within(t, saw); got != want {
		t.Errorf("the second attempt saw %s, want %s", got, want)
	}
	goOn <- takt.Fatal(errors.New("and once more"))
	list := asked[takt.ExecutionList](n, "GET", execs+"?job=child", "")
	child := list.Items[0].ID
	if e, err := n.client().Wait(t.Context(), child); err != nil || e.State != "failed" || len(list.Items) != 1 {
		t.Fatalf("the child is %s, %v, one of %d", e.State, err, len(list.Items))
	}
	asked[takt.Asked](n, "POST", execs+"/"+child+"/rerun", "")
	if got := within(t, saw); got != want {
		t.Errorf("the rerun saw %s, want %s", got, want)
	}
	goOn <- nil
}

// within is what comes next.
func within(t *testing.T, saw <-chan string) string {
	t.Helper()
	select {
	case text := <-saw:
		return text
	case <-time.After(time.Minute):
		t.Fatal("the child did not run")
		return ""
	}
}
