package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// documents that must come back as they were sent: defaults are not written into them.
var documents = []string{
	`{"pool":"web","handler":"index"}`,
	`{"pool":"web","handler":"index","enabled":false}`,
	`{"pool":"web","handler":"index","params":{"b":1,"a":[1,2.50,"x"],"n":null}}`,
	`{"pool":"web","handler":"index","params":"text"}`,
	`{"pool":"web","handler":"index","params":12345678901234567890}`,
	`{"pool":"web","handler":"index","schedule":{"cron":"0 3 * * *"}}`,
	`{"pool":"web","handler":"index","schedule":{"cron":"30 0 3 * * *","timeZone":"Europe/Berlin"}}`,
	`{"pool":"web","handler":"index","schedule":{"every":"1h30m"}}`,
	`{"pool":"web","handler":"index","schedule":{"at":"2026-07-01T08:00:00.25Z"}}`,
	`{"pool":"web","handler":"index","shards":{"count":1}}`,
	`{"pool":"web","handler":"index","shards":{"count":10000}}`,
	`{"pool":"web","handler":"index","retry":{"maxAttempts":5}}`,
	`{"pool":"web","handler":"index","retry":{"backoff":{"max":"1h"}}}`,
	`{"pool":"web","handler":"index","retry":{"maxAttempts":2,"backoff":{"initial":"250ms","factor":1.5,"max":"1d","jitter":"none"}}}`,
	`{"pool":"web","handler":"index","timeout":{"attempt":"2h","stall":"5m","grace":"30s"}}`,
}

func doc(spec string) string {
	return `{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"nightly","labels":{"team":"search"}},"spec":` + spec + `}`
}

func TestDocumentsComeBackAsTheyWereSent(t *testing.T) {
	for _, spec := range documents {
		r := newRig(t, nil)
		w := r.do(request{method: "PUT", path: one, body: doc(spec)})
		if w.Code != http.StatusCreated {
			t.Errorf("%s: %d %s", spec, w.Code, w.Body)
			continue
		}
		got := ok[struct{ Spec, Metadata, Status json.RawMessage }](r, get(one))
		var a, b any
		if json.Unmarshal([]byte(spec), &a) != nil || json.Unmarshal(got.Spec, &b) != nil {
			t.Fatalf("no JSON: %s", got.Spec)
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%s (-sent +read):\n%s", spec, d)
		}
		// What was read can be sent back.
		whole := r.do(get(one)).Body.String()
		if w := r.do(request{method: "PUT", path: one, body: whole}); w.Code != http.StatusOK {
			t.Errorf("sent back: %d %s", w.Code, w.Body)
		}
	}
}

func TestPutJob(t *testing.T) {
	r := newRig(t, nil)
	w := r.do(request{method: "PUT", path: one, body: doc(documents[0])})
	var j takt.Job
	if err := json.Unmarshal(w.Body.Bytes(), &j); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusCreated || w.Header().Get("ETag") != `"1"` || j.Metadata.Revision != 1 || j.Status.Effect != "effective" {
		t.Errorf("created: %d, ETag %s, %+v %+v", w.Code, w.Header().Get("ETag"), j.Metadata, j.Status)
	}
	if j.Metadata.Namespace != "default" || len(j.Metadata.UID) != 32 || !j.Metadata.CreatedAt.Equal(wall) {
		t.Errorf("metadata %+v", j.Metadata)
	}
	if strings.Contains(w.Body.String(), "$schema") {
		t.Error("the body links a schema")
	}

	change := request{method: "PUT", path: one, body: doc(documents[1])}
	refused(r, with(change, "If-Match", `"7"`), 409, "revision_changed")
	refused(r, with(change, "If-None-Match", "*"), 409, "revision_changed")
	w = r.do(with(change, "If-Match", `"1"`))
	if w.Code != http.StatusOK || w.Header().Get("ETag") != `"2"` {
		t.Errorf("changed: %d, ETag %s", w.Code, w.Header().Get("ETag"))
	}
	if w := r.do(get(one)); w.Header().Get("ETag") != `"2"` {
		t.Errorf("read: ETag %s", w.Header().Get("ETag"))
	}

	r.owners.consumes = false
	if j := ok[takt.Job](r, change); j.Status.Effect != "pending" {
		t.Errorf("an owner that does not take it in: effect %q", j.Status.Effect)
	}
}

func TestJobStatusShowsNextAndLast(t *testing.T) {
	r := newRig(t, nil)
	ok[takt.Job](r, request{method: "PUT", path: one, body: doc(documents[5])})
	row := r.store.jobs["default/nightly"]
	row.Cursors = []job.Cursor{{Schedule: "a", Next: 5000, Last: 1000}, {Schedule: "b", Next: 3000, Last: 2000}, {Schedule: "c"}}
	r.store.jobs["default/nightly"] = row
	j := ok[takt.Job](r, get(one))
	if j.Status.NextPlannedAt == nil || j.Status.NextPlannedAt.UnixMilli() != 3000 || j.Status.LastPlannedAt.UnixMilli() != 2000 {
		t.Errorf("status %+v", j.Status)
	}
	list := ok[takt.JobList](r, get(jobs+"?limit=7&after=x"))
	if len(list.Items) != 1 || list.Next != "more" || r.store.pages[0] != (store.Page{After: "x", Limit: 7}) {
		t.Errorf("list %+v, page %+v", list, r.store.pages)
	}
	ok[takt.JobList](r, get(jobs))
	if r.store.pages[1].Limit != 100 {
		t.Errorf("default limit %d", r.store.pages[1].Limit)
	}
}

func TestTriggerOverlaysParams(t *testing.T) {
	for _, c := range []struct{ base, over, want string }{
		{`{"a":1,"b":{"c":1}}`, `{"params":{"b":{"d":2},"e":3}}`, `{"a":1,"b":{"d":2},"e":3}`},
		{`[1]`, `{"params":[2]}`, `[2]`},
		{`"x"`, `{"params":false}`, `false`},
		{`null`, `{"params":{"a":1}}`, `{"a":1}`},
		{`{"a":1}`, `{"params":{"a":null}}`, `{"a":null}`},
		{`{"a":1}`, `{"params":null}`, ``},
		{`{"a":1}`, `{}`, ``},
		{`{"a":1}`, ``, ``},
	} {
		r := newRig(t, nil)
		ok[takt.Job](r, request{method: "PUT", path: one, body: doc(fmt.Sprintf(`{"pool":"web","handler":"index","params":%s}`, c.base))})
		ok[takt.Triggered](r, post(one+"/trigger", c.over))
		if got := string(r.store.triggers[0].Request.Params); got != c.want {
			t.Errorf("%s over %s: %s, want %s (empty: the job's own at the time)", c.over, c.base, got, c.want)
		}
	}
}

// One object alone is refused: the other value would vanish without a word.
func TestTriggerRefusesParamsThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ base, over string }{
		{`{"a":1}`, `[1]`}, {`{"a":1}`, `"x"`}, {`{"a":1}`, `5`}, {`{}`, `false`}, {`[1]`, `{"a":1}`}, {`"x"`, `{"a":1}`}, {`0`, `{}`},
	} {
		r := newRig(t, nil)
		ok[takt.Job](r, request{method: "PUT", path: one, body: doc(fmt.Sprintf(`{"pool":"web","handler":"index","params":%s}`, c.base))})
		p := refused(r, post(one+"/trigger", `{"params":`+c.over+`}`), 422, "params_mismatch")
		if len(p.Errors) != 1 || p.Errors[0].Field != "params" || p.Hint == "" {
			t.Errorf("%s over %s: %+v", c.over, c.base, p)
		}
	}
}

func TestTriggerKey(t *testing.T) {
	r := newRig(t, nil)
	refused(r, post(one+"/trigger", ""), 404, "job_not_found")
	ok[takt.Job](r, request{method: "PUT", path: one, body: doc(documents[0])})
	ask := func(key, body string) request { return with(post(one+"/trigger", body), "Idempotency-Key", key) }

	first := ok[takt.Triggered](r, ask("order-1", `{"params":{"a":1,"b":2}}`))
	again := ok[takt.Triggered](r, ask("order-1", `{ "params": {"b":2, "a":1} }`))
	if first.Repeated || first.Effect != "effective" || again.Execution != first.Execution || !again.Repeated {
		t.Errorf("first %+v, again %+v", first, again)
	}
	id, err := job.ParseExecutionID(first.Execution)
	if err != nil || id.PlannedAt() != job.InstantOf(wall) {
		t.Errorf("id %s: planned %v, %v", first.Execution, id.PlannedAt(), err)
	}
	p := refused(r, ask("order-1", `{"params":{"a":2}}`), 409, "idempotency_key_reused")
	if p.Kind != "conflict" {
		t.Errorf("kind %s", p.Kind)
	}
	if other := ok[takt.Triggered](r, ask("order-2", `{"params":{"a":2}}`)); other.Execution == first.Execution {
		t.Error("another key, the same execution")
	}
	// An edit of the job between two tries makes no other request of it.
	ok[takt.Job](r, request{method: "PUT", path: one, body: doc(documents[2])})
	if again := ok[takt.Triggered](r, ask("order-1", `{"params":{"a":1,"b":2}}`)); again.Execution != first.Execution {
		t.Error("after an edit, another execution")
	}
	if r.store.triggers[0].Key.Operation != "trigger/nightly" {
		t.Errorf("operation %q", r.store.triggers[0].Key.Operation)
	}
}

func TestTriggerMany(t *testing.T) {
	const many = "/api/v1/namespaces/default/executions"
	r := newRig(t, nil)
	ok[takt.Job](r, request{method: "PUT", path: one, body: doc(documents[0])})
	both := post(many, `{"items":[{"job":"nightly","key":"a","params":{"n":1}},{"job":"nightly"}]}`)
	first, again := ok[takt.TriggeredMany](r, both), ok[takt.TriggeredMany](r, both)
	if len(first.Items) != 2 || first.Effect != "effective" || first.Items[0].Repeated || first.Items[0].Execution >= first.Items[1].Execution {
		t.Errorf("first %+v", first)
	}
	if again.Items[0].Execution != first.Items[0].Execution || !again.Items[0].Repeated || again.Items[1].Execution == first.Items[1].Execution {
		t.Errorf("again %+v", again)
	}
	for _, c := range []struct {
		items, code, field string
		status             int
	}{
		{`{"job":"nobody"}`, "job_not_found", "items[1].job", 404},
		{`{"job":"nightly","key":"a","params":{"n":2}}`, "idempotency_key_reused", "items[1].key", 409},
		{`{"job":"nightly","key":"a b"}`, "bad_format", "items[1].key", 422},
		{`{"job":"nightly","params":"` + strings.Repeat("x", 256<<10) + `"}`, "params_too_large", "items[1].params", 413},
		{`{"job":"nightly","parms":1}`, "unknown_field", "items[1].parms", 422},
		{`{}`, "required_field", "items[1].job", 422},
	} {
		p := refused(r, post(many, `{"items":[{"job":"nightly","key":"a","params":{"n":1}},`+c.items+`]}`), c.status, c.code)
		if len(p.Errors) != 1 || p.Errors[0].Field != c.field {
			t.Errorf("%s: fields %+v, want %s", c.code, p.Errors, c.field)
		}
	}
	refused(r, post(many, `{"items":[]}`), 422, "out_of_range")
	refused(r, post(many, `{"items":[`+strings.Repeat(`{"job":"nightly"},`, 1000)+`{"job":"nightly"}]}`), 422, "out_of_range")
}

func TestThousandTriggersInOneMillisecond(t *testing.T) {
	r := newRig(t, nil)
	ok[takt.Job](r, request{method: "PUT", path: one, body: doc(documents[0])})
	seen := map[string]bool{}
	for range 1000 {
		seen[ok[takt.Triggered](r, post(one+"/trigger", "")).Execution] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d executions of 1,000 triggers", len(seen))
	}
}

func TestCancelAndRerun(t *testing.T) {
	for _, c := range []struct {
		state         job.ExecutionState
		cancel, rerun string // code of the problem; "": asked; "-": effective without asking
	}{
		{job.ExecutionScheduled, "", "execution_live"},
		{job.ExecutionQueued, "", "execution_live"},
		{job.ExecutionRunning, "", "execution_live"},
		{job.ExecutionCancelling, "-", "execution_live"},
		{job.ExecutionSucceeded, "execution_ended", "nothing_to_rerun"},
		{job.ExecutionPartiallySucceeded, "execution_ended", ""},
		{job.ExecutionFailed, "execution_ended", ""},
		{job.ExecutionTimedOut, "execution_ended", ""},
		{job.ExecutionCancelled, "-", ""},
	} {
		for verb, want := range map[string]string{"cancel": c.cancel, "rerun": c.rerun} {
			r := newRig(t, nil)
			id := job.RequestedID(5000, [10]byte{1})
			r.store.asked[id] = job.Execution{ID: id, Namespace: "default", Job: "nightly", State: c.state}
			r.store.jobs["default/nightly"] = store.JobRow{}
			q := post(execs+"/"+id.UUID()+"/"+verb, `{"note":"because"}`)
			if want != "" && want != "-" {
				refused(r, q, 409, want)
				if len(r.store.asks) != 0 {
					t.Errorf("%s while %s: written", verb, c.state)
				}
				continue
			}
			a := ok[takt.Asked](r, q)
			if a.Execution != id.String() || a.Effect != "effective" || (len(r.store.asks) == 0) != (want == "-") {
				t.Errorf("%s while %s: %+v, asks %+v", verb, c.state, a, r.store.asks)
			}
			if want == "" && (r.store.asks[0].Note != "because" || r.store.asks[0].Kind != engine.EntryKind(verb)) {
				t.Errorf("asked %+v", r.store.asks[0])
			}
		}
	}
	r := newRig(t, nil)
	refused(r, post(exec1+"/cancel", ""), 404, "execution_not_found")
	refused(r, post(exec1+"/rerun", ""), 404, "execution_not_found")
}

func TestExecutionIsJoinedWithMemory(t *testing.T) {
	r := newRig(t, nil)
	id := job.RequestedID(5000, [10]byte{1})
	path := execs + "/" + id.String()
	e := job.Execution{ID: id, Partition: 3, Namespace: "default", Job: "nightly", Trigger: job.TriggerSchedule, PlannedAt: 5000, ShardTotal: 2,
		State: job.ExecutionRunning, StartedAt: 6000, Reason: job.ReasonRerun}
	r.store.asked[id] = e
	r.store.shards[id] = []job.Shard{
		{Index: 0, State: job.ShardRunning, Token: 9, Worker: "w1", Attempt: 2, Progress: job.Progress{Done: 5},
			Attempts: []job.Attempt{{Number: 1, State: job.AttemptLost, Reason: job.ReasonLeaseExpired, Error: &job.Failure{Class: "x", Message: "y"}}}},
		{Index: 1, State: job.ShardQueued},
	}
	r.owners.answer = func(_ context.Context, ev engine.Event) (any, error) {
		if q, is := ev.(engine.Inspect); !is || q.Query.Execution != id {
			return nil, errors.New("asked something else")
		}
		return &engine.Inspected{Execution: &engine.ExecutionView{Waits: []job.Reason{"", job.WaitNoSlot}, Left: []time.Duration{7 * time.Second, 0}}}, nil
	}
	got := ok[takt.Execution](r, get(path))
	if got.Waits != "no_slot" || got.WaitsText == "" || got.State != "running" || got.StartedAt.UnixMilli() != 6000 || got.EndedAt != nil || got.ReasonText == "" {
		t.Errorf("execution %+v", got)
	}
	if r.owners.at[0] != 3 {
		t.Errorf("asked the owner of partition %d", r.owners.at[0])
	}
	shards := ok[takt.ShardList](r, get(path+"/shards")).Items
	if len(shards) != 2 || shards[0].LeaseLeftMs != 7000 || shards[0].Key != "default/nightly@1970-01-01T00:00:05.000Z#0" || shards[0].Progress.Done != 5 ||
		shards[1].Waits != "no_slot" || shards[1].Progress != nil || shards[0].Attempts[0].Error.Message != "y" {
		t.Errorf("shards %+v", shards)
	}
}

// Without an owner the rows alone are shown; with another fault the fault; queued and not in memory is behind others.
func TestExecutionWithoutMemory(t *testing.T) {
	r := newRig(t, nil)
	id := job.RequestedID(5000, [10]byte{1})
	path := execs + "/" + id.String()
	e := job.Execution{ID: id, Namespace: "default", Job: "nightly", ShardTotal: 2, State: job.ExecutionRunning}
	r.store.asked[id] = e
	if got := ok[takt.Execution](r, get(path)); got.Waits != "" {
		t.Errorf("no owner: %+v", got)
	}
	r.owners.answer = func(context.Context, engine.Event) (any, error) { return nil, errors.New("disk on fire") }
	refused(r, get(path), 500, "internal")
	e.State = job.ExecutionQueued
	r.store.asked[id] = e
	r.owners.answer = func(context.Context, engine.Event) (any, error) { return &engine.Inspected{}, nil }
	if got := ok[takt.Execution](r, get(path)); got.Waits != "backlog" {
		t.Errorf("backlog: %+v", got)
	}
}

func TestListExecutionsPassesItsFilter(t *testing.T) {
	r := newRig(t, nil)
	ok[takt.ExecutionList](r, get(execs+"?job=nightly&pool=web&state=failed&after=a&limit=3"))
	want := store.ExecutionFilter{Namespace: "default", Job: "nightly", Pool: "web", State: job.ExecutionFailed, Page: store.Page{After: "a", Limit: 3}}
	if !r.store.filters[0].Query.Empty() {
		t.Errorf("a query out of nothing: %+v", r.store.filters)
	}
	want.Query = r.store.filters[0].Query // it knows the time
	if !reflect.DeepEqual(r.store.filters, []store.ExecutionFilter{want}) {
		t.Errorf("filter %+v", r.store.filters)
	}
	if body := r.do(get(execs)).Body.String(); !strings.Contains(body, `"items":[]`) {
		t.Errorf("an empty list is %s", body)
	}
	d := ok[takt.DecisionList](r, get("/api/v1/namespaces/default/decisions?job=nightly"))
	if len(d.Items) != 1 || d.Items[0].Count != 3 || d.Items[0].ReasonText == "" {
		t.Errorf("decisions %+v", d)
	}
}

func TestWorkersAndPools(t *testing.T) {
	r := newRig(t, nil)
	view := func(pool, name string, left ...time.Duration) engine.SessionView {
		v := engine.SessionView{Session: job.Session{ID: "1.x", Namespace: "default", Pool: pool, Worker: name, Slots: 4, TTL: 15 * time.Second}, LastBeat: time.Second}
		for _, l := range left {
			v.Held = append(v.Held, engine.HeldView{Left: l})
		}
		return v
	}
	r.owners.answer = func(context.Context, engine.Event) (any, error) {
		return &engine.Inspected{Sessions: []engine.SessionView{view("web", "b", 9*time.Second, 5*time.Second), view("web", "a"), {Session: job.Session{Namespace: "other"}}},
			Pools: []engine.PoolView{{Namespace: "default", Pool: "web", Workers: 2, Slots: 8, Busy: 2}, {Namespace: "other", Pool: "x"}}}, nil
	}
	list := ok[takt.WorkerList](r, get("/api/v1/namespaces/default/workers?pool=web")).Items
	if len(list) != 2 || list[0].Name != "a" || list[0].Handlers == nil || list[1].Busy != 2 || list[1].LeaseLeftMs != 5000 || list[1].LeaseTTLMs != 15000 {
		t.Errorf("workers %+v", list)
	}
	if len(r.owners.calls) != 1 {
		t.Errorf("one pool asked %d owners", len(r.owners.calls))
	}
	pools := ok[takt.PoolList](r, get("/api/v1/namespaces/default/pools")).Items
	if len(pools) != 4 || pools[0].Name != "web" || pools[0].Busy != 2 { // four partitions answer the same here
		t.Errorf("pools %+v", pools)
	}
	r.owners.answer = nil
	p := r.do(get("/api/v1/namespaces/default/workers"))
	isProblem(t, p, 503, "no_owner")
	if p.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
