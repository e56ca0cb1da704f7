package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// maxErrors bounds the wrong fields that one problem names.
const maxErrors = 20

// huma's error constructors are package variables; this package is huma's only user in the binary, so
// they are set once, before any API exists. Arrays are never null in our documents.
func init() {
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return judged(context.Background(), status, msg, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return judged(ctx.Context(), status, msg, errs)
	}
	huma.DefaultArrayNullable = false
}

// judged turns huma's verdict on a request into a problem. The values that huma would echo are dropped.
func judged(ctx context.Context, status int, msg string, errs []error) *problem {
	if status >= http.StatusInternalServerError {
		return newProblem(ctx, status, job.KindInternal, "internal", "the server failed; its log has the cause under this request's id", "", nil)
	}
	code, hint := "invalid_request", ""
	fields := make([]takt.ProblemError, 0, len(errs))
	for _, err := range errs {
		d, ok := errors.AsType[*huma.ErrorDetail](err)
		if !ok {
			continue
		}
		f := takt.ProblemError{Field: fieldOf(d), Message: d.Message}
		if d.Location == "body" && strings.HasPrefix(d.Message, "json:") {
			f.Message = "the body does not fit its schema" // a decoder's text can quote the value
		}
		fields = append(fields, f)
	}
	slices.SortStableFunc(fields, func(a, b takt.ProblemError) int { return cmp.Compare(a.Field, b.Field) })
	fields = fields[:min(len(fields), maxErrors)]
	if len(fields) > 0 {
		code, hint = verdict(fields[0].Message)
		msg = fields[0].Field + ": " + fields[0].Message
	}
	return newProblem(ctx, status, job.KindInvalid, code, msg, hint, fields)
}

// namePattern is the pattern of names in the tags of the API's types.
const namePattern = `^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`

const requiredPrefix = "expected required property "

// fieldOf is the path of the wrong field: body paths as in a document, others with their place in
// front, such as query.limit.
func fieldOf(d *huma.ErrorDetail) string {
	field := d.Location
	if inner, ok := strings.CutPrefix(field, "body."); ok {
		field = inner
	}
	if rest, ok := strings.CutPrefix(d.Message, requiredPrefix); ok {
		name, _, _ := strings.Cut(rest, " ")
		if field == "body" {
			return name
		}
		return field + "." + name
	}
	parts := strings.Split(field, ".")
	for i := range parts {
		parts[i] = shown(parts[i])
	}
	return strings.Join(parts, ".")
}

// verdict gives the stable code and a hint for a message of huma's.
func verdict(msg string) (code, hint string) {
	const schema = "see the schema in /api/v1/openapi.json"
	switch {
	case strings.HasPrefix(msg, requiredPrefix):
		return "required_field", "add the field"
	case msg == "unknown query parameter":
		return "unknown_parameter", "names are case-sensitive; the OpenAPI document at /api/v1/openapi.json lists those of each call"
	case strings.HasPrefix(msg, "required "):
		return "required_parameter", "add the parameter"
	case strings.HasPrefix(msg, "expected value to be one of"):
		return "bad_value", "take one of the listed values"
	case strings.HasSuffix(msg, " "+namePattern):
		return "bad_format", "names are 1 to 63 lower-case letters, digits, '.' and '-', with a letter or digit at both ends"
	case strings.HasPrefix(msg, "expected string to"):
		return "bad_format", schema
	case strings.HasPrefix(msg, "expected number "), strings.HasPrefix(msg, "expected length "),
		strings.HasPrefix(msg, "expected array length"), strings.HasPrefix(msg, "expected object with"):
		return "out_of_range", "stay in the stated range"
	case strings.HasPrefix(msg, "invalid "), strings.HasPrefix(msg, "expected "):
		return "wrong_type", schema
	}
	return "invalid_field", schema
}
