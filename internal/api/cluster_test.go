package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/peer"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// cluster is several servers on one database. Each of its four partitions has a pool.
type cluster struct {
	t     *testing.T
	store store.Store
	nodes []*node
	apps  []*app.App
	pools [4]string
}

func startCluster(t *testing.T, size int, change ...func(*app.Config)) *cluster {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), Partitions: 4, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{t: t, store: st}
	for i := 0; c.pools[0] == "" || c.pools[1] == "" || c.pools[2] == "" || c.pools[3] == ""; i++ {
		name := fmt.Sprintf("pool-%d", i)
		c.pools[partition.Of("default", name, 4)] = name
	}
	for i := range size {
		c.start(i, change...)
	}
	c.settle()
	return c
}

// start adds a server.
func (c *cluster) start(i int, change ...func(*app.Config)) {
	c.t.Helper()
	cfg := app.Config{Store: c.store, Listen: "127.0.0.1:0", Version: "v0-test", Server: fmt.Sprintf("s%d", i)}
	for _, f := range change {
		f(&cfg)
	}
	a, err := app.New(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	n := &node{t: c.t, base: "http://" + a.Addr()}
	n.stop = sync.OnceFunc(func() {
		stop()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	c.t.Cleanup(n.stop)
	c.nodes, c.apps = append(c.nodes, n), append(c.apps, a)
}

// settle waits until every server knows an owner of every partition; each try is a look of the servers' own.
func (c *cluster) settle() {
	c.t.Helper()
	for range time.Tick(20 * time.Millisecond) {
		known := 0
		for _, a := range c.apps {
			for p := range 4 {
				if _, ok := a.Node().Owner(p); ok {
					known++
				}
			}
		}
		if known == 4*len(c.apps) {
			return
		}
		if c.t.Context().Err() != nil {
			c.t.Fatal("the servers did not find owners")
		}
	}
}

// elsewhere finds a server that does not own a pool's partition, and the one that does.
func (c *cluster) elsewhere(p int) (other, owner int) {
	c.t.Helper()
	other, owner = -1, -1
	for i, a := range c.apps {
		h, ok := a.Node().Owner(p)
		switch {
		case ok && h.Local:
			owner = i
		case ok:
			other = i
		}
	}
	if other < 0 || owner < 0 {
		c.t.Fatalf("partition %d: owner %d, another %d", p, owner, other)
	}
	return other, owner
}

func openBody(pool, worker string) string {
	return `{"namespace":"default","pool":"` + pool + `","worker":"` + worker + `","incarnation":"i-` + worker + `","handlers":["index"],"slots":4,"call":1}`
}

// answered asks until there is an owner: partitions are handed over when servers join, as at the start of a test.
func answered[T any](n *node, method, path, body string, header ...string) T {
	n.t.Helper()
	for {
		status, b := n.ask(method, path, body, header...)
		var v T
		if err := json.Unmarshal(b, &v); status/100 == 2 && err == nil {
			return v
		}
		if status != http.StatusServiceUnavailable || !strings.Contains(string(b), "no_owner") {
			n.t.Errorf("%s %s: %d %s", method, path, status, b)
			return v
		}
	}
}

// Any server takes any call: each call of this run goes to another one.
func TestCallsGoToAnyServer(t *testing.T) {
	c := startCluster(t, 3)
	turn := 0
	next := func() *node { turn++; return c.nodes[turn%3] }
	for p, pool := range c.pools {
		name := jobs + "/j-" + pool
		if j := answered[takt.Job](next(), "PUT", name, strings.Replace(doc(`{"pool":"`+pool+`","handler":"index"}`), "nightly", "j-"+pool, 1)); j.Status.Effect == "" {
			t.Errorf("partition %d: the job is %s", p, j.Status.Effect)
		}
		o := answered[takt.OpenResponse](next(), "POST", work+"open", openBody(pool, "w"))
		head := `{"session":"` + o.Session + `","epoch":` + strconv.FormatInt(o.Epoch, 10) + `,"call":`
		polled := make(chan takt.PollResponse, 1)
		hangs := next()
		go func() {
			polled <- answered[takt.PollResponse](hangs, "POST", work+"poll", head+`2,"number":1,"free":4,"waitMs":20000}`)
		}()
		x := answered[takt.Triggered](next(), "POST", name+"/trigger", "")
		got := <-polled
		if len(got.Assignments) != 1 || got.Assignments[0].Execution != x.Execution || got.Epoch < o.Epoch {
			t.Fatalf("partition %d: polled %+v, triggered %+v", p, got, x)
		}
		token := strconv.FormatInt(got.Assignments[0].Token, 10)
		if b := answered[takt.HeartbeatResponse](next(), "POST", work+"heartbeat", head+`3,"held":[{"token":`+token+`}]}`, takt.SessionHeader, o.Session); len(b.Renewed) != 1 {
			t.Errorf("beat %+v", b)
		}
		for _, n := range c.nodes {
			// without an owner the row alone is shown
			for answered[takt.ShardList](n, "GET", execs+"/"+x.Execution+"/shards", "").Items[0].LeaseLeftMs == 0 {
			}
		}
		r := answered[takt.ReportResponse](next(), "POST", work+"report", head+`4,"items":[{"execution":"`+x.Execution+`","shard":0,"token":`+token+
			`,"seq":1,"kind":"done","outcome":"success"}]}`)
		if len(r.Items) != 1 || r.Items[0] != "accepted" {
			t.Errorf("report %+v", r)
		}
		if e := answered[takt.Execution](next(), "GET", execs+"/"+x.Execution, ""); e.State != "succeeded" {
			t.Errorf("execution %+v", e)
		}
	}
	for _, n := range c.nodes {
		ws := answered[takt.WorkerList](n, "GET", "/api/v1/namespaces/default/workers", "")
		ps := answered[takt.PoolList](n, "GET", "/api/v1/namespaces/default/pools", "")
		if ws.Incomplete == "" && len(ws.Items) != 4 || ps.Incomplete == "" && len(ps.Items) != 4 {
			t.Errorf("one server shows workers %+v, pools %+v", ws, ps)
		}
	}
}

// What the owner refuses comes back as the owner said it, with its epoch.
func TestRefusalsOfTheOwnerComeBack(t *testing.T) {
	c := startCluster(t, 2)
	other, owner := c.elsewhere(0)
	session := "0." + strings.Repeat("ab", 12)
	for name, body := range map[string]string{
		"unknown session": `{"session":"` + session + `","call":2}`,
		"a wrong field":   `{"session":"` + session + `","call":-2}`,
		"a wrong type":    `{"session":"` + session + `","call":"x"}`,
		"a key twice":     `{"session":"` + session + `","call":2,"call":3}`,
		"no JSON":         `{"session":"` + session + `","call":2`,
		"another one":     `{"session":7}`,
	} {
		here, at := c.nodes[owner].refusal(t, work+"heartbeat", body)
		there, from := c.nodes[other].refusal(t, work+"heartbeat", body)
		here.Instance, there.Instance = "", ""
		if here.Code != there.Code || here.Detail != there.Detail || at != from || here.Status != there.Status {
			t.Errorf("%s: the owner says %+v (%s), another server %+v (%s)", name, here, at, there, from)
		}
	}
	if p, _ := c.nodes[other].refusal(t, work+"open", openBody(c.pools[0], strings.Repeat("w", 300))); p.Status != 422 {
		t.Errorf("a long name is answered %+v", p)
	}
}

// hangs waits until a poll hangs at the owner of a partition.
func (c *cluster) hangs(owner, p int) {
	c.t.Helper()
	for {
		reply, err := c.apps[owner].Node().Call(c.t.Context(), p, 0, engine.Inspect{})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, s := range reply.Value.(*engine.Inspected).Sessions {
			if s.Polling {
				return
			}
		}
	}
}

// refusal sends a call that must be refused, and gives the epoch of the answer, too.
func (n *node) refusal(t *testing.T, path, body string, header ...string) (takt.Problem, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), "POST", n.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var p takt.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.StatusCode/100 == 2 {
		t.Fatalf("%s: answered %d (%v)", body, resp.StatusCode, err)
	}
	return p, resp.Header.Get(takt.EpochHeader)
}

// A body that is too large is refused where it arrives; a large one goes through.
func TestLargeBodiesArePassedOn(t *testing.T) {
	c := startCluster(t, 2)
	other, _ := c.elsewhere(1)
	o := asked[takt.OpenResponse](c.nodes[other], "POST", work+"open", openBody(c.pools[1], "w"))
	item := `{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"done","outcome":"success","result":"` + strings.Repeat("x", 250<<10) + `"}`
	body := `{"session":"` + o.Session + `","call":2,"items":[` + strings.Repeat(item+",", 39) + item + `]}`
	if r := asked[takt.ReportResponse](c.nodes[other], "POST", work+"report", body); len(r.Items) != 40 {
		t.Errorf("%d answers to 40 items", len(r.Items))
	}
	p, _ := c.nodes[other].refusal(t, work+"poll", `{"session":"`+o.Session+`","x":"`+strings.Repeat("x", 2<<20)+`"}`)
	if p.Code != "body_too_large" {
		t.Errorf("answered %+v", p)
	}
}

// The marks of a hop are worth nothing without the key: the call is judged as anybody's, and goes no further.
func TestForgedHops(t *testing.T) {
	dir := t.TempDir()
	people, workers := writeToken(t, dir, "people"), writeToken(t, dir, "workers")
	c := startCluster(t, 2, func(cfg *app.Config) { cfg.TokenFile, cfg.WorkerTokenFile = people, workers })
	other, owner := c.elsewhere(2)
	hop := []string{peer.HeaderEpoch, "1", peer.HeaderRole, peer.RoleWorker, peer.HeaderKey}
	bearer := []string{"Authorization", "Bearer workers"}
	body := openBody(c.pools[2], "w")
	rows, err := c.store.(store.Servers).Servers(t.Context())
	if err != nil || len(rows) != 2 {
		t.Fatalf("servers %+v, %v", rows, err)
	}
	key := map[string]string{}
	for _, r := range rows {
		key[r.Address] = r.Key
	}
	own, foreign := key[c.nodes[owner].base], key[c.nodes[other].base]
	if own == foreign || len(own) < 32 {
		t.Fatalf("keys %q and %q", own, foreign)
	}
	at, from := c.nodes[owner], c.nodes[other]
	for _, bad := range []string{"", "x", foreign, own + "x", strings.ToUpper(own)} {
		if p, _ := at.refusal(t, work+"open", body, append(hop, bad)...); p.Code != "token_required" {
			t.Errorf("key %q instead of a token: %+v", bad, p)
		}
		if p, _ := at.refusal(t, peer.PathStats, "", append(append(hop, bad), "Authorization", "Bearer people")...); p.Code != "unknown_path" {
			t.Errorf("key %q for what servers ask: %+v", bad, p)
		}
	}
	if p, _ := from.refusal(t, work+"open", body, append(append(hop, "x"), bearer...)...); p.Code != "no_owner" {
		t.Errorf("a call that says it was passed on is passed on: %+v", p)
	}
	// The right key speaks for its role alone.
	for path, role := range map[string]string{jobs: peer.RoleWorker, peer.PathStats: peer.RoleWorker, work + "poll": peer.RoleServer, work + "open": "people"} {
		p, _ := at.refusal(t, path, "", peer.HeaderEpoch, "1", peer.HeaderKey, own, peer.HeaderRole, role)
		if p.Code != "token_required" {
			t.Errorf("%s as %s: %+v", path, role, p)
		}
	}
	asked[takt.OpenResponse](at, "POST", work+"open", body, append(hop, own)...)
	if p, _ := from.refusal(t, work+"open", body, peer.HeaderEpoch, "1", peer.HeaderRole, peer.RoleWorker, peer.HeaderKey, foreign); p.Code != "no_owner" {
		t.Errorf("passed on twice: %+v", p)
	}
	asked[takt.OpenResponse](from, "POST", work+"open", body, bearer...)
	if p, _ := from.refusal(t, work+"open", body, "Authorization", "Bearer people"); p.Code != "token_of_people" {
		t.Errorf("people's token: %+v", p)
	}
}

// Who stops tells the polls that hang at it through others; they, and the rest, go on, on whatever server.
func TestPollsEndWithTheirOwner(t *testing.T) {
	c := startCluster(t, 2)
	other, owner := c.elsewhere(3)
	from := c.nodes[other]
	o := asked[takt.OpenResponse](from, "POST", work+"open", openBody(c.pools[3], "w"))
	head := `{"session":"` + o.Session + `","epoch":` + strconv.FormatInt(o.Epoch, 10) + `,"call":`
	ended := make(chan []byte, 1)
	go func() {
		_, b := from.ask("POST", work+"poll", head+`2,"number":1,"free":4,"waitMs":1000}`)
		ended <- b
	}()
	c.hangs(owner, 3)
	began := time.Now()
	c.nodes[owner].stop()
	// It goes on with the next owner, or was refused: that depends on for how long it had hung.
	var p struct {
		Code  string
		Epoch int64
	}
	if err := json.Unmarshal(<-ended, &p); err != nil || p.Code != "no_owner" && p.Epoch <= o.Epoch {
		t.Errorf("the poll ended with %+v, %v", p, err)
	}
	c.apps = []*app.App{c.apps[other]}
	c.settle()
	for {
		status, b := from.ask("POST", work+"heartbeat", head+`3,"held":[]}`)
		if status == http.StatusOK {
			break
		}
		if !strings.Contains(string(b), "no_owner") {
			t.Fatalf("beat %d %s", status, b)
		}
	}
	t.Logf("the session goes on after %s", time.Since(began))
}

func writeToken(t *testing.T, dir, token string) string {
	t.Helper()
	file := filepath.Join(dir, token)
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
