package takt

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// kindError is a sentinel that stands for one or more kinds of [Problem].
type kindError struct {
	text  string
	kinds []string
}

func (k *kindError) Error() string { return k.text }

// What a failed call may be compared with by errors.Is. Each stands for a kind of [Problem].
var (
	// ErrInvalid: the request is wrong and will stay wrong.
	ErrInvalid error = &kindError{"takt: invalid request", []string{"invalid"}}
	// ErrUnauthorized: no token, or a wrong one.
	ErrUnauthorized error = &kindError{"takt: not authorized", []string{"unauthorized"}}
	// ErrForbidden: the token does not allow this.
	ErrForbidden error = &kindError{"takt: not allowed", []string{"forbidden"}}
	// ErrNotFound: the object is not there.
	ErrNotFound error = &kindError{"takt: not found", []string{"not_found"}}
	// ErrConflict: the object changed meanwhile, or is in a state that forbids it.
	ErrConflict error = &kindError{"takt: conflict", []string{"conflict"}}
	// ErrTooLarge: beyond a stated limit.
	ErrTooLarge error = &kindError{"takt: too large", []string{"too_large"}}
	// ErrUnavailable: no server could be reached, or none can answer just now. Ask again.
	ErrUnavailable error = &kindError{"takt: unavailable", []string{"no_owner", "unavailable", "unknown", "fenced"}}
	// ErrInternal: a fault of the server.
	ErrInternal error = &kindError{"takt: internal error of the server", []string{"internal", "rejected"}}
)

// Error is a call that the server refused or that did not reach it. Compare it by errors.Is with
// [ErrNotFound] and its like, or look into Problem.
type Error struct {
	Op         string        // what was asked, such as "trigger job nightly"
	Problem    Problem       // Status 0: no server answered
	RetryAfter time.Duration // as the server asked; 0: it did not

	epoch int64 // of the owner that decided, when it said so
	err   error // cause, when no server answered
}

// Error says what was asked, what happened and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("takt: " + e.Op + ": " + firstOf(e.Problem.Detail, e.Problem.Title, e.Problem.Code))
	for _, f := range e.Problem.Errors {
		fmt.Fprintf(&b, "; %s", strings.TrimPrefix(f.Field+": "+f.Message, ": "))
	}
	if e.err != nil {
		b.WriteString(": " + e.err.Error())
	}
	if e.Problem.Hint != "" {
		b.WriteString(" (" + e.Problem.Hint + ")")
	}
	return b.String()
}

// Is tells whether target is the sentinel of the problem's kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(*kindError)
	if !ok {
		return false
	}
	for _, kind := range k.kinds {
		if kind == e.Problem.Kind {
			return true
		}
	}
	return false
}

// Unwrap gives the cause when no server answered.
func (e *Error) Unwrap() error { return e.err }

// Kind is the kind of the first *Error in err's chain; "" when there is none.
func kindOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problem.Kind
	}
	return ""
}

// codeOf is the code of the first *Error in err's chain; "" when there is none.
func codeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problem.Code
	}
	return ""
}

// unreachable is the error of a call that no server answered.
func unreachable(op string, cause error) *Error {
	return &Error{Op: op, err: cause, Problem: Problem{
		Kind: "unavailable", Code: "unreachable", Detail: "no server answered"}}
}

// kindOfStatus stands in for a problem document where something between us and the server, such as a
// proxy, answered with a page of its own.
func kindOfStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusNotFound:
		return "not_found"
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "conflict"
	case http.StatusRequestEntityTooLarge:
		return "too_large"
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "unavailable"
	}
	if status >= 500 {
		return "internal"
	}
	return "invalid"
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
