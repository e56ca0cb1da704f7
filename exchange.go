package takt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// EpochHeader is the response header in which an error answer to a worker call names the epoch of the
// owner that decided it. (Other answers carry the epoch in their body.)
const EpochHeader = "Takt-Epoch"

// SessionHeader and PoolHeader are request headers of worker calls: a server finds the owner by them without reading the
// body. They are optional, and say what the body says: the session, or (open) the pool as namespace/pool.
const (
	SessionHeader = "Takt-Session"
	PoolHeader    = "Takt-Pool"
)

const (
	maxProblem = 64 << 10 // bytes of an error answer that are read
	maxAnswer  = 64 << 20 // bytes of any other answer
)

// exchange sends requests to one of several servers and reads the answers. It stays with a server
// until that can not be reached or answer. Safe for concurrent use.
type exchange struct {
	servers []string // without a slash at the end
	current atomic.Uint32
	token   string
	agent   string
	most    int64 // bytes of an answer that are read
}

// newExchange checks the addresses; each may be several, separated by commas. A bare host:port means http.
func newExchange(server string, servers []string, token, agent string) (*exchange, error) {
	x := &exchange{token: token, agent: agent, most: maxAnswer}
	if server != "" {
		servers = append([]string{server}, servers...)
	}
	for _, s := range strings.Split(strings.Join(servers, ","), ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if !strings.Contains(s, "://") {
			s = "http://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("takt: %q is no server address: write http://host:port or https://host", s)
		}
		x.servers = append(x.servers, strings.TrimRight(s, "/"))
	}
	if len(x.servers) == 0 {
		return nil, errors.New("takt: no server address: set Server")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("takt: the token has a character that is no visible ASCII one") // no call could carry it
	}
	return x, nil
}

// request is one HTTP request of the exchange.
type request struct {
	op     string // for errors
	method string
	path   string // escaped, begins with /api
	query  url.Values
	header http.Header
	body   any // JSON; nil: none
}

// do sends r once and decodes a 2xx answer into out (nil: it is discarded). Errors are *Error, or
// ctx's error when that ended first. A server that does not answer, or can not for the moment (it may be cut off from
// what the others still see), makes the next call go to the next.
func (x *exchange) do(ctx context.Context, client *http.Client, r request, out any) error {
	_, err := x.doAt(ctx, client, r, out)
	return err
}

// doAt is do, and tells which server was asked.
func (x *exchange) doAt(ctx context.Context, client *http.Client, r request, out any) (server string, err error) {
	at := x.current.Load()
	server = x.servers[int(at)%len(x.servers)]
	err = x.ask(ctx, client, server, r, out)
	if errors.Is(err, ErrUnavailable) || errors.Is(err, errCallTimeout) {
		x.current.CompareAndSwap(at, at+1)
	}
	return server, err
}

func (x *exchange) ask(ctx context.Context, client *http.Client, server string, r request, out any) error {
	req, err := x.build(ctx, server, r)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("takt: %s: %w", r.op, context.Cause(ctx))
		}
		return unreachable(r.op, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return refused(r.op, resp)
	}
	return x.decode(ctx, r.op, resp, out)
}

func (x *exchange) build(ctx context.Context, base string, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("takt: %s: write the request: %w", r.op, err)
		}
		body = bytes.NewReader(b)
	}
	target := base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("takt: %s: %w", r.op, err)
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", x.agent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if x.token != "" {
		req.Header.Set("Authorization", "Bearer "+x.token)
	}
	return req, nil
}

// decode reads a 2xx answer; one that breaks off is no answer.
func (x *exchange) decode(ctx context.Context, op string, resp *http.Response, out any) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, x.most+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("takt: %s: %w", op, context.Cause(ctx))
	case err != nil:
		return unreachable(op, err)
	case int64(len(b)) > x.most:
		return unreachable(op, fmt.Errorf("the answer is longer than %d bytes", x.most))
	case out == nil:
		return nil
	}
	if fast, is := out.(quick); is && fast.quick(b) {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return unreachable(op, fmt.Errorf("the answer is not what a Takt server says: %w", err))
	}
	return nil
}

// refused reads an error answer.
func refused(op string, resp *http.Response) *Error {
	e := &Error{Op: op}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err == nil {
		err = json.Unmarshal(b, &e.Problem)
	}
	if err != nil || e.Problem.Kind == "" {
		// Not one of ours, as from a proxy: the status is all there is to go by.
		e.Problem.Kind = kindOfStatus(resp.StatusCode)
		e.Problem.Code = firstOf(e.Problem.Code, e.Problem.Kind)
		e.Problem.Detail = firstOf(e.Problem.Detail, "the answer was "+resp.Status)
		if bytes.Contains(b, []byte("HTTP request to an HTTPS server")) { // net/http says it in plain text
			e.Problem.Detail, e.Problem.Hint = "the server speaks TLS, and was called with plain HTTP", "write https:// in the server's address"
		}
	}
	e.Problem.Status = resp.StatusCode
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(min(s, 3600)) * time.Second
	}
	if n, err := strconv.ParseInt(resp.Header.Get(EpochHeader), 10, 64); err == nil {
		e.epoch = n
	}
	return e
}

// neverSent tells whether err means that no server can have seen the request.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// backoff is the growing pause between tries of one call.
type backoff struct {
	next   time.Duration // upper bound of the next pause; 0: there was no failure yet
	max    time.Duration
	jitter func(time.Duration) time.Duration
}

const (
	firstPause = 100 * time.Millisecond
	nextServer = 10 * time.Millisecond // for who was refused because the server's partition goes to another one
)

// handOver is about how long a partition has no owner when one hands it to the next.
const handOver = 400 * time.Millisecond

// after is the pause after a try that ended with err: between half and all of a bound that doubles up
// to max, and no shorter than what the server asked for, but never longer than max. The first tries for a partition
// without an owner come sooner than asked for: it is mostly handed over, and work must not wait for longer than that.
func (b *backoff) after(err error) time.Duration {
	e, ok := errors.AsType[*Error](err)
	moves := ok && e.Problem.Code == "no_owner"
	switch {
	case b.next == 0 && moves:
		b.next = nextServer
	case b.next == 0:
		b.next = firstPause
	}
	bound := min(b.next, b.max)
	b.next = min(max(2*b.next, firstPause), b.max)
	pause := bound/2 + b.jitter(bound/2)
	if ok && e.RetryAfter > 0 && (!moves || bound > handOver) {
		pause += e.RetryAfter
	}
	return min(pause, b.max)
}

// level is that of the log line about a failure: the first of a row is news.
func (b *backoff) level() slog.Level {
	if b.next == 0 {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// reset is called after a success.
func (b *backoff) reset() { b.next = 0 }

// randomJitter draws from [0, upTo).
func randomJitter(upTo time.Duration) time.Duration {
	if upTo <= 0 {
		return 0
	}
	return rand.N(upTo)
}

// pause waits for d; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
