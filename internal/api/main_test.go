package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is what the fake owners answer under.
const epoch = job.Epoch(1_700_000_000_000_000)

var wall = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// owners is a scripted partition.Owners.
type owners struct {
	mu       sync.Mutex
	calls    []engine.Event
	seen     []job.Epoch
	at       []int
	answer   func(ctx context.Context, ev engine.Event) (any, error)
	stats    []partition.Stats
	unready  error
	consumes bool // whether entries are taken in at once
}

func (o *owners) Count() int { return 4 }

func (o *owners) Call(ctx context.Context, p int, seen job.Epoch, ev engine.Event) (partition.Reply, error) {
	o.mu.Lock()
	o.calls, o.seen, o.at = append(o.calls, ev), append(o.seen, seen), append(o.at, p)
	answer := o.answer
	o.mu.Unlock()
	if answer == nil {
		return partition.Reply{}, job.Errorf(job.KindNoOwner, "no_owner", "nobody owns the partition")
	}
	v, err := answer(ctx, ev)
	return partition.Reply{Value: v, Epoch: epoch}, err
}

func (o *owners) Wake(int) {}

// Hand is a wake.
func (o *owners) Hand(p int, _ engine.InboxPage) { o.Wake(p) }

// Expect waits for nothing.
func (o *owners) Expect(int) func() { return func() {} }

func (o *owners) AwaitEntry(ctx context.Context, _ int, _ int64) bool {
	if o.consumes {
		return true
	}
	<-ctx.Done()
	return false
}

func (o *owners) Stats() []partition.Stats { return o.stats }

func (o *owners) Ready() error { return o.unready }

func (o *owners) last(t *testing.T) engine.Event {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.calls) == 0 {
		t.Fatal("no call reached the owner")
	}
	return o.calls[len(o.calls)-1]
}

// rig is a handler over fakes.
type rig struct {
	t       *testing.T
	handler http.Handler
	store   *fakeStore
	owners  *owners
	log     *bytes.Buffer
}

func newRig(t *testing.T, change func(*api.Config)) *rig {
	t.Helper()
	r := &rig{t: t, store: newFakeStore(), owners: &owners{consumes: true}, log: &bytes.Buffer{}}
	for p := range 4 {
		r.owners.stats = append(r.owners.stats, partition.Stats{Partition: p, Owned: true, Epoch: epoch})
	}
	now := func() time.Time { return wall }
	c := api.Config{
		Control: control.New(control.Config{Control: r.store, Reader: r.store, Owners: r.owners, Now: now, EffectWait: time.Millisecond}),
		Owners:  r.owners, Node: r.owners, Store: r.store, Version: "v0-test", LoopbackOnly: true, Now: now,
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	r.handler = api.New(c)
	return r
}

// request is one call; Host defaults to a loopback name, Content-Type to JSON when there is a body.
type request struct {
	method, path, body string
	header             map[string]string
	host               string
}

func (r *rig) do(q request) *httptest.ResponseRecorder {
	r.t.Helper()
	var body io.Reader = http.NoBody
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	h := httptest.NewRequestWithContext(r.t.Context(), q.method, "http://127.0.0.1:7070/", body)
	path, query, _ := strings.Cut(q.path, "?")
	u, err := url.ParseRequestURI("http://127.0.0.1:7070" + path)
	if err != nil {
		r.t.Fatalf("path %q: %v", q.path, err)
	}
	u.RawQuery = query
	h.URL = u
	if q.host != "" {
		h.Host = q.host
	}
	if q.body != "" {
		h.Header.Set("Content-Type", "application/json")
	}
	for k, v := range q.header {
		if v == "" {
			h.Header.Del(k)
			continue
		}
		h.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, h)
	return w
}

// ok does a call that must succeed and decodes its answer.
func ok[T any](r *rig, q request) T {
	r.t.Helper()
	w := r.do(q)
	var v T
	if w.Code/100 != 2 {
		r.t.Fatalf("%s %s: %d %s", q.method, q.path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		r.t.Fatalf("%s %s: %v in %s", q.method, q.path, err, w.Body)
	}
	return v
}

// refused does a call that must be answered by a problem.
func refused(r *rig, q request, status int, code string) takt.Problem {
	r.t.Helper()
	w := r.do(q)
	return isProblem(r.t, w, status, code)
}

func isProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) takt.Problem {
	t.Helper()
	var p takt.Problem
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("Content-Type %q, want a problem; status %d, body %s", ct, w.Code, w.Body)
	}
	if err := d.Decode(&p); err != nil {
		t.Fatalf("not a problem: %v", err)
	}
	if w.Code != status || p.Status != status || p.Code != code {
		t.Fatalf("answered %d (in the body %d) %s: %s, want %d %s", w.Code, p.Status, p.Code, p.Detail, status, code)
	}
	if p.Kind == "" || p.Hint == "" || p.Detail == "" || p.Title == "" || p.Type == "" || p.Instance == "" {
		t.Errorf("incomplete problem %+v", p)
	}
	return p
}
