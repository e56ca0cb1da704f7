package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
)

// The one table from errors to statuses. A code that is listed goes before its kind. What can not be
// read at all is 400; what was read and judged wrong is 422.
var (
	codeStatus = map[string]int{
		"malformed_json": http.StatusBadRequest, "invalid_utf8": http.StatusBadRequest, "nul_character": http.StatusBadRequest,
		"doubled_key": http.StatusBadRequest, "too_deep": http.StatusBadRequest, "body_required": http.StatusBadRequest,
		"body_unexpected": http.StatusBadRequest, "body_incomplete": http.StatusBadRequest, "malformed_query": http.StatusBadRequest,
		"doubled_parameter": http.StatusBadRequest, "bad_header": http.StatusBadRequest, "malformed_path": http.StatusBadRequest,
		"body_timeout": http.StatusRequestTimeout, "method_not_allowed": http.StatusMethodNotAllowed,
		"unsupported_media_type": http.StatusUnsupportedMediaType, "unsupported_encoding": http.StatusUnsupportedMediaType,
	}
	kindStatus = map[job.Kind]int{
		job.KindInvalid:      http.StatusUnprocessableEntity,
		job.KindUnauthorized: http.StatusUnauthorized,
		job.KindForbidden:    http.StatusForbidden,
		job.KindNotFound:     http.StatusNotFound,
		job.KindConflict:     http.StatusConflict,
		job.KindTooLarge:     http.StatusRequestEntityTooLarge,
		job.KindNoOwner:      http.StatusServiceUnavailable,
		job.KindUnavailable:  http.StatusServiceUnavailable,
		job.KindFenced:       http.StatusServiceUnavailable,
		job.KindUnknown:      http.StatusServiceUnavailable,
		job.KindRejected:     http.StatusUnprocessableEntity,
		job.KindInternal:     http.StatusInternalServerError,
	}
	kindHint = map[job.Kind]string{
		job.KindInvalid:     "see the schema in /api/v1/openapi.json",
		job.KindNotFound:    "check the name or id, and the namespace",
		job.KindConflict:    "read it again and decide anew",
		job.KindTooLarge:    "send less",
		job.KindNoOwner:     "ask again in a moment",
		job.KindUnavailable: "ask again in a moment",
		job.KindFenced:      "ask again in a moment",
		job.KindUnknown:     "ask again with the same Idempotency-Key: it may have happened",
		job.KindRejected:    "asking again will not help",
		job.KindInternal:    "look for the request id of this answer in the server's log",
	}
)

// retryAfter is the Retry-After of every 503, in seconds.
const retryAfter = "1"

// problem is takt.Problem as an answer of huma.
type problem struct {
	takt.Problem
	header http.Header
}

// Error, GetStatus, GetHeaders and ContentType make problem an error answer of huma.
func (p *problem) Error() string           { return p.Detail }
func (p *problem) GetStatus() int          { return p.Status }
func (p *problem) GetHeaders() http.Header { return p.header }
func (p *problem) ContentType(string) string {
	return "application/problem+json"
}

func newProblem(ctx context.Context, status int, kind job.Kind, code, detail, hint string, fields []takt.ProblemError) *problem {
	if hint == "" {
		hint = kindHint[kind]
	}
	p := &problem{Problem: takt.Problem{Type: "urn:takt:problem:" + code, Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, Kind: string(kind), Hint: hint, Errors: fields}, header: http.Header{}}
	if id := requestID(ctx); id != "" {
		p.Instance = "urn:takt:request:" + id
	}
	switch status {
	case http.StatusServiceUnavailable:
		p.header.Set("Retry-After", retryAfter)
	case http.StatusUnauthorized:
		p.header.Set("WWW-Authenticate", `Bearer realm="takt"`)
	}
	return p
}

// problemOf turns any error into a problem. An error without a kind is a fault of ours: its text stays
// in the log.
func problemOf(ctx context.Context, err error) *problem {
	if set, ok := errors.AsType[*job.SetError](err); ok && len(set.Items) > 0 {
		kind, code, detail, fields := setProblem(set)
		return newProblem(ctx, cmp.Or(kindStatus[kind], http.StatusInternalServerError), kind, code, detail, "correct the documents and send the whole set again", fields)
	}
	e, ok := errors.AsType[*job.Error](err)
	if !ok {
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			e = job.Errorf(job.KindUnavailable, "timeout", "the server did not get to it in time")
		default:
			e = job.Errorf(job.KindInternal, "internal", "the server failed")
		}
	}
	status, ok := codeStatus[e.Code]
	if !ok {
		status, ok = kindStatus[e.Kind]
	}
	if !ok {
		status = http.StatusInternalServerError
	}
	detail, code := e.Message, e.Code
	if code == "" {
		code = string(e.Kind)
	}
	if status == http.StatusInternalServerError {
		detail = "the server failed; its log has the cause under this request's id"
	}
	var fields []takt.ProblemError
	if e.Field != "" {
		fields = []takt.ProblemError{{Field: e.Field, Message: detail}}
	}
	if all, several := errors.AsType[job.Faults](err); several && len(all) > 1 {
		detail, fields = fmt.Sprintf("%s; and %s", detail, others(len(all)-1)), faultFields(all)
	}
	if changed, ok := errors.AsType[*control.Changed](err); ok {
		detail, fields = toldChanges(changed)
	}
	return newProblem(ctx, status, e.Kind, code, detail, e.Hint, fields)
}

// faultFields are the faults of one document.
func faultFields(all job.Faults) []takt.ProblemError {
	fields := make([]takt.ProblemError, len(all))
	for i, e := range all {
		fields[i] = takt.ProblemError{Field: e.Field, Message: e.Message, Code: e.Code, Hint: e.Hint}
	}
	return fields
}

func others(n int) string {
	if n == 1 {
		return "1 other fault"
	}
	return fmt.Sprintf("%d other faults", n)
}

// fail turns a use case's error into the answer, and logs it once if it is ours.
func (s *server) fail(ctx context.Context, err error) *problem {
	p := problemOf(ctx, err)
	if d, ok := errors.AsType[*decided](err); ok && d.epoch > 0 {
		p.header.Set(takt.EpochHeader, strconv.FormatInt(int64(d.epoch), 10))
	}
	switch {
	case p.Status == http.StatusInternalServerError:
		s.logger.LogAttrs(ctx, slog.LevelError, "request failed by a fault of the server; the caller was answered 500",
			slog.String("request", requestID(ctx)), slog.String("code", p.Code), slog.Any("cause", err))
	case p.Status == http.StatusServiceUnavailable && ctx.Err() == nil:
		s.logger.LogAttrs(ctx, slog.LevelDebug, "request can not be served now; the caller will ask again",
			slog.String("request", requestID(ctx)), slog.String("code", p.Code), slog.Any("cause", err))
	}
	return p
}

// refuse writes a problem outside of huma.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := s.fail(r.Context(), err)
	for k, v := range p.header {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	if err := json.NewEncoder(w).Encode(p); err != nil {
		s.logger.LogAttrs(r.Context(), slog.LevelDebug, "the answer did not reach the caller; it will ask again",
			slog.String("request", requestID(r.Context())), slog.Any("cause", err))
	}
}
