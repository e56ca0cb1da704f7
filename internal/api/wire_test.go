package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/engine"
)

// These tests run a real http.Server over pipes in virtual time.

type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070} }

// serve runs the rig's handler until the test ends and gives a way to dial it.
func (r *rig) serve() func() net.Conn {
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: r.handler, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(l) }()
	r.t.Cleanup(func() { _ = srv.Close() })
	return func() net.Conn {
		client, server := net.Pipe()
		l.conns <- server
		r.t.Cleanup(func() { _ = client.Close() })
		return client
	}
}

func send(t *testing.T, c net.Conn, path string, length int, body string) {
	t.Helper()
	head := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n"
	if _, err := io.WriteString(c, head+body); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn) (int, []byte) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

const polling = `{` + sess + `,"waitMs":20000}`

// A poll hangs beyond the time that a body may take.
func TestPollHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.owners.answer = func(ctx context.Context, ev engine.Event) (any, error) {
			select {
			case <-time.After(ev.(engine.Poll).Wait):
				return &engine.Polled{}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		c := r.serve()()
		begun := time.Now()
		send(t, c, work+"poll", len(polling), polling)
		status, b := receive(t, c)
		if took := time.Since(begun); status != http.StatusOK || took != 20*time.Second {
			t.Errorf("%d %s after %s", status, b, took)
		}
	})
}

// A poll ends with its client.
func TestPollEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ended := make(chan error, 1)
		r.owners.answer = func(ctx context.Context, _ engine.Event) (any, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}
		c := r.serve()()
		begun := time.Now()
		send(t, c, work+"poll", len(polling), polling)
		time.Sleep(15 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("ended early: %v", err)
		default:
		}
		_ = c.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(begun) != 15*time.Second {
			t.Errorf("ended by %v after %s", err, time.Since(begun))
		}
	})
}

// A call whose owner never answers ends by itself.
func TestCallIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.owners.answer = func(ctx context.Context, _ engine.Event) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for path, bound := range map[string]time.Duration{"poll": 30 * time.Second, "heartbeat": 10 * time.Second, "close": 10 * time.Second} {
			begun := time.Now()
			refused(r, post(work+path, polling), 503, "timeout")
			if took := time.Since(begun); took != bound {
				t.Errorf("%s ended after %s", path, took)
			}
		}
	})
}

// A body that does not come is not waited for.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		c := r.serve()()
		begun := time.Now()
		send(t, c, work+"poll", len(polling), polling[:5])
		status, b := receive(t, c)
		var p takt.Problem
		if err := json.Unmarshal(b, &p); err != nil || status != http.StatusRequestTimeout || p.Code != "body_timeout" {
			t.Errorf("%d %s %v", status, b, err)
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

func TestBrokenBodies(t *testing.T) {
	r := newRig(t, func(c *api.Config) { c.Limits = api.Limits{Body: 100, ReportBody: 200} })
	do := func(method, path string, body io.Reader) *httptest.ResponseRecorder {
		q := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:7070"+path, body)
		q.Header.Set("Content-Type", "application/json")
		q.ContentLength = -1 // chunked
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		return w
	}
	isProblem(t, do("POST", work+"poll", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF))), 400, "body_incomplete")
	isProblem(t, do("POST", work+"poll", strings.NewReader("")), 400, "body_required")
	isProblem(t, do("POST", work+"poll", strings.NewReader(strings.Repeat(" ", 101))), 413, "body_too_large")
	isProblem(t, do("POST", work+"report", strings.NewReader(strings.Repeat(" ", 201))), 413, "body_too_large")
	isProblem(t, do("POST", work+"report", strings.NewReader(strings.Repeat(" ", 199))), 400, "malformed_json")
	isProblem(t, do("GET", one, strings.NewReader("{}")), 400, "body_unexpected")
	r.owners.answer = answers(&engine.Polled{})
	if w := do("POST", work+"poll", strings.NewReader(polling)); w.Code != http.StatusOK {
		t.Errorf("chunked: %d %s", w.Code, w.Body)
	}
	if len(r.owners.calls) != 1 {
		t.Errorf("%d calls reached the owner", len(r.owners.calls))
	}
}

// A request that is refused at its head waits no longer for its body than one that is taken.
func TestRefusedBodyThatNeverComes(t *testing.T) {
	for name, head := range map[string]string{
		"no token":     "POST /api/v1/worker/open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
		"chunked":      "POST /api/v1/worker/open HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"unknown path": "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: 10\r\n\r\n",
		"no type":      "POST /api/v1/worker/open HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: 10\r\n\r\n",
		"health":       "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newRig(t, func(c *api.Config) { c.Token = "secret" }).serve()()
				begun := time.Now()
				if _, err := io.WriteString(c, head); err != nil {
					t.Fatal(err)
				}
				_ = c.SetReadDeadline(begun.Add(time.Hour))
				_, _ = io.Copy(io.Discard, c) // the answer, then the end of the connection
				if took := time.Since(begun); took > 11*time.Second {
					t.Errorf("the connection was held for %s", took)
				}
			})
		})
	}
}

// A reader that does not read what it asked for loses its connection.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, nil).serve()()
		if _, err := io.WriteString(c, "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second)
		_ = c.SetReadDeadline(time.Now().Add(time.Hour))
		got, err := io.Copy(io.Discard, c)
		if err != nil || got > 5000 { // what was on its way when it ended
			t.Errorf("%d bytes were still written, %v", got, err)
		}
	})
}

// The time for an answer begins with the answer, on a connection of any age.
func TestPollOnAnOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.owners.answer = func(context.Context, engine.Event) (any, error) {
			time.Sleep(29 * time.Second)
			return &engine.Polled{}, nil
		}
		c := r.serve()()
		for range 3 {
			send(t, c, work+"poll", len(polling), polling)
			time.Sleep(45 * time.Second) // the answer waits for its reader
			if status, b := receive(t, c); status != http.StatusOK {
				t.Errorf("%d %s", status, b)
			}
			time.Sleep(time.Minute)
		}
	})
}
