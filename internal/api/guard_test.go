package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/job"
)

func TestToken(t *testing.T) {
	r := newRig(t, func(c *api.Config) { c.Token, c.LoopbackOnly = "s3cret", false })
	for _, path := range []string{jobs, "/api/v1/stats", "/api/v1/openapi.json", "/nowhere", work + "poll"} {
		for given, code := range map[string]string{"": "token_required", "Bearer": "token_wrong", "Bearer wrong": "token_wrong", "s3cret": "token_wrong",
			"Basic s3cret": "token_wrong", "Bearer s3cre": "token_wrong", "Bearer s3crett": "token_wrong", "Bearer  s3cret": "token_wrong"} {
			w := r.do(with(get(path), "Authorization", given))
			if w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s %q: no WWW-Authenticate", path, given)
			}
			if p := isProblem(t, w, 401, code); p.Errors[0].Field != "header.Authorization" || p.Kind != "unauthorized" {
				t.Errorf("%s %q: %+v", path, given, p)
			}
		}
	}
	for _, given := range []string{"Bearer s3cret", "bearer s3cret"} {
		ok[takt.JobList](r, with(request{method: "GET", path: jobs, host: "takt.example.com"}, "Authorization", given))
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if w := r.do(get(path)); w.Code != http.StatusOK {
			t.Errorf("%s without a token: %d", path, w.Code)
		}
	}
	twice := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+jobs, http.NoBody)
	twice.Header["Authorization"] = []string{"Bearer s3cret", "Bearer wrong"}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, twice)
	isProblem(t, w, 400, "bad_header")
}

// With two tokens each is refused where the other belongs; both may read what is no secret to either.
func TestTokensApart(t *testing.T) {
	r := newRig(t, func(c *api.Config) { c.Token, c.WorkerToken = "pe0ple", "w0rkers" })
	for _, c := range []struct {
		path, token string
		status      int
		code        string // "": no problem of the guard
	}{
		{jobs, "pe0ple", 200, ""}, {"/api/v1/stats", "pe0ple", 200, ""}, {"/api/v1/openapi.json", "pe0ple", 200, ""}, {"/api/v1/openapi.json", "w0rkers", 200, ""},
		{jobs, "w0rkers", 403, "token_of_workers"}, {"/api/v1/stats", "w0rkers", 403, "token_of_workers"}, {"/nowhere", "w0rkers", 403, "token_of_workers"},
		{work + "poll", "pe0ple", 403, "token_of_people"}, {work + "nothing", "pe0ple", 403, "token_of_people"}, {work + "poll", "w0rkers", 405, "method_not_allowed"},
		{jobs, "pe0pl", 401, "token_wrong"}, {work + "poll", "w0rkerss", 401, "token_wrong"}, {"/api/v1/worker", "w0rkers", 403, "token_of_workers"},
	} {
		w := r.do(with(get(c.path), "Authorization", "Bearer "+c.token))
		if c.code == "" {
			if w.Code != c.status {
				t.Errorf("%s with %s: %d", c.path, c.token, w.Code)
			}
			continue
		}
		isProblem(t, w, c.status, c.code)
	}
}

func TestHostWithoutToken(t *testing.T) {
	r := newRig(t, func(c *api.Config) { c.Hosts = []string{"takt.lan:7070", "box"} })
	for host, allowed := range map[string]bool{
		"localhost": true, "localhost:7070": true, "LOCALHOST:1": true, "127.0.0.1": true, "127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:7070": true, "[::1]": true,
		"takt.lan:7070": true, "takt.lan:81": false, "box": true, "box:9": true,
		"evil.example.com": false, "localhost.evil.example.com": false, "127.0.0.1.evil.example.com": false, "10.0.0.1": false, "[::2]:80": false,
		"0.0.0.0:7070": false, "2130706433": false, "localhost:7070@evil": false,
	} {
		for _, path := range []string{jobs, "/healthz"} {
			w := r.do(request{method: "GET", path: path, host: host})
			if allowed && w.Code != http.StatusOK {
				t.Errorf("host %q %s: %d", host, path, w.Code)
			}
			if !allowed {
				if p := isProblem(t, w, 403, "host_not_allowed"); p.Errors[0].Field != "header.Host" {
					t.Errorf("host %q: %+v", host, p)
				}
			}
		}
	}
}

func TestOtherSitesPages(t *testing.T) {
	for _, token := range []string{"", "s3cret"} {
		r := newRig(t, func(c *api.Config) { c.Token = token })
		for _, c := range []struct {
			header, value string
			allowed       bool
		}{
			{"Origin", "http://127.0.0.1:7070", true}, {"Origin", "https://127.0.0.1:7070", true},
			{"Origin", "http://127.0.0.1:3000", false}, {"Origin", "http://localhost:7070", false}, {"Origin", "https://evil.example.com", false},
			{"Origin", "null", false}, {"Origin", "file://", false}, {"Origin", "127.0.0.1:7070", false}, {"Origin", "http://127.0.0.1:7070.evil.example.com", false},
			{"Sec-Fetch-Site", "same-origin", true}, {"Sec-Fetch-Site", "none", true},
			{"Sec-Fetch-Site", "cross-site", false}, {"Sec-Fetch-Site", "same-site", false},
		} {
			w := r.do(with(with(get("/healthz"), c.header, c.value), "Authorization", "Bearer s3cret"))
			if c.allowed && w.Code != http.StatusOK {
				t.Errorf("%s: %s: %d", c.header, c.value, w.Code)
			}
			if !c.allowed {
				if p := isProblem(t, w, 403, "cross_site"); p.Errors[0].Field != "header."+c.header {
					t.Errorf("%s: %s: %+v", c.header, c.value, p)
				}
			}
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("CORS header %s", name)
				}
			}
		}
	}
}

func TestHealth(t *testing.T) {
	stopping := false
	r := newRig(t, func(c *api.Config) { c.Stopping = func() bool { return stopping } })
	if w := r.do(get("/readyz")); w.Code != http.StatusOK || w.Body.String() != "ready\n" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("ready: %d %q %s", w.Code, w.Body, w.Header().Get("Content-Type"))
	}
	r.owners.unready = errors.New("partition 2 has no owner that is ready")
	refused(r, get("/readyz"), 503, "partitions_not_owned")
	r = newRig(t, func(c *api.Config) { c.Stopping = func() bool { return stopping } })
	r.owners.stats[2].Owned = false // another server has it
	if w := r.do(get("/readyz")); w.Code != http.StatusOK {
		t.Errorf("the node is ready: %d %q", w.Code, w.Body)
	}
	r = newRig(t, func(c *api.Config) { c.Stopping = func() bool { return stopping } })
	r.store.fails = errors.New("disk on fire")
	if p := refused(r, get("/readyz"), 503, "store_unavailable"); strings.Contains(p.Detail, "fire") {
		t.Errorf("leaks: %+v", p)
	}
	stopping = true
	refused(r, get("/readyz"), 503, "stopping")
	if w := r.do(get("/healthz")); w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Errorf("alive: %d %q", w.Code, w.Body)
	}
}

// Each request leaves one debug line with the id that its answer carries, and no value of it.
func TestRequestLog(t *testing.T) {
	r := newRig(t, nil)
	w := r.do(with(get(jobs+"?after="+secret), "Idempotency-Key", secret))
	line := r.log.String()
	for _, want := range []string{"level=DEBUG", "request=" + w.Header().Get("X-Request-Id"), "status=200", "method=GET", `route="GET /api/v1/namespaces/{ns}/jobs"`} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
	if strings.Count(line, "\n") != 1 || strings.Contains(line, secret) {
		t.Errorf("log: %s", line)
	}
}

func TestMethodsAndStats(t *testing.T) {
	r := newRig(t, nil)
	w := r.do(request{method: "PATCH", path: one})
	if got := w.Header().Get("Allow"); got != "DELETE, GET, HEAD, PUT" {
		t.Errorf("Allow %q", got)
	}
	if w := r.do(request{method: "HEAD", path: jobs}); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
	r.owners.stats[1].Commits = 12
	s := ok[takt.Stats](r, get("/api/v1/stats"))
	if s.Version != "v0-test" || len(s.Partitions) != 4 || s.Partitions[1].Commits != 12 || !s.Partitions[1].Owned || s.Partitions[0].Epoch != int64(epoch) {
		t.Errorf("stats %+v", s)
	}
	r.store.fails = job.Errorf(job.KindUnavailable, "store_unavailable", "the database is away").WithCause(errors.New(secret))
	w = r.do(get(one))
	raw := w.Body.String()
	isProblem(t, w, 503, "store_unavailable")
	if strings.Contains(raw, secret) || !strings.Contains(r.log.String(), secret) {
		t.Errorf("the cause belongs into the log alone: %s", raw)
	}
}
