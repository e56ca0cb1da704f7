package api

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt/internal/job"
)

const (
	pingTimeout = 2 * time.Second
	pingKept    = time.Second
)

// pulse asks the store whether it answers: one ask at a time, whose result is kept for pingKept, for
// anybody may call and a ping is a write.
type pulse struct {
	store Pinger
	turn  chan struct{} // holds what follows
	begun bool
	at    time.Time // of the newest result
	err   error
	doubt atomic.Bool // a call or a ping met a store that did not answer, and no ping has since succeeded
}

func newPulse(s Pinger) *pulse { return &pulse{store: s, turn: make(chan struct{}, 1)} }

// ping is nil when the store answers, or did so less than pingKept ago.
func (p *pulse) ping(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.turn }()
	if p.begun && time.Since(p.at) < pingKept {
		return p.err
	}
	// the result is for others, too: a caller that goes away does not end the ask
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	p.err = p.store.Ping(ctx)
	p.begun, p.at = true, time.Now()
	p.doubt.Store(p.err != nil)
	return p.err
}

// doubted takes note of how a call of people's ended: one that the store let down makes the next ones ask first.
func (p *pulse) doubted(err error) {
	switch job.KindOf(err) {
	case job.KindUnavailable, job.KindUnknown:
		p.doubt.Store(true)
	default:
		if errors.Is(err, context.DeadlineExceeded) {
			p.doubt.Store(true)
		}
	}
}

// usable refuses a call of people's at once while the store is known not to answer, so that callers and connections do
// not pile up behind its time-outs.
func (p *pulse) usable(ctx context.Context) error {
	if !p.doubt.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := p.ping(ctx); err != nil && unwritable(err) == "" { // else it answers: reads are served, and a write hears why not
		return storeAway(err)
	}
	return nil
}

// unwritable says what keeps a database that answers from taking anything in; "" when it is something else.
func unwritable(err error) string {
	e, _ := errors.AsType[*job.Error](err)
	for ; e != nil; e, _ = errors.AsType[*job.Error](errors.Unwrap(e)) {
		switch e.Code {
		case "disk_full":
			return "the disk of the database is full"
		case "not_writable", "database_read_only":
			return "the database cannot be written"
		case "disk_error":
			return "the disk of the database fails"
		case "database_gone":
			return "the database file is gone"
		}
	}
	return ""
}

func storeAway(cause error) *job.Error {
	if why := unwritable(cause); why != "" {
		e, _ := errors.AsType[*job.Error](cause)
		return job.Errorf(job.KindUnavailable, "store_unavailable", "%s", why).WithHint("%s", e.Hint).WithCause(cause)
	}
	return job.Errorf(job.KindUnavailable, "store_unavailable", "the database does not answer").
		WithHint("ask again in a moment; it goes on by itself when the database is back, and the server's log says what is wrong").WithCause(cause)
}

// text is a plain answer.
type text struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Body        []byte
}

func plain(s string) *text {
	return &text{ContentType: "text/plain; charset=utf-8", Body: []byte(s + "\n")}
}

func plainResponse() map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: "It is.",
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
}

func (s *server) health() {
	tags := []string{"health"}
	register(s, huma.Operation{OperationID: "healthz", Method: http.MethodGet, Path: pathHealth, Tags: tags, Summary: "Whether the process lives",
		Responses: plainResponse()}, intake{alone: true}, func(context.Context, *struct{}) (*text, error) { return plain("ok"), nil })
	register(s, huma.Operation{OperationID: "readyz", Method: http.MethodGet, Path: pathReady, Tags: tags,
		Summary:     "Whether calls can be served",
		Description: "The store answers (asked at most once a second), every partition is answered for or was until a moment ago, and the server is not stopping.",
		Responses:   plainResponse()}, intake{alone: true}, s.ready)
}

func (s *server) ready(ctx context.Context, _ *struct{}) (*text, error) {
	if s.stopping() {
		return nil, job.Errorf(job.KindUnavailable, "stopping", "the server is stopping").WithHint("ask another server")
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := s.pulse.ping(ctx); err != nil {
		return nil, storeAway(err)
	}
	if err := s.node.Ready(); err != nil {
		if why := errors.Unwrap(err); unwritable(why) != "" { // a small question is answered where a commit finds no room
			return nil, storeAway(why)
		}
		return nil, s.unready(err)
	}
	return plain("ready"), nil
}

// unready says why calls cannot be served although the store answers.
func (s *server) unready(cause error) *job.Error {
	for _, m := range s.cluster.Members() {
		if m.Incarnation == s.incarnation && m.SitsOut {
			return job.Errorf(job.KindUnavailable, "sits_out", "this server sits out: no other server can reach it at %s", m.Address).
				WithHint("`takt get servers -o wide` at another server shows who cannot reach it; --advertise URL names the address that others call").WithCause(cause)
		}
	}
	return job.Errorf(job.KindNoOwner, "partitions_not_owned", "not every partition has an owner that is ready").
		WithHint("right after a start this takes a moment; `takt get servers` shows who owns what").WithCause(cause)
}
