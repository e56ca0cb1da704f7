package job

import (
	"errors"
	"fmt"
)

// Kind is the machine's half of an error: what a caller may do about it. One table in internal/api
// turns it into an HTTP status.
type Kind string

// The kinds.
const (
	KindInvalid      Kind = "invalid"      // the request is wrong and will stay wrong
	KindUnauthorized Kind = "unauthorized" // no token, or a wrong one
	KindForbidden    Kind = "forbidden"    // the token does not allow this, or a browser's cross-site call
	KindNotFound     Kind = "not_found"    // the object is not there
	KindConflict     Kind = "conflict"     // the object changed meanwhile, or is in a state that forbids it
	KindTooLarge     Kind = "too_large"    // beyond a stated limit
	KindNoOwner      Kind = "no_owner"     // no server owns the partition just now: ask again
	KindUnavailable  Kind = "unavailable"  // the database is away, or the server is stopping: ask again
	KindFenced       Kind = "fenced"       // a commit was refused: the owner, epoch or seq is not the newest
	KindUnknown      Kind = "unknown"      // the outcome of a commit is not known
	KindRejected     Kind = "rejected"     // the store refused the data itself: asking again will not help
	KindInternal     Kind = "internal"     // a fault of ours
)

// Error is an error for two readers: Kind and Code for the machine, Message and Hint for the person.
type Error struct {
	Kind    Kind
	Code    string // stable, snake_case: "job_not_found", "unknown_field" …; Kind when there is nothing finer
	Message string // what happened and why
	Field   string // the field that is wrong, as a path such as "spec.retry.maxAttempts"; may be empty
	Hint    string // what to do; may be empty
	Err     error  // the cause, for the log; never shown to callers
}

// Error joins message and cause.
func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a kind with a code and a message.
func Errorf(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of e that tells what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithField returns a copy of e that names the wrong field.
func (e *Error) WithField(path string) *Error {
	c := *e
	c.Field = path
	return &c
}

// WithCause returns a copy of e that keeps err for the log.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// KindOf finds the kind of the first *Error in err's chain; KindInternal when there is none, "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}
