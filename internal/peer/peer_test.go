package peer_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/peer"
	"github.com/taktsched/takt/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// directory says that one server owns everything.
type directory struct {
	mu    sync.Mutex
	owner store.Server
	epoch job.Epoch
	local bool
	none  bool

	moves, loading bool // see Coming
	onLook         func(*directory)
}

func (d *directory) Owner(int) (partition.Holder, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return partition.Holder{Server: d.owner, Epoch: d.epoch, Local: d.local}, !d.none
}

func (d *directory) Coming(int) (here, anywhere bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loading, d.loading || d.moves
}

func (d *directory) Look() {
	if d.onLook != nil {
		d.change(d.onLook)
	}
}

func (d *directory) change(f func(*directory)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

const key = "key-of-b"

// serve is a server of the test under a real socket.
func serve(t *testing.T, h http.HandlerFunc) store.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return store.Server{Incarnation: "b-1", Name: "b", Address: s.URL, Key: key}
}

func newPeers(t *testing.T, d *directory, change ...func(*peer.Config)) *peer.Peers {
	t.Helper()
	c := peer.Config{Directory: d, Look: time.Millisecond}
	for _, f := range change {
		f(&c)
	}
	p := peer.New(c)
	t.Cleanup(p.Close)
	return p
}

func target(t *testing.T, p *peer.Peers) peer.Target {
	t.Helper()
	to, elsewhere := p.Elsewhere(3)
	if !elsewhere {
		t.Fatal("nobody owns it elsewhere")
	}
	return to
}

func TestForwardIsUndecodedBothWays(t *testing.T) {
	body := "{ \"b\":1,\t\"a\": \"\\u0000\" }"
	var got *http.Request
	var read string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, read = r, string(b)
		w.Header().Set(peer.HeaderServed, "1")
		w.Header().Set("Takt-Epoch", "8")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, body)
	})
	p := newPeers(t, &directory{owner: s, epoch: 7})
	a, err := p.Forward(t.Context(), target(t, p), peer.Call{Path: "/api/v1/worker/report", Body: []byte(body), Request: "r1", Wait: time.Minute,
		Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer secret"}, "Idempotency-Key": {"k"}, "Cookie": {"c"}}})
	if err != nil || a.Status != http.StatusConflict || string(a.Body) != body || a.Header.Get("Takt-Epoch") != "8" || read != body {
		t.Fatalf("answered %+v, %v; the owner read %q", a, err, read)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", peer.HeaderKey: key, peer.HeaderEpoch: "7", peer.HeaderRole: "worker",
		peer.HeaderRequest: "r1", "Authorization": "", "Idempotency-Key": "", "Cookie": ""} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s is %q at the owner, want %q", name, v, want)
		}
	}
}

// Whatever is at an address: only the server that wrote the row is believed.
func TestWhoAnswersMustBeTheOwner(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"another life of it": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"something else":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "welcome") },
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"an answer cut short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(peer.HeaderServed, "1")
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "half")
		},
	} {
		d := &directory{owner: serve(t, h), epoch: 7}
		p := newPeers(t, d)
		_, err := p.Forward(t.Context(), target(t, p), peer.Call{Path: "/x", Wait: time.Minute})
		if job.KindOf(err) != job.KindNoOwner {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), key) {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
		if p.Reach(t.Context(), d.owner) == nil {
			t.Errorf("%s is reached", name)
		}
	}
	none := &directory{owner: store.Server{Name: "b"}, epoch: 1}
	p := newPeers(t, none)
	if _, err := p.Forward(t.Context(), target(t, p), peer.Call{Wait: time.Minute}); job.KindOf(err) != job.KindNoOwner {
		t.Errorf("a server without an address: %v", err)
	}
}

// hang is a server that takes calls and says nothing until the caller is gone.
func hang(t *testing.T) (store.Server, chan struct{}) {
	began := make(chan struct{}, 8)
	return serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		began <- struct{}{}
		<-r.Context().Done()
	}), began
}

func TestHangingCallsEndWhenTheOwnerChanges(t *testing.T) {
	for name, change := range map[string]func(*directory){
		"another server": func(d *directory) { d.owner.Incarnation = "c-1" },
		"a newer epoch":  func(d *directory) { d.epoch++ },
		"nobody":         func(d *directory) { d.none = true },
		"this one":       func(d *directory) { d.local = true },
	} {
		s, began := hang(t)
		d := &directory{owner: s, epoch: 7}
		p := newPeers(t, d)
		to := target(t, p)
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := p.Forward(context.Background(), to, peer.Call{Path: "/poll", Wait: time.Hour, Hangs: true})
				errs <- err
			}()
		}
		for range 3 {
			<-began
		}
		d.change(change)
		for range 3 {
			if err := <-errs; job.KindOf(err) != job.KindNoOwner {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestHangingCallsEndWhenThisServerStops(t *testing.T) {
	s, began := hang(t)
	p := newPeers(t, &directory{owner: s, epoch: 7})
	errs := make(chan error, 1)
	go func() {
		_, err := p.Forward(context.Background(), peer.Target{Server: s, Epoch: 7}, peer.Call{Wait: time.Hour, Hangs: true})
		errs <- err
	}()
	<-began
	p.Stop()
	if err := <-errs; job.KindOf(err) != job.KindNoOwner {
		t.Error(err)
	}
	if _, err := p.Forward(t.Context(), target(t, p), peer.Call{Wait: time.Hour, Hangs: true}); job.KindOf(err) != job.KindNoOwner {
		t.Errorf("after the stop: %v", err)
	}
}

func TestCallsEndWithTheirCallerAndInTime(t *testing.T) {
	s, began := hang(t)
	p := newPeers(t, &directory{owner: s, epoch: 7})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := p.Forward(ctx, target(t, p), peer.Call{Wait: time.Hour, Hangs: true}); err == nil {
		t.Error("the caller is gone, and the call succeeded")
	}
	if _, err := p.Forward(t.Context(), target(t, p), peer.Call{Wait: time.Millisecond}); job.KindOf(err) != job.KindNoOwner {
		t.Errorf("beyond its time: %v", err)
	}
}

// A server that is slow with the calls that go to it is there all the same: else it would have to sit out.
func TestReachedWhileCallsHang(t *testing.T) {
	const many = 300 // more than there are connections for calls
	began := make(chan struct{}, many)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set(peer.HeaderServed, "1")
		if r.URL.Path != peer.PathPing {
			began <- struct{}{}
			<-r.Context().Done()
		}
	})
	p := newPeers(t, &directory{owner: s, epoch: 7})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			if _, err := p.Forward(ctx, peer.Target{Server: s, Epoch: 7}, peer.Call{Path: "/report", Wait: time.Hour}); err == nil {
				t.Error("a call that hangs was answered")
			}
		})
	}
	for range 256 {
		<-began
	}
	if err := p.Reach(t.Context(), s); err != nil {
		t.Errorf("not reached: %v", err)
	}
	cancel()
	wg.Wait()
}

// A server whose machine is gone takes a connection attempt and never answers it.
func TestConnectingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{owner: store.Server{Address: "http://b:1", Key: key}}
		p := newPeers(t, d, func(c *peer.Config) {
			c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		})
		began := time.Now()
		_, err := p.Forward(t.Context(), target(t, p), peer.Call{Wait: time.Hour})
		if took := time.Since(began); job.KindOf(err) != job.KindNoOwner || took > 2*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// here is this server's part; it answers looks at partition 0.
type here struct{ partition.Owners }

func (h *here) Call(_ context.Context, _ int, _ job.Epoch, ev engine.Event) (partition.Reply, error) {
	look := ev.(engine.Inspect)
	if look.Query.Pool == "broken" {
		return partition.Reply{}, job.Errorf(job.KindNoOwner, "no_owner", "not here")
	}
	clock := -time.Second
	return partition.Reply{Epoch: 9, Value: &engine.Inspected{
		Sessions:  []engine.SessionView{{Session: job.Session{ID: "0.x", Labels: map[string]string{"a": "b"}}, LastBeat: time.Second, Clock: &clock}},
		Execution: &engine.ExecutionView{Waits: []job.Reason{job.WaitBacklog}, Left: []time.Duration{time.Minute}, Row: engine.Row{Execution: job.Execution{Job: "secret"}}},
	}}, nil
}

func TestLooksReachTheOwner(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var l peer.Look
		if err := json.NewDecoder(r.Body).Decode(&l); err != nil || r.URL.Path != peer.PathInspect || r.Header.Get(peer.HeaderRole) != peer.RoleServer {
			t.Errorf("asked %s: %v", r.URL, err)
		}
		w.Header().Set(peer.HeaderServed, "1")
		out, err := peer.Serve(r.Context(), &here{}, 0, l)
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	d := &directory{owner: s, epoch: 7}
	o := peer.Everywhere(&here{}, newPeers(t, d))
	reply, err := o.Call(t.Context(), 3, 0, engine.Inspect{Query: engine.InspectQuery{Execution: job.ExecutionID{1}}})
	if err != nil || reply.Epoch != 9 {
		t.Fatalf("%+v, %v", reply, err)
	}
	v := reply.Value.(*engine.Inspected)
	if v.Execution.Row.Execution.Job != "" {
		t.Error("the rows of an execution travel")
	}
	if x := v.Sessions[0]; x.Session.ID != "0.x" || x.LastBeat != time.Second || *x.Clock != -time.Second || v.Execution.Waits[0] != job.WaitBacklog || v.Execution.Left[0] != time.Minute {
		t.Errorf("seen %+v", v)
	}
	if _, err := o.Call(t.Context(), 3, 0, engine.Inspect{Query: engine.InspectQuery{Pool: "broken"}}); job.KindOf(err) != job.KindNoOwner {
		t.Errorf("an owner that is none: %v", err)
	}
}
