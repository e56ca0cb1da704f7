package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/taktsched/takt"
)

const (
	maxAnswer     = 256 << 10 // of a body that becomes the result
	maxHeader     = 64 << 10
	maxRetryAfter = 24 * time.Hour
)

// ownHeaders are set by the agent, in lower case.
var ownHeaders = []string{"host", "content-type", "content-length", "transfer-encoding", "connection", "idempotency-key", "upgrade", "trailer", "te"}

// HTTPAssignment is the body of a call: what there is to do.
type HTTPAssignment struct {
	Namespace  string          `json:"namespace"`
	Job        string          `json:"job"`
	Revision   int64           `json:"revision"`
	Execution  string          `json:"execution"`
	Handler    string          `json:"handler"`
	PlannedAt  time.Time       `json:"plannedAt"`
	Shard      int             `json:"shard"`
	ShardTotal int             `json:"shardTotal"`
	Attempt    int             `json:"attempt"`
	Token      int64           `json:"token"` // the fencing token
	Key        string          `json:"key"`   // the idempotency key, also the header Idempotency-Key
	Params     json.RawMessage `json:"params,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	Parents    []Parent        `json:"parents,omitempty"` // of a job that runs after others
}

// httpHandler makes one handler's calls.
type httpHandler struct {
	name   string
	spec   *HTTP
	client *http.Client
}

func newHTTPHandler(name string, spec *HTTP, lookup func(context.Context, string) ([]netip.Addr, error)) *httpHandler {
	d := &dialer{any: spec.AllowPrivate, lookup: lookup}
	for _, text := range spec.Allow {
		if p, err := netip.ParsePrefix(text); err == nil { // Parse has checked it
			d.allow = append(d.allow, p)
		}
	}
	return &httpHandler{name: name, spec: spec, client: &http.Client{
		// No proxy: it would connect where this dialer would not. A connection for each call: the address
		// is looked at each time.
		Transport: &http.Transport{DialContext: d.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
			TLSHandshakeTimeout: 5 * time.Second, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run is the takt.Handler.
func (h *httpHandler) run(ctx context.Context, t *takt.Task) error {
	timeout := time.Duration(h.spec.Timeout)
	if timeout == 0 {
		timeout = defaultHTTPTimeout
	}
	parents, err := parentsOf(ctx, t, httpParents)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := h.request(limited, t, parents)
	if err != nil {
		return takt.Fatal(err)
	}
	res, err := h.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return wordHTTP(err, timeout)
	}
	defer func() { _ = res.Body.Close() }() // whatever follows in it is not wanted
	if err := judge(res, time.Now()); err != nil {
		return err
	}
	err = h.keep(limited, t, res)
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case err != nil:
		return wordHTTP(err, timeout)
	}
	return nil
}

func (h *httpHandler) request(ctx context.Context, t *takt.Task, parents []Parent) (*http.Request, error) {
	body := HTTPAssignment{Namespace: t.Namespace(), Job: t.Job(), Revision: t.Revision(), Execution: t.Execution(),
		Handler: h.name, PlannedAt: t.PlannedAt(), Shard: t.Shard(), ShardTotal: t.ShardTotal(), Attempt: t.Attempt(),
		Token: t.Token(), Key: t.Key(), Params: t.Params(), Parents: parents}
	if _, err := t.LastCheckpoint(&body.Checkpoint); err != nil {
		return nil, err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.spec.URL, bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("the address of the handler is wrong")
	}
	req.Header.Set("User-Agent", "takt-agent")
	req.Header.Set("Accept", "application/json")
	for name, value := range h.spec.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", t.Key())
	return req, nil
}

// keep takes the body of a 2xx answer as the result if it is JSON of a bearable size. The work is done whatever the
// body is, but the call is over only with its body: the error is that of ctx, which ended first.
func (h *httpHandler) keep(ctx context.Context, t *takt.Task, res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case len(text) > maxAnswer:
		t.Log().Warn("the answer is larger than a result may be; no result is kept", "limit", maxAnswer)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		t.Log().Warn("the service said that it is done, but the rest of its answer did not come; no result is kept")
	case len(bytes.TrimSpace(text)) == 0 || !json.Valid(text):
	default:
		if err := t.SetResult(json.RawMessage(text)); err != nil {
			t.Log().Warn("the answer is not kept as the result", "error", err)
		}
	}
	return nil
}

// judge maps an answer's status: 2xx is done, 408, 429 and 5xx may be tried again, not before Retry-After
// says so, and everything else will not get better. The text says nothing that the service wrote.
func judge(res *http.Response, now time.Time) error {
	code := res.StatusCode
	if code >= 200 && code <= 299 {
		return nil
	}
	text := fmt.Sprintf("the service answered %d %s", code, http.StatusText(code))
	if code >= 300 && code <= 399 {
		text += ": redirects are not followed"
	}
	err := &commandError{fmt.Sprintf("http_%d", code), text}
	if code != http.StatusRequestTimeout && code != http.StatusTooManyRequests && code < 500 {
		return takt.Fatal(err)
	}
	if d := retryAfter(res.Header.Get("Retry-After"), now); d > 0 {
		return takt.RetryAfter(d, err)
	}
	return err
}

// retryAfter reads the header: seconds or a date; 0 when it says nothing. At most a day is believed.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(min(at.Sub(now), maxRetryAfter), 0)
	}
	return 0
}

// wordHTTP words a failed call. The errors of package http may quote what the other side sent, so only
// those that cannot are shown.
func wordHTTP(err error, timeout time.Duration) error {
	if r, ok := errors.AsType[*refused](err); ok {
		return takt.Fatal(&commandError{"address_refused", r.Error()})
	}
	var slow interface{ Timeout() bool }
	switch dial, isDial := errors.AsType[*net.OpError](err); {
	case errors.Is(err, context.DeadlineExceeded):
		return &commandError{"http_timeout", "the service did not answer within " + takt.Duration(timeout).String()}
	case isDial && dial.Op == "dial":
		return &commandError{"http_unreachable", "the service cannot be reached: " + dial.Error()}
	case errors.As(err, &slow) && slow.Timeout():
		return &commandError{"http_timeout", "the service did not answer in time"}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return &commandError{"http_unreachable", "the service's name cannot be resolved: " + dns.Error()}
	}
	return &commandError{"http_broken", "the connection ended without an answer of HTTP"}
}
