package takt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"
)

// Why a handler's context ended: one of these is its context.Cause.
var (
	// ErrCancelled: a person asked for the end of the execution.
	ErrCancelled = errors.New("takt: cancelled")
	// ErrTimedOut: the attempt took longer than timeout.attempt, or made no progress for timeout.stall.
	ErrTimedOut = errors.New("takt: timed out")
	// ErrLeaseLost: the shard is not this worker's any more, or will not be in a moment. Stop at once and
	// write nothing: another worker may be at it. Also returned by [Task.Checkpoint] and [Task.Progress].
	ErrLeaseLost = errors.New("takt: lease lost")
	// ErrShuttingDown: the worker stops. The shard goes back unfinished and burns no attempt; a last
	// [Task.Checkpoint] (with a context of its own) lets the next one go on from there.
	ErrShuttingDown = errors.New("takt: worker is shutting down")
)

// errReturned is for calls on a task whose handler has returned.
var errReturned = errors.New("takt: the handler of this task has returned")

// fatalError must not be retried.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// Fatal marks an error that must not be retried: the shard fails at once, whatever the retry policy.
// Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{err}
}

// snoozeError asks to be called later.
type snoozeError struct{ d time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("takt: snoozed for %v", e.d) }

// Snooze ends the attempt without a verdict: the shard is run again after d (at least 1 ms) and no
// attempt is burnt.
func Snooze(d time.Duration) error { return &snoozeError{d} }

// retryAfterError is retryable, but not before d.
type retryAfterError struct {
	d   time.Duration
	err error
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryAfter marks an error that may be retried, but not before d has passed. The retry policy still
// decides whether there is another attempt. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{d, err}
}

// panicError is a panic of a handler.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

const (
	maxMessage = 16 << 10 // bytes of an error's message that are reported
	maxStack   = 4 << 10  // bytes of a panic's stack that are reported
	maxClass   = 128
	maxNote    = 256
)

// recovered makes an error of what recover returned; to be called while the panic unwinds.
func recovered(value any) error {
	return &panicError{value: value, stack: clip(string(debug.Stack()), maxStack)}
}

// ending is what decides an attempt's outcome.
type ending struct {
	err   error // what the handler returned
	lost  bool  // the lease was over, or taken away, before it returned
	stop  error // ErrCancelled or ErrTimedOut when the server told it to stop
	leave bool  // told to stop because the worker stops
}

// outcome maps how a handler ended to the words of the protocol. What the server asked for beats
// everything but success; a lost lease beats what the handler says, for it can not write any more.
func (e ending) outcome() (outcome string, failure *Failure, retryAfter time.Duration) {
	if e.err != nil {
		failure = failureOf(e.err)
	}
	switch {
	case e.stop != nil && e.err != nil:
		return "cancelled", failure, 0
	case e.lost:
		return "lease_lost", failure, 0
	case e.err == nil:
		return "success", nil, 0
	}
	if _, ok := errors.AsType[*fatalError](e.err); ok {
		return "fatal", failure, 0
	}
	if s, ok := errors.AsType[*snoozeError](e.err); ok {
		return "snooze", nil, max(s.d, time.Millisecond)
	}
	if r, ok := errors.AsType[*retryAfterError](e.err); ok {
		return "error", failure, max(r.d, time.Millisecond)
	}
	if _, panicked := errors.AsType[*panicError](e.err); e.leave && !panicked {
		return "released", failure, 0
	}
	return "error", failure, 0
}

// failureOf describes a handler's error. An error in the chain with a method FailureClass names its own
// class.
func failureOf(err error) *Failure {
	f := &Failure{Class: "error", Message: clean(err.Error(), maxMessage)}
	if _, ok := errors.AsType[*fatalError](err); ok {
		f.Class = "fatal"
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		f.Class = "panic"
	}
	if own, ok := errors.AsType[interface {
		error
		FailureClass() string
	}](err); ok {
		f.Class = clean(own.FailureClass(), maxClass)
	}
	return f
}

// clean makes a text that every store takes: valid UTF-8 without NUL, at most limit bytes.
func clean(s string, limit int) string {
	return clip(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD"), limit)
}

// clip cuts s to at most limit bytes, between characters.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
