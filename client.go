package takt

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ClientConfig says how a client reaches the servers. The zero value of every field but Server or
// Servers is usable.
type ClientConfig struct {
	Server     string       // address, such as http://127.0.0.1:7070, or several separated by commas; a bare host:port means http
	Servers    []string     // more addresses; the next one is tried when one can not be reached
	Namespace  string       // default "default"
	Token      string       // sent as a bearer token; empty: none
	HTTPClient *http.Client // default: a client of its own with the usual transport
	// ShowSecrets: Job and Jobs answer with secret values of params as they are. Otherwise those read (masked), and a
	// masked value is refused when it is written back.
	ShowSecrets bool
	CAFile      string // PEM file of the certificates that vouch for https servers; empty: the system's

	// RetryFor bounds how long a call that may be repeated is repeated while servers are unavailable.
	// Default 15 s, which is longer than a server takes to be replaced; negative: never repeat.
	RetryFor time.Duration
	// Jitter draws from [0, upTo) for pauses between tries. Default: math/rand/v2.
	Jitter func(upTo time.Duration) time.Duration
}

// Client makes people's calls: jobs, executions, workers. It is safe for concurrent use and needs no
// closing.
//
// Every error of a call is an [*Error], but for the caller's own context and for values that can not be
// written as JSON. Calls that can be repeated without harm (reads, [Client.PutJob] with IfRevision,
// [Client.Trigger]) are repeated with growing pauses while the servers answer that they are
// unavailable or can not be reached; the other calls are sent once.
type Client struct {
	x         *exchange
	http      *http.Client
	namespace string
	secrets   string
	retryFor  time.Duration
	jitter    func(time.Duration) time.Duration
}

// NewClient makes a client. It sends nothing yet; the error is about the configuration.
func NewClient(cfg ClientConfig) (*Client, error) {
	x, err := newExchange(cfg.Server, cfg.Servers, cfg.Token, "takt-client")
	if err != nil {
		return nil, err
	}
	c := &Client{x: x, http: cfg.HTTPClient, namespace: firstOf(cfg.Namespace, "default"),
		retryFor: cfg.RetryFor, jitter: cfg.Jitter}
	if cfg.ShowSecrets {
		c.secrets = "show"
	}
	switch {
	case c.http != nil && cfg.CAFile != "":
		return nil, errTwoTransports
	case cfg.CAFile != "":
		t, err := newTransport(cfg.CAFile)
		if err != nil {
			return nil, err
		}
		c.http = &http.Client{Transport: t}
	case c.http == nil:
		c.http = &http.Client{}
	}
	if c.retryFor == 0 {
		c.retryFor = 15 * time.Second
	}
	if c.jitter == nil {
		c.jitter = randomJitter
	}
	return c, nil
}

// Page selects a part of a list. A list is at its end when Next is empty, not when a page is short: the
// server bounds a page in bytes and in the rows it looks at, too.
type Page struct {
	After string // Next of the page before; empty: from the start
	Limit int    // 0: the server's default
}

// ExecutionQuery selects executions; empty fields select all.
type ExecutionQuery struct {
	Job   string
	Pool  string
	State string
	Query string // terms such as state:failed duration>30s; a page may then be short and still lead on
	// Labels that the executions' jobs have, such as app=billing,tier!=test.
	Labels string
	Page
}

// PutOptions guard an edit.
type PutOptions struct {
	// IfRevision: the edit is refused with ErrConflict unless the job stands at this revision. 0: no guard.
	IfRevision int64
	Author     string // who makes the revision, such as user@host
	Reason     string // why
}

// TriggerOptions say how to run a job.
type TriggerOptions struct {
	// Params is laid over the job's own parameters key by key when both are objects, and taken instead when
	// neither is one; the rest is refused. Any value that encoding/json writes; nil: the job's own.
	Params any
	// IdempotencyKey makes two triggers with the same key one execution. Empty: the client draws one
	// for this call, so that the call may be repeated.
	IdempotencyKey string
	// At: not before this instant, at most ten years ahead; one that has passed means now. Zero: now.
	At time.Time
	// In: not before so much time has passed, by the server's clock. It is looked at when At is zero.
	In time.Duration
}

// Jobs lists jobs by name.
func (c *Client) Jobs(ctx context.Context, page Page) (JobList, error) {
	q := page.values()
	setNonEmpty(q, "secrets", c.secrets)
	return fetch[JobList](ctx, c, "list jobs", c.path("jobs"), q)
}

// Job reads a job. ErrNotFound when there is none of that name.
func (c *Client) Job(ctx context.Context, name string) (Job, error) {
	q := url.Values{}
	setNonEmpty(q, "secrets", c.secrets)
	return fetch[Job](ctx, c, "get job "+name, c.path("jobs", name), q)
}

// PutJob creates or replaces the job of j's name and returns it as stored. Putting what is already
// there changes nothing. ErrInvalid names the wrong fields in Problem.Errors.
func (c *Client) PutJob(ctx context.Context, j Job, opt PutOptions) (Job, error) {
	r := request{op: "put job " + j.Metadata.Name, method: http.MethodPut,
		path: c.path("jobs", j.Metadata.Name), body: j, query: ChangeOptions{Author: opt.Author, Reason: opt.Reason}.query()}
	if opt.IfRevision != 0 {
		r.header = http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(opt.IfRevision, 10))}}
	}
	return send[Job](ctx, c, r, opt.IfRevision != 0)
}

// Trigger runs a job, whatever its schedule: now, or as opt.At or opt.In says. Repeated tells that the key was known and names the
// execution that it made then.
func (c *Client) Trigger(ctx context.Context, job string, opt TriggerOptions) (Triggered, error) {
	op := "trigger job " + job
	var in TriggerRequest
	if opt.Params != nil {
		b, err := json.Marshal(opt.Params)
		if err != nil {
			return Triggered{}, fmt.Errorf("takt: %s: write the parameters: %w", op, err)
		}
		in.Params = b
	}
	if in.In = Duration(opt.In); !opt.At.IsZero() {
		in.At, in.In = &opt.At, 0
	}
	key := opt.IdempotencyKey
	if key == "" {
		key = rand.Text()
	}
	return send[Triggered](ctx, c, request{op: op, method: http.MethodPost, path: c.path("jobs", job, "trigger"),
		body: in, header: http.Header{"Idempotency-Key": {key}}}, true)
}

// TriggerMany runs jobs now, one execution for each item (at most 1,000), all of them or none; of two that wait, the
// one that stands first goes first. The call is repeated while servers are unavailable only when every item has a
// key: without keys a repeat could make executions twice.
func (c *Client) TriggerMany(ctx context.Context, items []TriggerItem) (TriggeredMany, error) {
	if items == nil {
		items = []TriggerItem{}
	}
	keyed := true
	for i := range items {
		keyed = keyed && items[i].Key != ""
	}
	return send[TriggeredMany](ctx, c, request{op: "trigger jobs", method: http.MethodPost, path: c.path("executions"),
		body: TriggerManyRequest{Items: items}}, keyed)
}

// Execution reads an execution by either form of its id.
func (c *Client) Execution(ctx context.Context, id string) (Execution, error) {
	return fetch[Execution](ctx, c, "get execution "+id, c.path("executions", id), nil)
}

// Executions lists executions, newest planned first.
func (c *Client) Executions(ctx context.Context, q ExecutionQuery) (ExecutionList, error) {
	v := q.values()
	setNonEmpty(v, "job", q.Job)
	setNonEmpty(v, "pool", q.Pool)
	setNonEmpty(v, "state", q.State)
	setNonEmpty(v, "q", q.Query)
	setNonEmpty(v, "labels", q.Labels)
	return fetch[ExecutionList](ctx, c, "list executions", c.path("executions"), v)
}

// Shards lists the shards of an execution by index.
func (c *Client) Shards(ctx context.Context, id string, page Page) (ShardList, error) {
	return fetch[ShardList](ctx, c, "list shards of execution "+id, c.path("executions", id, "shards"), page.values())
}

// Cancel asks for the end of an execution. note is what the person says about it, at most 1 KiB; it
// may be empty. The answer says whether the owner has taken it in yet; [Client.Wait] for the end.
func (c *Client) Cancel(ctx context.Context, id, note string) (Asked, error) {
	return send[Asked](ctx, c, request{op: "cancel execution " + id, method: http.MethodPost,
		path: c.path("executions", id, "cancel"), body: AskRequest{Note: note}}, false)
}

// Rerun asks for another go at the shards of an ended execution that did not succeed. note is as in
// Cancel.
func (c *Client) Rerun(ctx context.Context, id, note string) (Asked, error) {
	return send[Asked](ctx, c, request{op: "rerun execution " + id, method: http.MethodPost,
		path: c.path("executions", id, "rerun"), body: AskRequest{Note: note}}, false)
}

// Workers lists the live workers; pool "" means every pool.
func (c *Client) Workers(ctx context.Context, pool string) (WorkerList, error) {
	v := url.Values{}
	setNonEmpty(v, "pool", pool)
	return fetch[WorkerList](ctx, c, "list workers", c.path("workers"), v)
}

// Pools lists the pools that have workers or work.
func (c *Client) Pools(ctx context.Context) (PoolList, error) {
	return fetch[PoolList](ctx, c, "list pools", c.path("pools"), nil)
}

// Decisions lists the planned instants that became no execution, newest first; job "" means every job.
func (c *Client) Decisions(ctx context.Context, job string, page Page) (DecisionList, error) {
	v := page.values()
	setNonEmpty(v, "job", job)
	return fetch[DecisionList](ctx, c, "list decisions", c.path("decisions"), v)
}

// Stats reads what the server that answers counts.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	return fetch[Stats](ctx, c, "get stats", "/api/v1/stats", nil)
}

// Wait asks for an execution with growing pauses (100 ms to 2 s) until it has ended, and returns it.
// While no server is available it goes on asking: ctx bounds it.
func (c *Client) Wait(ctx context.Context, id string) (Execution, error) {
	next := 100 * time.Millisecond
	for {
		e, err := c.Execution(ctx, id)
		if err == nil && e.Ended() {
			return e, nil
		}
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return e, err
		}
		if !pause(ctx, next/2+c.jitter(next/2)) {
			return e, fmt.Errorf("takt: wait for execution %s: %w", id, context.Cause(ctx))
		}
		next = min(next*3/2, 2*time.Second)
	}
}

// Ended tells whether e has come to its end. Only a rerun takes it out of there.
func (e *Execution) Ended() bool {
	switch e.State {
	case "succeeded", "partially_succeeded", "failed", "timed_out", "cancelled":
		return true
	}
	return false
}

func (p Page) values() url.Values {
	v := url.Values{}
	setNonEmpty(v, "after", p.After)
	if p.Limit > 0 {
		v.Set("limit", strconv.Itoa(p.Limit))
	}
	return v
}

func setNonEmpty(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// path joins escaped parts below the client's namespace.
func (c *Client) path(parts ...string) string {
	p := "/api/v1/namespaces/" + url.PathEscape(c.namespace)
	for _, s := range parts {
		if s == "." || s == ".." {
			p += "/" + strings.ReplaceAll(s, ".", "%2E") // a bare one is a step in the path, not a name
			continue
		}
		p += "/" + url.PathEscape(s)
	}
	return p
}

func fetch[T any](ctx context.Context, c *Client, op, path string, query url.Values) (T, error) {
	return send[T](ctx, c, request{op: op, method: http.MethodGet, path: path, query: query}, true)
}

// try makes a call once. One that may be repeated is not waited for for ever while there are other servers: a server that
// hangs takes connections all the same.
func (c *Client) try(ctx context.Context, r request, out any, repeatable bool) (server string, err error) {
	if waits := r.query.Has("waitMs"); !repeatable || waits || len(c.x.servers) < 2 || c.retryFor < 0 {
		return c.x.doAt(ctx, c.http, r, out)
	}
	limited, cancel := context.WithTimeoutCause(ctx, max(c.retryFor/3, leastTry), errCallTimeout)
	defer cancel()
	server, err = c.x.doAt(limited, c.http, r, out)
	if ctx.Err() == nil && errors.Is(err, errCallTimeout) {
		return server, unreachable(r.op, errCallTimeout)
	}
	return server, err
}

// leastTry is longer than a server needs to say that its database does not answer.
const leastTry = 5 * time.Second

// send makes a call, again and again while servers are unavailable if it may be repeated. One that hangs does not use up the
// time of the others: each of them is asked.
func send[T any](ctx context.Context, c *Client, r request, repeatable bool) (T, error) {
	var out, none T
	b := backoff{max: 2 * time.Second, jitter: c.jitter}
	var asked tries
	for began, others := time.Now(), len(c.x.servers)-1; ; others-- {
		server, err := c.try(ctx, r, &out, repeatable)
		if err == nil {
			return out, nil
		}
		asked.add(server, err)
		again := errors.Is(err, ErrUnavailable) && (repeatable || neverSent(err))
		wait := b.after(err)
		hung := others > 0 && errors.Is(err, errCallTimeout)
		if !again || !hung && time.Since(began)+wait > c.retryFor {
			return none, asked.withOthers(err)
		}
		if !pause(ctx, wait) {
			return none, fmt.Errorf("takt: %s: %w; the last try ended with: %w", r.op, context.Cause(ctx), asked.withOthers(err))
		}
		out = none
	}
}
