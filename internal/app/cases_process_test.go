package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// TestC33OrderlyShutdown on real processes, with all times divided by about ten: SIGTERM under a run that fits into the
// drain and one that does not.
func TestC33OrderlyShutdown(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent SIGTERM here")
	}
	t.Parallel()
	const drain, fits, later = 10 * time.Second, 8 * time.Second, 10 * time.Minute // fits is longer than a lease
	c := muster(t)
	c.job("j")
	w1 := c.worker("w1", 2, drain)
	short, long := c.trigger("j", fits), c.trigger("j", later)
	until(t, "both run", func() bool { return c.count("began", "w1") == 2 })
	if err := w1.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	told := time.Now()
	c.worker("w2", 2, drain)
	next := c.trigger("j", 0)
	if _, s := c.ended(next); s.Worker != "w2" {
		t.Errorf("what was asked for after SIGTERM ran on %s", s.Worker)
	}
	if err := w1.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
	if took := time.Since(told); took < drain {
		t.Errorf("the worker ended after %v, before the drain of %v was over", took, drain)
	}
	if e, s := c.ended(short); e.State != "succeeded" || s.Attempt != 1 || s.Worker != "w1" || s.Losses+s.Faults > 0 {
		t.Errorf("the run that fits: %s on %s, attempt %d, %d losses", e.State, s.Worker, s.Attempt, s.Losses)
	}
	e, s := c.ended(long)
	if e.State != "succeeded" || s.Worker != "w2" || s.Attempt != 2 || s.Losses+s.Faults > 0 || s.Attempts[0].State != "released" {
		t.Fatalf("the run that does not: %s on %s, %+v", e.State, s.Worker, s)
	}
	// Leased elsewhere within 2P of the hand-over, not after the lease.
	var stopped, again time.Time
	for _, x := range c.seen() {
		switch {
		case x.Key == s.Key && x.What == "stopped":
			stopped = x.At
		case x.Key == s.Key && x.What == "began":
			again = x.At
		}
	}
	const p = 5 * time.Second
	if gap := again.Sub(stopped); stopped.IsZero() || gap < 0 || gap > 2*p {
		t.Errorf("it ran elsewhere %v after it was handed back", gap)
	}
	if n := c.count("began", "w1"); n != 2 {
		t.Errorf("w1 began %d runs", n)
	}
}

// TestC33RollingRestart: three worker processes are restarted one after the other, three times over, under 200 runs.
func TestC33RollingRestart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent SIGTERM here")
	}
	t.Parallel()
	const runs, each = 200, 300 * time.Millisecond
	c := muster(t)
	c.job("j")
	workers := make([]*exec.Cmd, 3)
	for i := range workers {
		workers[i] = c.worker(fmt.Sprint("w", i), 4, time.Minute)
	}
	var ids []string
	for range runs {
		ids = append(ids, c.trigger("j", each))
	}
	until(t, "they run", func() bool { return len(c.seen()) > 0 })
	for round := range 3 {
		for i := range workers {
			c.ends(workers[i])
			workers[i] = c.worker(fmt.Sprintf("w%d.%d", i, round), 4, time.Minute)
		}
	}
	for _, id := range ids {
		if e, s := c.ended(id); e.State != "succeeded" || s.Faults+s.Losses > 0 {
			t.Errorf("%s: %s after %d faults and %d losses", id, e.State, s.Faults, s.Losses)
		}
	}
	done, tokens := map[string]int{}, map[string]int64{}
	for _, x := range c.seen() {
		switch x.What {
		case "done":
			done[x.Key]++
		case "began":
			if x.Token <= tokens[x.Key] {
				t.Errorf("%s began again under token %d after %d", x.Key, x.Token, tokens[x.Key])
			}
			tokens[x.Key] = x.Token
		}
	}
	if len(done) != runs {
		t.Errorf("%d runs were done, want %d", len(done), runs)
	}
	for key, n := range done {
		if n != 1 {
			t.Errorf("%s was done %d times", key, n)
		}
	}
}

// tap records the calls of workers on their way to the server.
type tap struct {
	mu       sync.Mutex
	calls    map[string][][]byte // by the last word of the path
	answered map[string]int      // how many of them the server has taken in
}

func newTap(t *testing.T, server string) (*tap, string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{calls: map[string][][]byte{}, answered: map[string]int{}}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusBadGateway) // a worker was killed
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		word := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		p.calls[word] = append(p.calls[word], body)
		p.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
		p.mu.Lock()
		p.answered[word]++
		p.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	return p, s.URL
}

// of lists the calls of a kind so far.
func (p *tap) of(word string) [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]byte(nil), p.calls[word]...)
}

// taken is how many calls of a kind the server has answered so far.
func (p *tap) taken(word string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered[word]
}

// replay sends a captured call to the server.
func replay(t *testing.T, server, word string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/api/v1/worker/"+word, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestC31KilledProcess: kill -9 of a worker process and another one under the same name at once; what the dead one, and
// one before it, had said is said again and does nothing.
func TestC31KilledProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent SIGTERM here")
	}
	t.Parallel()
	c := muster(t)
	server := "http://" + strings.TrimPrefix(c.server, "http://")
	tapped, address := newTap(t, server)
	c.server = address
	c.job("j")
	first := c.worker("w1", 2, 0)
	c.ended(c.trigger("j", 0)) // its result is captured
	c.ends(first)              // and its farewell
	second := c.worker("w1", 1, 0)
	id := c.trigger("j", time.Hour)
	until(t, "it runs, and a beat names it", func() bool {
		beats := tapped.of("heartbeat")
		return c.count("began", "w1") == 2 && len(beats) > 0 && bytes.Contains(beats[len(beats)-1], []byte(`"token"`))
	})
	if err := second.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = second.Wait() // killed
	beats, reports, farewells := tapped.of("heartbeat"), tapped.of("report"), tapped.of("close")
	c.worker("w1", 1, 0)
	until(t, "the new process is there", func() bool { return tapped.taken("open") == 3 })
	say := func(when string, farewells ...[]byte) {
		t.Helper()
		for _, body := range beats {
			if code, text := replay(t, server, "heartbeat", body); code == http.StatusOK && strings.Contains(text, `"renewed":[`) {
				t.Errorf("%s an old beat renewed: %s", when, text)
			}
		}
		for _, body := range farewells {
			if code, text := replay(t, server, "close", body); code >= 500 {
				t.Errorf("%s an old farewell: %d %s", when, code, text)
			}
		}
		for _, body := range reports {
			replay(t, server, "report", body) // its fate is known by what becomes of the execution
		}
	}
	say("before the shard is leased again,", farewells...)
	e, s := c.ended(id)
	say("afterwards,", append(farewells, farewell(t, beats[len(beats)-1]))...)
	if e.State != "succeeded" || s.Attempt != 2 || s.Worker != "w1" || s.Attempts[1].Token <= s.Attempts[0].Token {
		t.Errorf("%s after %+v", e.State, s.Attempts)
	}
	workers, err := c.client.Workers(t.Context(), "p")
	if err != nil || len(workers.Items) != 1 || workers.Items[0].Name != "w1" {
		t.Errorf("after an old farewell there are %+v, %v", workers.Items, err)
	}
	if e, _ := c.ended(c.trigger("j", 0)); e.State != "succeeded" {
		t.Errorf("the next run: %s", e.State)
	}
}

// farewell is the close that the session of a beat never sent.
func farewell(t *testing.T, beat []byte) []byte {
	t.Helper()
	var b takt.HeartbeatRequest
	if err := json.Unmarshal(beat, &b); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(takt.CloseRequest{Session: b.Session, Epoch: b.Epoch, Call: b.Call + 1})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
