//go:build unix

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
)

// leak is what no error may show: the services of these tests say it wherever they can.
const leak = "SECRET-OF-THE-SERVICE"

func TestHTTPOutcomes(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only then
		switch path := r.URL.Path; path {
		case "/retry-after":
			if n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(503)
			}
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<10))); err != nil {
					return
				}
			}
		case "/endless-head":
			conn, _, err := http.NewResponseController(w).Hijack()
			must(err)
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(conn, "X-"+leak+": x\r\n")
			}
		case "/no-http":
			conn, _, err := http.NewResponseController(w).Hijack()
			must(err)
			_, _ = io.WriteString(conn, leak+"\r\n\r\n")
			_ = conn.Close()
		case "/slow":
			<-r.Context().Done()
		case "/drip":
			w.Header().Set("Content-Length", "1000000")
			for every := time.NewTicker(10 * time.Millisecond); r.Context().Err() == nil; <-every.C {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		case "/torn":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "{")
		case "/json":
			_, _ = io.WriteString(w, ` {"sum": 42} `)
		case "/text":
			_, _ = io.WriteString(w, "done, thank you")
		case "/large":
			_, _ = io.WriteString(w, `"`+strings.Repeat("x", 256<<10)+`"`)
		case "/loop":
			w.Header().Set("Location", "/loop?"+leak)
			w.WriteHeader(302)
		default:
			var code int
			_, err := fmt.Sscanf(path, "/%d", &code)
			must(err)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, leak)
		}
	}))
	defer service.Close()
	table := []struct {
		path, state, class string
		calls              int64
		result             string
	}{
		{"200", "succeeded", "", 1, ""}, {"201", "succeeded", "", 1, ""}, {"202", "succeeded", "", 1, ""},
		{"301", "failed", "http_301", 1, ""}, {"loop", "failed", "http_302", 1, ""},
		{"400", "failed", "http_400", 1, ""}, {"401", "failed", "http_401", 1, ""}, {"404", "failed", "http_404", 1, ""},
		{"408", "failed", "http_408", 2, ""}, {"409", "failed", "http_409", 1, ""}, {"429", "failed", "http_429", 2, ""},
		{"500", "failed", "http_500", 2, ""}, {"503", "failed", "http_503", 2, ""},
		{"retry-after", "succeeded", "", 2, ""},
		{"json", "succeeded", "", 1, `{"sum":42}`}, {"text", "succeeded", "", 1, ""}, {"large", "succeeded", "", 1, ""},
		{"endless", "succeeded", "", 1, ""}, {"endless-head", "failed", "http_broken", 2, ""},
		{"no-http", "failed", "http_broken", 2, ""}, {"slow", "failed", "http_timeout", 2, ""},
		{"drip", "failed", "http_timeout", 2, ""}, {"torn", "succeeded", "", 1, ""},
	}
	var text strings.Builder
	for _, c := range table {
		fmt.Fprintf(&text, "  %s: {http: {url: '%s/%s', timeout: %s, allow: [127.0.0.1/32]}}\n", c.path, service.URL, c.path,
			map[bool]string{true: "300ms", false: "30s"}[c.class == "http_timeout"])
	}
	r := start(t, text.String())
	for _, c := range table {
		t.Run(c.path, func(t *testing.T) {
			calls.Store(0)
			began := time.Now()
			_, s := r.run(c.path, takt.JobSpec{Retry: &takt.RetrySpec{MaxAttempts: 2, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Millisecond)}}}, nil)
			class, words := "", ""
			if s.Error != nil {
				class, words = s.Error.Class, s.Error.Message
			}
			if s.State != c.state || class != c.class || calls.Load() != c.calls || string(s.Result) != c.result {
				t.Errorf("%s, %s (%s), %d calls, result %s; want %+v", s.State, class, words, calls.Load(), s.Result, c)
			}
			if strings.Contains(words, leak) || strings.Contains(r.log.String(), leak) {
				t.Errorf("what the service said is shown: %s", words)
			}
			if c.path == "retry-after" && time.Since(began) < time.Second {
				t.Error("Retry-After was not honoured")
			}
		})
	}
}

// The call says all that there is to know, and never the agent's token.
func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	type call struct {
		header http.Header
		body   agent.HTTPAssignment
		method string
	}
	calls := make(chan call, 1)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := call{header: r.Header, method: r.Method}
		must(json.NewDecoder(r.Body).Decode(&c.body))
		calls <- c
	}))
	defer service.Close()
	r := start(t, fmt.Sprintf("  hook: {http: {url: %s, headers: {X-Team: ops}, allowPrivate: true}}\n", service.URL),
		func(c *agent.Config) { c.Worker.Token = "the-agents-own-token-of-32-letters" })
	e, s := r.run("hook", takt.JobSpec{Params: []byte(`{"a":1}`)}, nil)
	c := <-calls
	b := c.body
	if c.method != "POST" || b.Job != e.Job || b.Execution != e.ID || b.Handler != "hook" || b.Namespace != "default" || b.Attempt != 1 || b.Shard != 0 ||
		b.ShardTotal != 1 || b.Token != s.Token || b.Key != s.Key || !b.PlannedAt.Equal(e.PlannedAt) || string(b.Params) != `{"a":1}` || b.Revision != 1 {
		t.Errorf("the assignment is %+v", b)
	}
	if c.header.Get("X-Team") != "ops" || c.header.Get("Idempotency-Key") != s.Key || c.header.Get("Content-Type") != "application/json" {
		t.Errorf("the header is %v", c.header)
	}
	if strings.Contains(fmt.Sprint(c.header), "the-agents-own") || c.header.Get("Authorization") != "" {
		t.Errorf("the agent's token went out: %v", c.header)
	}
}

// A stop of the execution ends the call.
func TestHTTPCancel(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only then
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	defer service.Close()
	r := start(t, fmt.Sprintf("  slow: {http: {url: %s, timeout: 10m, allowPrivate: true}}\n", service.URL))
	id := r.trigger("slow", takt.JobSpec{}, nil)
	<-began
	if _, err := client.Cancel(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	if e, _ := r.wait(id); e.State != "cancelled" {
		t.Error(e.State)
	}
	<-ended
}

// TestC77 is case C77 where an agent makes requests: what is private, local or reserved is refused before
// a connection is made, whatever the name says.
func TestC77PrivateAddresses(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer func() { _ = listener.Close() }()
	var connections, redirected atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	must(err)
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redirected.Add(1)
		to := map[string]string{"/private": "http://127.0.0.1:" + port, "/file": "file:///etc/passwd", "/gopher": "gopher://127.0.0.1:" + port}[r.URL.Path]
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer redirect.Close()
	_, open, err := net.SplitHostPort(redirect.Listener.Addr().String())
	must(err)

	var asked atomic.Int64
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		names := map[string][]string{
			"localhost": {"127.0.0.1"}, "localhost.": {"127.0.0.1"}, "0x7f000001": {"127.0.0.1"}, "2130706433": {"127.0.0.1"}, "127.1": {"127.0.0.1"},
			"0177.0.0.1": {"127.0.0.1"}, "mapped.example": {"::ffff:127.0.0.1"}, "mixed.example": {"203.0.113.7", "127.0.0.1"}, "hook.example": {"127.0.0.1"},
		}
		if host == "rebind.example" { // one that is allowed at the first look, and where nothing listens
			if asked.Add(1) == 1 {
				return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		var list []netip.Addr
		for _, a := range names[host] {
			list = append(list, netip.MustParseAddr(a))
		}
		return list, nil
	}
	hosts := []string{
		"127.0.0.1", "127.8.9.1", "[::1]", "0.0.0.0", "[::]", "0x7f000001", "2130706433", "127.1", "0177.0.0.1", "localhost", "localhost.",
		"169.254.169.254", "[fe80::1%25lo]", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1", "192.0.2.1", "240.0.0.1", "255.255.255.255",
		"224.0.0.1", "[fd00::1]", "[ff02::1]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]",
		"[fec0::1]", "[2001:db8::1]", "mapped.example", "mixed.example",
	}
	var text strings.Builder
	for i, host := range hosts {
		fmt.Fprintf(&text, "  h%d: {http: {url: 'http://%s:%s/', timeout: 5s}}\n", i, host, port)
	}
	for _, path := range []string{"private", "file", "gopher"} {
		fmt.Fprintf(&text, "  %s: {http: {url: 'http://hook.example:%s/%s', allow: [127.0.0.1/32]}}\n", path, open, path)
	}
	fmt.Fprintf(&text, "  other: {http: {url: 'http://127.0.0.1:%s/', allow: [10.0.0.0/8, '::1/128']}}\n", port)
	fmt.Fprintf(&text, "  rebind: {http: {url: 'http://rebind.example:%s/', allow: [127.0.0.2/32]}}\n", port)
	r := start(t, text.String(), func(c *agent.Config) { c.Lookup = lookup })
	spec := takt.JobSpec{Retry: &takt.RetrySpec{MaxAttempts: 2, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Millisecond)}}}
	for i, host := range append(hosts, "other") {
		t.Run(host, func(t *testing.T) {
			handler := fmt.Sprintf("h%d", i)
			if host == "other" {
				handler = host
			}
			_, s := r.run(handler, spec, nil)
			if s.State != "failed" || s.Error == nil || s.Error.Class != "address_refused" || s.Attempt != 1 {
				t.Errorf("%s after %d attempts: %+v", s.State, s.Attempt, s.Error)
			}
		})
	}
	t.Run("rebinding", func(t *testing.T) {
		_, s := r.run("rebind", spec, nil)
		if s.Attempt != 2 || s.Attempts[0].Error.Class == s.Attempts[1].Error.Class || s.Error.Class != "address_refused" {
			t.Errorf("%s after %d attempts: %+v", s.State, s.Attempt, s.Attempts)
		}
	})
	for _, path := range []string{"private", "file", "gopher"} {
		t.Run("redirect to "+path, func(t *testing.T) {
			if _, s := r.run(path, spec, nil); s.Error == nil || s.Error.Class != "http_307" || s.Attempt != 1 {
				t.Errorf("%s: %+v", s.State, s.Error)
			}
		})
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("%d connections were made to what is private", n)
	}
	if n := redirected.Load(); n != 3 {
		t.Errorf("%d calls reached the service that redirects, want 3", n)
	}
}
