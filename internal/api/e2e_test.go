package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/app"
)

// node is a whole server on SQLite behind a real socket.
type node struct {
	t    testing.TB
	base string
	stop func() // again does nothing
}

func startNode(t testing.TB, change ...func(*app.Config)) *node {
	t.Helper()
	cfg := app.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", NoSync: true, Version: "v0-test"}
	for _, c := range change {
		c(&cfg)
	}
	a, err := app.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	n := &node{t: t, base: "http://" + a.Addr()}
	n.stop = sync.OnceFunc(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	t.Cleanup(n.stop)
	for { // until it has taken its partitions; each try is a round trip
		if status, _ := n.ask("GET", "/readyz", ""); status == http.StatusOK {
			return n
		}
		if ctx.Err() != nil || t.Context().Err() != nil {
			t.Fatal("not ready")
		}
	}
}

// ask sends one request and gives status and body.
// ask asks again while the node has lost its partition, as workers and clients do: a machine that is busy may be late with
// the renewal of a short lease.
func (n *node) ask(method, path, body string, header ...string) (status int, answer []byte) {
	n.t.Helper()
	for range 40 {
		if status, answer = n.askOnce(method, path, body, header...); status != http.StatusServiceUnavailable || !bytes.Contains(answer, []byte(`"no_owner"`)) {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	return status, answer
}

func (n *node) askOnce(method, path, body string, header ...string) (int, []byte) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 40*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, n.base+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		n.t.Fatal(err)
	}
	return resp.StatusCode, b.Bytes()
}

func asked[T any](n *node, method, path, body string, header ...string) T {
	n.t.Helper()
	status, b := n.ask(method, path, body, header...)
	var v T
	if err := json.Unmarshal(b, &v); status/100 != 2 || err != nil {
		n.t.Fatalf("%s %s: %d %s (%v)", method, path, status, b, err)
	}
	return v
}

func (n *node) refused(method, path, body string, status int, code string, header ...string) {
	n.t.Helper()
	got, b := n.ask(method, path, body, header...)
	var p takt.Problem
	if err := json.Unmarshal(b, &p); err != nil || got != status || p.Code != code {
		n.t.Errorf("%s %s: %d %s (%v), want %d %s", method, path, got, b, err, status, code)
	}
}

// From a job document to a result, with nothing but HTTP: what curl would do.
func TestWholeServer(t *testing.T) {
	n := startNode(t)
	first := n.asPerson()
	at := execs + "/" + first.Execution
	if e := asked[takt.Execution](n, "GET", at, ""); e.State != "queued" || e.Waits != "no_worker" {
		t.Errorf("execution %+v", e)
	}
	n.asWorker(first.Execution)
	if e := asked[takt.Execution](n, "GET", at, ""); e.State != "succeeded" || e.EndedAt == nil {
		t.Errorf("execution %+v", e)
	}
	n.refused("POST", at+"/cancel", "", 409, "execution_ended")
	n.refused("POST", at+"/rerun", "", 409, "nothing_to_rerun")
	if s := asked[takt.Stats](n, "GET", "/api/v1/stats", ""); s.Partitions[0].Granted != 1 || s.Partitions[0].Stale < 1 {
		t.Errorf("stats %+v", s)
	}
}

// asPerson makes a job and asks for an execution of it.
func (n *node) asPerson() takt.Triggered {
	j := asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index","params":{"a":1}}`))
	if j.Metadata.Revision != 1 || j.Status.Effect != "effective" {
		n.t.Errorf("job %+v %+v", j.Metadata, j.Status)
	}
	n.refused("PUT", one, doc(`{"pool":"web","handler":"other"}`), 409, "revision_changed", "If-Match", `"4"`)
	n.refused("GET", jobs+"/nobody", "", 404, "job_not_found")
	n.refused("POST", jobs+"/nobody/trigger", "", 404, "job_not_found")
	if list := asked[takt.JobList](n, "GET", jobs, ""); len(list.Items) != 1 || list.Next != "" {
		n.t.Errorf("jobs %+v", list)
	}
	first := asked[takt.Triggered](n, "POST", one+"/trigger", `{"params":{"b":2}}`, "Idempotency-Key", "k1")
	again := asked[takt.Triggered](n, "POST", one+"/trigger", `{"params":{"b":2}}`, "Idempotency-Key", "k1")
	if again.Execution != first.Execution || !again.Repeated || first.Effect != "effective" || again.Effect != "effective" {
		n.t.Errorf("first %+v, again %+v", first, again)
	}
	n.refused("POST", one+"/trigger", `{"params":{"b":3}}`, 409, "idempotency_key_reused", "Idempotency-Key", "k1")
	return first
}

// asWorker runs the one shard that waits.
func (n *node) asWorker(execution string) {
	o := asked[takt.OpenResponse](n, "POST", work+"open", opened)
	head := `{"session":"` + o.Session + `","epoch":` + strconv.FormatInt(o.Epoch, 10) + `,"call":`
	p := asked[takt.PollResponse](n, "POST", work+"poll", head+`2,"number":1,"free":4,"waitMs":20000}`)
	if len(p.Assignments) != 1 {
		n.t.Fatalf("poll %+v", p)
	}
	a := p.Assignments[0]
	var params map[string]int
	if err := json.Unmarshal(a.Params, &params); err != nil || params["a"] != 1 || params["b"] != 2 || a.Execution != execution || a.LeaseCall != 2 {
		n.t.Errorf("assignment %+v, params %v, %v", a, params, err)
	}
	n.seeWorker(&a)
	token := strconv.FormatInt(a.Token, 10)
	b := asked[takt.HeartbeatResponse](n, "POST", work+"heartbeat", head+`3,"held":[{"token":`+token+`},{"token":1}]}`)
	if len(b.Renewed) != 1 || b.Renewed[0] != a.Token || len(b.Lost) != 1 || b.Call != 3 {
		n.t.Errorf("beat %+v", b)
	}
	item := `{"execution":"` + a.Execution + `","shard":0,"token":` + token
	r := asked[takt.ReportResponse](n, "POST", work+"report", head+`4,"items":[`+item+`,"seq":1,"kind":"started"},`+
		item+`,"seq":2,"kind":"checkpoint","checkpoint":{"at":9}},`+item+`,"seq":3,"kind":"done","outcome":"success","result":{"ok":true}},`+
		`{"execution":"`+a.Execution+`","shard":0,"token":1,"seq":1,"kind":"started"}]}`)
	if got := strings.Join(r.Items, " "); got != "accepted accepted accepted stale" {
		n.t.Errorf("report: %s", got)
	}
	asked[takt.CloseResponse](n, "POST", work+"close", head+`5}`)
	n.refused("POST", work+"heartbeat", head+`6}`, 404, "session_unknown")
}

// seeWorker looks at a granted shard as a person.
func (n *node) seeWorker(a *takt.Assignment) {
	if ws := asked[takt.WorkerList](n, "GET", "/api/v1/namespaces/default/workers", ""); len(ws.Items) != 1 || ws.Items[0].Busy != 1 || ws.Items[0].LeaseLeftMs == 0 {
		n.t.Errorf("workers %+v", ws)
	}
	if ps := asked[takt.PoolList](n, "GET", "/api/v1/namespaces/default/pools", ""); len(ps.Items) != 1 || ps.Items[0].Slots != 4 {
		n.t.Errorf("pools %+v", ps)
	}
	sh := asked[takt.ShardList](n, "GET", execs+"/"+a.Execution+"/shards", "")
	if len(sh.Items) != 1 || sh.Items[0].Token != a.Token || sh.Items[0].LeaseLeftMs == 0 || sh.Items[0].Key != a.Key {
		n.t.Errorf("shards %+v", sh)
	}
}

// A place of one list is refused by another, and an invented one by all.
func TestPagesOverTheStore(t *testing.T) {
	n := startNode(t)
	for _, name := range []string{"a", "b", "c"} {
		asked[takt.Job](n, "PUT", jobs+"/"+name, strings.Replace(doc(documents[0]), "nightly", name, 1))
		asked[takt.Triggered](n, "POST", jobs+"/"+name+"/trigger", "")
	}
	one := asked[takt.JobList](n, "GET", jobs+"?limit=2", "")
	two := asked[takt.JobList](n, "GET", jobs+"?limit=2&after="+one.Next, "")
	if len(one.Items) != 2 || len(two.Items) != 1 || two.Items[0].Metadata.Name != "c" || two.Next != "" {
		t.Errorf("pages %+v %+v", one, two)
	}
	n.refused("GET", execs+"?after="+one.Next, "", 422, "bad_after")
	n.refused("GET", jobs+"?after=invented", "", 422, "bad_after")
	var ids []string
	for after := ""; ; {
		l := asked[takt.ExecutionList](n, "GET", execs+"?limit=1&after="+after, "")
		for _, e := range l.Items {
			ids = append(ids, e.ID)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if len(ids) != 3 || ids[0] < ids[1] || ids[1] < ids[2] {
		t.Errorf("executions %v", ids)
	}
}

// No hostile request leaves a trace in a real server either.
func TestHostileRequestsOverTheStore(t *testing.T) {
	n := startNode(t)
	before := asked[takt.Stats](n, "GET", "/api/v1/stats", "").Partitions[0].Seq
	for _, c := range hostile {
		if c.q.host != "" || c.status == 404 && c.code == "unknown_path" || strings.Contains(c.q.path, "%zz") {
			continue // the client would not send it as it is
		}
		var header []string
		for k, v := range c.q.header {
			if v != "" && strings.TrimSpace(v) != "" {
				header = append(header, k, v)
			}
		}
		if len(header) != 2*len(c.q.header) {
			continue
		}
		n.refused(c.q.method, c.q.path, c.q.body, c.status, c.code, header...)
	}
	if after := asked[takt.Stats](n, "GET", "/api/v1/stats", "").Partitions[0].Seq; after != before {
		t.Errorf("%d commits", after-before)
	}
	if l := asked[takt.JobList](n, "GET", jobs, ""); len(l.Items) != 0 {
		t.Errorf("jobs %+v", l)
	}
}

var _ api.Pinger = (*fakeStore)(nil)
