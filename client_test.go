package takt

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// desk is a scripted server of people's calls.
type desk struct {
	mu     sync.Mutex
	script []func(http.ResponseWriter, *http.Request) // used up in order; the last one stays
	asked  []string                                   // "METHOD path?query If-Match Idempotency-Key body"
}

func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	d.asked = append(d.asked, strings.Join(strings.Fields(strings.Join([]string{r.Method, r.URL.RequestURI(),
		r.Header.Get("If-Match"), r.Header.Get("Idempotency-Key"), string(body)}, " ")), " "))
	say := d.script[0]
	if len(d.script) > 1 {
		d.script = d.script[1:]
	}
	d.mu.Unlock()
	rec := &recorder{header: http.Header{}, status: 200}
	say(rec, r)
	if rec.status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: rec.status, Status: http.StatusText(rec.status), Header: rec.header,
		Body: io.NopCloser(strings.NewReader(rec.body.String())), Request: r}, nil
}

type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func say(status int, body string, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func problem(status int, kind, code string) func(http.ResponseWriter, *http.Request) {
	b, err := json.Marshal(Problem{Status: status, Kind: kind, Code: code, Detail: "no", Hint: "do it"})
	if err != nil {
		panic(err)
	}
	return say(status, string(b))
}

func newDesk(t *testing.T, cfg ClientConfig, script ...func(http.ResponseWriter, *http.Request)) (*desk, *Client) {
	t.Helper()
	d := &desk{script: script}
	cfg.HTTPClient = &http.Client{Transport: d}
	cfg.Server = firstOf(cfg.Server, "desk:1")
	cfg.Jitter = func(upTo time.Duration) time.Duration { return upTo / 2 }
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

func TestClientPaths(t *testing.T) {
	ctx := t.Context()
	tests := []struct {
		want string
		call func(*Client) error
	}{
		{"GET /api/v1/namespaces/team/jobs?after=x&limit=5", func(c *Client) error { _, err := c.Jobs(ctx, Page{"x", 5}); return err }},
		{"GET /api/v1/namespaces/team/jobs/a%2Fb", func(c *Client) error { _, err := c.Job(ctx, "a/b"); return err }},
		{`PUT /api/v1/namespaces/team/jobs/j {"apiVersion":"","kind":"","metadata":{"name":"j"},"spec":{"pool":"p","handler":"h"}}`,
			func(c *Client) error {
				_, err := c.PutJob(ctx, Job{Metadata: JobMetadata{Name: "j"}, Spec: JobSpec{Pool: "p", Handler: "h"}}, PutOptions{})
				return err
			}},
		{`PUT /api/v1/namespaces/team/jobs/j "3" {"apiVersion":"","kind":"","metadata":{"name":"j"},"spec":{"pool":"","handler":""}}`,
			func(c *Client) error {
				_, err := c.PutJob(ctx, Job{Metadata: JobMetadata{Name: "j"}}, PutOptions{IfRevision: 3})
				return err
			}},
		{`POST /api/v1/namespaces/team/jobs/j/trigger k {"params":{"n":5}}`, func(c *Client) error {
			_, err := c.Trigger(ctx, "j", TriggerOptions{Params: map[string]int{"n": 5}, IdempotencyKey: "k"})
			return err
		}},
		{"GET /api/v1/namespaces/team/executions?after=a&job=j&limit=2&pool=p&state=failed", func(c *Client) error {
			_, err := c.Executions(ctx, ExecutionQuery{Job: "j", Pool: "p", State: "failed", Page: Page{"a", 2}})
			return err
		}},
		{"GET /api/v1/namespaces/team/executions/e", func(c *Client) error { _, err := c.Execution(ctx, "e"); return err }},
		{"GET /api/v1/namespaces/team/executions/e/shards", func(c *Client) error { _, err := c.Shards(ctx, "e", Page{}); return err }},
		{`POST /api/v1/namespaces/team/executions/e/cancel {"note":"why"}`, func(c *Client) error { _, err := c.Cancel(ctx, "e", "why"); return err }},
		{"POST /api/v1/namespaces/team/executions/e/rerun {}", func(c *Client) error { _, err := c.Rerun(ctx, "e", ""); return err }},
		{"GET /api/v1/namespaces/team/decisions?job=j", func(c *Client) error { _, err := c.Decisions(ctx, "j", Page{}); return err }},
		{"GET /api/v1/namespaces/team/workers?pool=p", func(c *Client) error { _, err := c.Workers(ctx, "p"); return err }},
		{"GET /api/v1/namespaces/team/pools", func(c *Client) error { _, err := c.Pools(ctx); return err }},
		{"GET /api/v1/stats", func(c *Client) error { _, err := c.Stats(ctx); return err }},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			d, c := newDesk(t, ClientConfig{Namespace: "team", Token: "secret"}, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
				}
				say(200, "{}")(w, r)
			})
			if err := tt.call(c); err != nil {
				t.Fatal(err)
			}
			if len(d.asked) != 1 || d.asked[0] != tt.want {
				t.Errorf("asked %q", d.asked)
			}
		})
	}
}

func TestClientErrors(t *testing.T) {
	all := []error{ErrInvalid, ErrUnauthorized, ErrForbidden, ErrNotFound, ErrConflict, ErrTooLarge, ErrUnavailable, ErrInternal}
	tests := []struct {
		name string
		say  func(http.ResponseWriter, *http.Request)
		want error
		code string
	}{
		{"invalid", problem(422, "invalid", "bad_cron"), ErrInvalid, "bad_cron"},
		{"unauthorized", problem(401, "unauthorized", "no_token"), ErrUnauthorized, "no_token"},
		{"forbidden", problem(403, "forbidden", "cross_site"), ErrForbidden, "cross_site"},
		{"not found", problem(404, "not_found", "job_not_found"), ErrNotFound, "job_not_found"},
		{"conflict", problem(409, "conflict", "changed"), ErrConflict, "changed"},
		{"too large", problem(413, "too_large", "too_large"), ErrTooLarge, "too_large"},
		{"no owner", problem(503, "no_owner", "no_owner"), ErrUnavailable, "no_owner"},
		{"internal", problem(500, "internal", "internal"), ErrInternal, "internal"},
		{"a proxy's page", say(502, "<html>bad gateway</html>"), ErrUnavailable, "unavailable"},
		{"a proxy's login", say(401, "who are you"), ErrUnauthorized, "unauthorized"},
		{"another server", say(404, `{"error":"nothing here"}`), ErrNotFound, "not_found"},
		{"unreachable", say(0, ""), ErrUnavailable, "unreachable"},
		{"not JSON", say(200, "<html>"), ErrUnavailable, "unreachable"},
		{"too long", say(200, `{"id":"`+strings.Repeat("x", 1000)+`"}`), ErrUnavailable, "unreachable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newDesk(t, ClientConfig{RetryFor: -1}, tt.say)
			c.x.most = 1000
			_, err := c.Execution(t.Context(), "e")
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Problem.Code != tt.code {
				t.Fatalf("got %v", err)
			}
			for _, sentinel := range all {
				if errors.Is(err, sentinel) != errors.Is(sentinel, tt.want) {
					t.Errorf("errors.Is(%v, %v) is wrong", err, sentinel)
				}
			}
			if !strings.HasPrefix(err.Error(), "takt: get execution e: ") || len(err.Error()) > 500 {
				t.Errorf("the text is %.200q", err.Error())
			}
		})
	}
}

func TestClientRetries(t *testing.T) {
	busy := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		problem(503, "unavailable", "store_unavailable")(w, r)
	}
	ok := say(200, `{"execution":"e1"}`)
	trigger := func(key string) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error {
			got, err := c.Trigger(ctx, "j", TriggerOptions{IdempotencyKey: key})
			if err == nil && got.Execution != "e1" {
				return errors.New("the answer is lost")
			}
			return err
		}
	}
	many := func(keys ...string) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error {
			var items []TriggerItem
			for _, k := range keys {
				items = append(items, TriggerItem{Job: "j", Key: k})
			}
			_, err := c.TriggerMany(ctx, items)
			return err
		}
	}
	get := func(ctx context.Context, c *Client) error { _, err := c.Job(ctx, "j"); return err }
	cancel := func(ctx context.Context, c *Client) error { _, err := c.Cancel(ctx, "e", ""); return err }
	put := func(rev int64) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error {
			_, err := c.PutJob(ctx, Job{}, PutOptions{IfRevision: rev})
			return err
		}
	}
	tests := []struct {
		name  string
		call  func(context.Context, *Client) error
		says  []func(http.ResponseWriter, *http.Request)
		calls int
		want  error
		least time.Duration
	}{
		{"get", get, []func(http.ResponseWriter, *http.Request){busy, say(0, ""), ok}, 3, nil, time.Second},
		{"trigger with a key", trigger("k"), []func(http.ResponseWriter, *http.Request){busy, say(0, ""), ok}, 3, nil, time.Second},
		{"trigger without a key", trigger(""), []func(http.ResponseWriter, *http.Request){busy, ok}, 2, nil, time.Second},
		{"many triggers with keys", many("a", "b"), []func(http.ResponseWriter, *http.Request){busy, ok}, 2, nil, time.Second},
		{"many triggers, one without a key", many("a", ""), []func(http.ResponseWriter, *http.Request){busy, ok}, 1, ErrUnavailable, 0},
		{"guarded put", put(3), []func(http.ResponseWriter, *http.Request){busy, ok}, 2, nil, time.Second},
		{"blind put", put(0), []func(http.ResponseWriter, *http.Request){busy, ok}, 1, ErrUnavailable, 0},
		{"cancel", cancel, []func(http.ResponseWriter, *http.Request){busy, ok}, 1, ErrUnavailable, 0},
		{"a definite answer", get, []func(http.ResponseWriter, *http.Request){problem(404, "not_found", "x")}, 1, ErrNotFound, 0},
		{"never back", get, []func(http.ResponseWriter, *http.Request){busy}, 0, ErrUnavailable, 12 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, c := newDesk(t, ClientConfig{}, tt.says...)
				began := time.Now()
				err := tt.call(t.Context(), c)
				if !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if took := time.Since(began); took < tt.least || took > 16*time.Second {
					t.Errorf("it took %v", took)
				}
				if tt.calls > 0 && len(d.asked) != tt.calls {
					t.Errorf("asked %d times, want %d", len(d.asked), tt.calls)
				}
				for _, a := range d.asked {
					if a != d.asked[0] {
						t.Errorf("asked again in other words: %q, %q", d.asked[0], a)
					}
				}
			})
		})
	}
}

func TestWhatWasNeverSentIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		c, err := NewClient(ClientConfig{Server: "a", HTTPClient: &http.Client{Transport: tripper(func(*http.Request) (*http.Response, error) {
			if tries++; tries < 3 {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Rerun(t.Context(), "e", ""); err != nil || tries != 3 {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}

// TestSilentServer: a worker's call that gets no answer in time goes to the next server.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, err := newExchange("a", []string{"b"}, "", "")
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "a" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
		})}
		ask := func(cause error) error {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			defer cancel()
			return x.do(ctx, client, request{op: "ask", method: "GET", path: "/"}, nil)
		}
		if err := ask(errRepoll); !errors.Is(err, errRepoll) {
			t.Fatal(err)
		}
		if err := ask(errCallTimeout); !errors.Is(err, errCallTimeout) {
			t.Fatalf("the worker itself dropped the call, and it went to another server: %v", err)
		}
		if err := ask(nil); err != nil {
			t.Fatal(err)
		}
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTriggerDrawsAKey(t *testing.T) {
	d, c := newDesk(t, ClientConfig{}, say(200, "{}"))
	for range 2 {
		if _, err := c.Trigger(t.Context(), "j", TriggerOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if d.asked[0] == d.asked[1] || len(strings.Fields(d.asked[0])) != 4 {
		t.Errorf("keys are not drawn: %q", d.asked)
	}
}

func TestNextServer(t *testing.T) {
	hosts := map[string]int{}
	_, c := newDesk(t, ClientConfig{Server: "http://a", Servers: []string{"b:1", "https://c/base/"}}, func(w http.ResponseWriter, r *http.Request) {
		hosts[r.URL.Scheme+" "+r.URL.Host+" "+r.URL.Path]++
		status := 0
		if r.URL.Host == "c" {
			status = 200
		}
		say(status, "{}")(w, r)
	})
	for range 3 {
		if _, err := c.Stats(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(hosts) != 3 || hosts["http a /api/v1/stats"] != 1 || hosts["http b:1 /api/v1/stats"] != 1 || hosts["https c /base/api/v1/stats"] != 3 {
		t.Errorf("asked %v", hosts)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := newDesk(t, ClientConfig{RetryFor: -1}, say(200, `{"state":"queued"}`), say(0, ""), say(200, `{"state":"running"}`),
			say(200, `{"state":"partially_succeeded"}`))
		e, err := c.Wait(t.Context(), "e")
		if err != nil || e.State != "partially_succeeded" || len(d.asked) != 4 {
			t.Errorf("got %+v, %v after %d questions", e, err, len(d.asked))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d, c := newDesk(t, ClientConfig{}, say(200, `{"state":"running"}`))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Wait(ctx, "e"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if n := len(d.asked); n < 25 || n > 60 {
			t.Errorf("%d questions in a minute", n)
		}
	})
	_, c := newDesk(t, ClientConfig{}, problem(404, "not_found", "execution_not_found"))
	if _, err := c.Wait(t.Context(), "e"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestBadAddresses(t *testing.T) {
	for _, s := range []string{"", "ftp://x", "http://", "http://[::1"} {
		if _, err := NewClient(ClientConfig{Server: s}); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}
