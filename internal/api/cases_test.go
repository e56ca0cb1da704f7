package api_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// TestC73Numbers: numbers and instants out of range are refused with the field, and nothing is stored; what is in range
// is kept to the digit.
func TestC73Numbers(t *testing.T) {
	n := startNode(t)
	spec := func(part string) string { return doc(`{"pool":"web","handler":"index",` + part + `}`) }
	for field, values := range map[string][]string{
		`"shards":{"count":%s}`:              {"0", "-1", "2147483648", "1000000000", "null", "1.5", `"5"`, `""`, "1e400", "NaN", "9007199254740993"},
		`"timeout":{"attempt":%s}`:           {"-1", `""`, "1.5", `"5"`, "1e400", "NaN", "9007199254740993", `"-1s"`, `"99999w"`},
		`"retry":{"maxAttempts":%s}`:         {"-1", "0", `""`, "1.5", `"5"`, "1e400", "NaN", "9007199254740993"},
		`"retry":{"backoff":{"initial":%s}}`: {"-1", `""`, `"5"`, "1e400", "NaN", `"-1s"`},
		`"retry":{"backoff":{"factor":%s}}`:  {"-1", `""`, `"5"`, "1e400", "NaN"},
		`"schedule":{"every":%s}`:            {"0", "-1", `"0"`, `""`, `"-1s"`, "1e400", "NaN", `"1ms"`},
		`"schedule":{"at":%s}`:               {`"0000-01-01T00:00:00Z"`, `"10000-01-01T00:00:00Z"`, `"2027-06-30T23:59:60Z"`, "0", `""`, `"2027-02-30T00:00:00Z"`},
	} {
		for _, value := range values {
			status, raw := n.ask("PUT", one, spec(fmt.Sprintf(field, value)))
			var p takt.Problem
			if err := json.Unmarshal(raw, &p); err != nil || status/100 != 4 || len(p.Errors) == 0 || p.Errors[0].Field == "" || p.Hint == "" {
				t.Errorf(field+": %d %s", value, status, raw)
			}
		}
	}
	for _, query := range []string{"limit=0", "limit=-1", "limit=1.5", "limit=null", "limit=NaN", "limit=1e400", "limit=9007199254740993", "limit=9999999999999999999"} {
		if status, raw := n.ask("GET", execs+"?"+query, ""); status/100 != 4 {
			t.Errorf("%s: %d %s", query, status, raw)
		}
	}
	n.refused("GET", one, "", 404, "job_not_found")
	const exact = `{"big":9007199254740993,"small":0.1,"huge":123456789012345678901234567890}`
	asked[takt.Job](n, "PUT", one, spec(`"params":`+exact+`,"schedule":{"at":"2038-01-19T03:14:08Z"},"retry":{"maxAttempts":1}`))
	got := asked[takt.Job](n, "GET", one, "")
	if string(got.Spec.Params) != exact || !got.Spec.Schedule.At.Equal(time.Unix(1<<31, 0)) || got.Spec.Retry.MaxAttempts != 1 {
		t.Errorf("kept %+v, params %s", got.Spec, got.Spec.Params)
	}
}

// TestC79Lists: lists over 100,000 executions are bounded, whatever is asked for, also by many at once and while rows
// come; a walk by places repeats and skips nothing.
func TestC79Lists(t *testing.T) {
	const rows = manyRows
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: app.Database(dir), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.ToSlash(app.Database(dir)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?1)
		INSERT INTO history_executions (id, partition, namespace, job, job_uid, revision, pool, handler, trigger, planned_at, request_key, params,
			shard_total, state, reason, cancel, round, created_at, started_at, ended_at)
		SELECT unhex(printf('%012x', ?2 + i) || '80008000000000000000'), 0, 'default', 'old', unhex('00000000000000000000000000000001'),
		1, 'web', 'index', 'schedule', ?2 + i, '', NULL, 1, iif(i % 1000, 'succeeded', 'failed'), '', '', 1, ?2 + i, ?2 + i, ?2 + i FROM n`, rows, time.Now().UnixMilli()-rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, func(c *app.Config) { c.DataDir = dir })
	for _, bad := range []string{"limit=0", "limit=-1", "limit=501", "limit=2147483647", "limit=9999999999999999999", "page=1000000000000000000", "after=garbage", "after=%00",
		"after=" + strings.Repeat("x", 600), "job=%25", "sort=note", "offset=5"} {
		if status, raw := n.ask("GET", execs+"?"+bad, ""); status/100 != 4 {
			t.Errorf("%s: %d %.200s", bad, status, raw)
		}
	}
	first := asked[takt.ExecutionList](n, "GET", execs, "")
	if len(first.Items) != 100 || first.Next == "" {
		t.Errorf("without a limit: %d items", len(first.Items))
	}
	// A place holds no rows: that of another namespace shows none of it.
	if l := asked[takt.ExecutionList](n, "GET", "/api/v1/namespaces/other/executions?after="+first.Next, ""); len(l.Items) != 0 {
		t.Errorf("another namespace shows %d rows", len(l.Items))
	}
	if l := asked[takt.ExecutionList](n, "GET", execs+"?state=failed&limit=500", ""); len(l.Items) != rows/1000 {
		t.Errorf("%d failed ones, want %d", len(l.Items), rows/1000)
	}
	begun := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if status, raw := n.ask("GET", execs+"?job=old&limit=500", ""); status != http.StatusOK || len(raw) > 1<<20 {
				t.Errorf("one of 50: %d, %d bytes", status, len(raw))
			}
		})
	}
	wg.Wait()
	t.Logf("50 lists of 500 at once: %v", time.Since(begun))
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index"}`))
	seen, pages := map[string]bool{}, 0
	for after := ""; ; pages++ {
		l := asked[takt.ExecutionList](n, "GET", execs+"?limit=500&after="+after, "")
		for _, e := range l.Items {
			if seen[e.ID] {
				t.Fatalf("%s is there twice", e.ID)
			}
			seen[e.ID] = true
		}
		if pages%50 == 0 { // rows come while somebody walks
			asked[takt.Triggered](n, "POST", one+"/trigger", "")
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if len(seen) < rows {
		t.Errorf("the walk saw %d of %d", len(seen), rows)
	}
}

// byHand is a session of a worker that speaks the protocol by hand.
type byHand struct {
	n    *node
	head string
	call int
	poll int
}

func (n *node) session(incarnation string, slots int) *byHand {
	n.t.Helper()
	body := strings.Replace(strings.Replace(opened, `"abc"`, `"`+incarnation+`"`, 1), `"slots":4`, fmt.Sprintf(`"slots":%d`, slots), 1)
	o := asked[takt.OpenResponse](n, "POST", work+"open", body)
	return &byHand{n: n, head: fmt.Sprintf(`{"session":%q,"epoch":%d,"call":`, o.Session, o.Epoch), call: 1}
}

// next begins the body of the next call.
func (w *byHand) next() string {
	w.call++
	return fmt.Sprintf("%s%d", w.head, w.call)
}

func (w *byHand) take(free int) []takt.Assignment {
	w.n.t.Helper()
	w.poll++
	return asked[takt.PollResponse](w.n, "POST", work+"poll", w.next()+fmt.Sprintf(`,"number":%d,"free":%d,"waitMs":500}`, w.poll, free)).Assignments
}

func itemOf(a *takt.Assignment, seq int, rest string) string {
	return fmt.Sprintf(`{"execution":%q,"shard":%d,"token":%d,"seq":%d,%s}`, a.Execution, a.Shard, a.Token, seq, rest)
}

func (w *byHand) report(items ...string) string {
	w.n.t.Helper()
	return strings.Join(asked[takt.ReportResponse](w.n, "POST", work+"report", w.next()+`,"items":[`+strings.Join(items, ",")+`]}`).Items, " ")
}

const success, begins = `"kind":"done","outcome":"success"`, `"kind":"started"`

// quick is a lease that tests can wait for.
func quick(c *app.Config) {
	c.Lease = partition.Lease{TTL: 4 * time.Second, Beat: time.Second, Margin: 400 * time.Millisecond, OwnerTTL: time.Second, OwnerMargin: 200 * time.Millisecond,
		Renew: 200 * time.Millisecond}
}

// TestC31SameNameNewProcess: a worker's new process is not taken for its old one, and what the old one said before does
// nothing any more when it is said again.
func TestC31SameNameNewProcess(t *testing.T) {
	n := startNode(t, quick)
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index"}`))
	e := asked[takt.Triggered](n, "POST", one+"/trigger", "").Execution
	old := n.session("first-life", 1)
	a := old.take(1)[0]
	if got := old.report(itemOf(&a, 1, begins)); got != "accepted" {
		t.Fatalf("started: %s", got)
	}
	beat := old.next() + fmt.Sprintf(`,"held":[{"token":%d}]}`, a.Token)
	asked[takt.HeartbeatResponse](n, "POST", work+"heartbeat", beat)
	young := n.session("second-life", 1)
	if young.head == old.head {
		t.Fatal("the new process got the old session")
	}
	var b takt.Assignment
	for b.Token == 0 {
		for _, x := range young.take(1) {
			b = x
		}
	}
	if b.Execution != e || b.Token <= a.Token {
		t.Fatalf("re-leased %+v after %+v", b, a)
	}
	// The replay: an old beat, an old result, an old farewell.
	if status, raw := n.ask("POST", work+"heartbeat", beat); status == http.StatusOK {
		var r takt.HeartbeatResponse
		if err := json.Unmarshal(raw, &r); err != nil || len(r.Renewed) != 0 {
			t.Errorf("the old beat renewed %s", raw)
		}
	}
	if status, raw := n.ask("POST", work+"report", old.next()+`,"items":[`+itemOf(&a, 2, success)+`]}`); status == http.StatusOK && strings.Contains(string(raw), "accepted") {
		t.Errorf("the old result: %s", raw)
	}
	if status, raw := n.ask("POST", work+"close", old.next()+`}`); status != http.StatusOK && status != http.StatusNotFound {
		t.Errorf("the old farewell: %d %s", status, raw)
	}
	held := asked[takt.HeartbeatResponse](n, "POST", work+"heartbeat", young.next()+fmt.Sprintf(`,"held":[{"token":%d}]}`, b.Token))
	if len(held.Renewed) != 1 {
		t.Errorf("the new process lost its shard by the replay: %+v", held)
	}
	if got := young.report(itemOf(&b, 1, begins), itemOf(&b, 2, success)); got != "accepted accepted" {
		t.Errorf("the new result: %s", got)
	}
	if x := asked[takt.Execution](n, "GET", execs+"/"+e, ""); x.State != "succeeded" {
		t.Errorf("execution %+v", x)
	}
}

// TestC39OutOfOrder: a result before the news of its beginning, that news after it, the result again.
func TestC39OutOfOrder(t *testing.T) {
	n := startNode(t)
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index"}`))
	e := asked[takt.Triggered](n, "POST", one+"/trigger", "").Execution
	w := n.session("abc", 1)
	a := w.take(1)[0]
	if got := w.report(itemOf(&a, 2, success+`,"result":{"n":1}`)); got != "accepted" {
		t.Errorf("the result first: %s", got)
	}
	w.report(itemOf(&a, 1, begins))
	w.report(itemOf(&a, 2, success+`,"result":{"n":1}`))
	w.report(itemOf(&a, 3, `"kind":"done","outcome":"fatal","error":{"class":"late","message":"late"}`))
	x := asked[takt.Execution](n, "GET", execs+"/"+e, "")
	sh := asked[takt.ShardList](n, "GET", execs+"/"+e+"/shards", "").Items[0]
	if x.State != "succeeded" || sh.State != "succeeded" || sh.Attempt != 1 || string(sh.Result) != `{"n":1}` || sh.Error != nil {
		t.Errorf("execution %s, shard %+v", x.State, sh)
	}
}

// TestC39ExpiryAndResult: 1,000 results, in batches before, at and after the end of their leases, are accepted and not run again, or
// refused and run again.
func TestC39ExpiryAndResult(t *testing.T) {
	const shards = 1000
	n := startNode(t, quick)
	asked[takt.Job](n, "PUT", one, doc(fmt.Sprintf(`{"pool":"web","handler":"index","shards":{"count":%d}}`, shards)))
	e := asked[takt.Triggered](n, "POST", one+"/trigger", "").Execution
	first := n.session("first", shards)
	var held []takt.Assignment
	for len(held) < shards {
		held = append(held, first.take(shards-len(held))...)
	}
	ends := time.Now().Add(4 * time.Second) // the poll was taken in a moment before
	second := n.session("second", shards)
	again := map[int]int64{}
	accepted := make([]bool, shards)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 40 {
		body := make([]string, 0, 25)
		part := held[i*25 : (i+1)*25]
		for j := range part {
			body = append(body, itemOf(&part[j], 1, success))
		}
		text := first.next() + `,"items":[` + strings.Join(body, ",") + `]}`
		wg.Go(func() {
			<-time.After(time.Until(ends) + time.Duration(i-33)*5*time.Millisecond)
			status, raw := n.ask("POST", work+"report", text)
			var r takt.ReportResponse
			if status == http.StatusNotFound {
				return // the session has expired whole: refused
			}
			if err := json.Unmarshal(raw, &r); err != nil || status != http.StatusOK {
				t.Errorf("report: %d %s", status, raw)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for j, fate := range r.Items {
				accepted[part[j].Shard] = fate == "accepted"
			}
		})
	}
	wg.Go(func() { // the one that takes over is hungry all the time
		for n.t.Context().Err() == nil {
			got := second.take(shards)
			items := make([]string, len(got))
			for i := range got {
				again[got[i].Shard] = got[i].Token
				items[i] = itemOf(&got[i], 1, success)
			}
			if len(items) > 0 {
				if fates := second.report(items...); strings.Contains(fates, "stale") {
					t.Errorf("the second's results: %s", fates)
				}
			}
			if x := asked[takt.Execution](n, "GET", execs+"/"+e, ""); x.State == "succeeded" {
				return
			}
		}
	})
	wg.Wait()
	count := 0
	for i, yes := range accepted {
		if yes {
			count++
		}
		if _, ran := again[i]; ran == yes {
			t.Errorf("shard %d: accepted %v, run again %v", i, yes, ran)
		}
	}
	t.Logf("%d accepted, %d run again", count, len(again))
}
