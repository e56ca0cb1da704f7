package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/taktsched/takt/internal/job"
)

// intake says what body an operation takes.
type intake struct {
	shape    *shape // nil: none
	required bool
	lenient  bool  // unknown fields are ignored
	limit    int64 // bytes
	passes   bool  // a worker's call: it goes on to the owner of its partition
	hangs    bool  // it is answered when there is something to say

	// direct answers a request that is surely in order, past huma; false: it is not, or not surely, and nothing was done. It is tried before
	// the body is checked, and when it has passed.
	direct func(w http.ResponseWriter, r *http.Request, body []byte, checked bool) bool

	alone    bool          // a call of people's that needs no database
	patience time.Duration // of one that does; 0: peopleTimeout
}

// middleware reads and checks the body, then hands it to huma.
func (s *server) middleware(in intake) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		body, err := in.take(w, r)
		if err == nil && in.passes && s.passOn(w, r, in, body) {
			return
		}
		if err == nil && in.direct != nil && in.direct(w, r, body, false) {
			return
		}
		if err == nil {
			body, err = in.check(body)
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if in.direct != nil && in.direct(w, r, body, true) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next(ctx)
	}
}

// take reads the body, whatever is in it.
func (in intake) take(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if in.shape == nil {
		if r.ContentLength != 0 {
			return nil, unparsable("body_unexpected", "this call takes no body").WithHint("leave the body out")
		}
		return nil, nil
	}
	if r.ContentLength == 0 {
		return nil, in.empty()
	}
	if e := mediaType(r); e != nil {
		return nil, e
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, in.limit))
	if err != nil {
		return nil, in.unread(err)
	}
	lift(w)
	return body, nil
}

// check judges a body that was read.
func (in intake) check(body []byte) ([]byte, error) {
	if in.shape == nil {
		return nil, nil
	}
	if len(body) == 0 {
		return nil, in.empty()
	}
	if e := strictJSON(body, in.shape, in.lenient); e != nil {
		return nil, e
	}
	if string(bytes.TrimSpace(body)) == "null" {
		return nil, in.empty()
	}
	return body, nil
}

func (in intake) empty() error {
	if !in.required {
		return nil
	}
	return unparsable("body_required", "this call needs a body").WithHint("send a JSON object; its schema is in /api/v1/openapi.json")
}

func (in intake) unread(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return job.Errorf(job.KindTooLarge, "body_too_large", "the body is larger than %d bytes", in.limit).WithField("body").
			WithHint("send less, or in several calls")
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return unparsable("body_timeout", "the body did not arrive within %s", bodyTimeout).WithHint("send it at once")
	}
	return unparsable("body_incomplete", "the body ended early").WithHint("send as many bytes as Content-Length says").WithCause(err)
}

// mediaType asks for JSON by name, which a page of another site can not send without a preflight.
func mediaType(r *http.Request) *job.Error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, given := params["charset"]
	if err != nil || kind != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return job.Errorf(job.KindInvalid, "unsupported_media_type", "the body is not declared as JSON").WithField("header.Content-Type").
			WithHint("send Content-Type: application/json")
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return job.Errorf(job.KindInvalid, "unsupported_encoding", "compressed bodies are not taken").WithField("header.Content-Encoding").
			WithHint("send the body as it is")
	}
	return nil
}
