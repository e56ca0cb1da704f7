package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// The exit codes; `takt help exit-codes` shows them.
const (
	exitOK          = 0
	exitNegative    = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitNotAllowed  = 4
	exitConflict    = 5
	exitUnavailable = 6
	exitTimeout     = 7
	exitInterrupted = 130
)

const exitCodesText = `Exit codes of every command:

  0    ok
  1    the result is negative: the execution did not succeed, diff found a difference, the demo's audit does not hold;
       or the result could not be written where it should go
  2    wrong usage, or an invalid file or request
  3    the object is not there
  4    no token, a wrong one, or one that does not allow this
  5    conflict: changed meanwhile, in a state that forbids it, or the data directory is in use
  6    no server can be reached, or it cannot answer just now
  7    time-out of --timeout
  130  ended by Ctrl-C or SIGTERM (a server that was asked to stop ends with 0)
`

func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesText}
}

// failure is an error for a person: what failed, why, and what to do.
type failure struct {
	code int
	what string
	why  string
	todo string
}

func (f *failure) Error() string { return strings.TrimSuffix(f.what+": "+f.why, ": ") }

// usage is an error of the command line.
func usage(why string) error { return &failure{code: exitUsage, what: why} }

// explain words an error of the thing that was tried. nil stays nil; a failure stays as it is.
func explain(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{code: exitUnavailable, what: what, why: err.Error()}
	if e, ok := errors.AsType[*takt.Error](err); ok {
		f.code, f.why, f.todo = codeOf(job.Kind(e.Problem.Kind)), whyOf(e), e.Problem.Hint
		if todo := adviceOnReach(e); todo != "" {
			f.todo = todo
		}
	} else if e, ok := errors.AsType[*job.Error](err); ok {
		f.code, f.why, f.todo = codeOf(e.Kind), strings.TrimPrefix(e.Field+": "+e.Message, ": "), e.Hint
		if e.Err != nil {
			f.why += ": " + e.Err.Error()
		}
	}
	if ctx.Err() != nil {
		f.code, f.why = endedBy(ctx), context.Cause(ctx).Error()
	}
	return f
}

// adviceOnReach says what to do about a server that was not reached as it wants to be; "" when it was.
func adviceOnReach(e *takt.Error) string {
	text := e.Error()
	switch {
	case strings.Contains(text, "HTTP response to HTTPS client"):
		return "the server speaks plain HTTP: write http:// in --server or TAKT_SERVER"
	case strings.Contains(text, "the server speaks TLS, and"):
		return "write https:// in --server or TAKT_SERVER, with --ca-file if the certificate is your own"
	case strings.Contains(text, "certificate") && e.Problem.Status == 0:
		return "--ca-file names the PEM file of the certificates that vouch for the server"
	case e.Problem.Status == 0 && e.Problem.Hint == "":
		return "is `takt server` running there? --server or TAKT_SERVER says where to look"
	}
	return ""
}

func whyOf(e *takt.Error) string {
	why := e.Problem.Detail
	if why == "" {
		why = e.Problem.Title
	}
	for i, p := range e.Problem.Errors {
		said := strings.TrimPrefix(p.Field+": "+p.Message, ": ")
		if i == 0 && (why == p.Message || why == said) {
			why = "" // nothing is said twice
		}
		why += "; " + said
	}
	if cause := e.Unwrap(); cause != nil {
		why += ": " + cause.Error()
	}
	if e.Problem.Code != "" {
		why += " [" + e.Problem.Code + "]"
	}
	return printable(strings.TrimPrefix(why, "; "))
}

func codeOf(kind job.Kind) int {
	switch kind {
	case job.KindInvalid, job.KindTooLarge:
		return exitUsage
	case job.KindNotFound:
		return exitNotFound
	case job.KindUnauthorized, job.KindForbidden:
		return exitNotAllowed
	case job.KindConflict:
		return exitConflict
	}
	return exitUnavailable
}

// endedBy is the exit code for a context that ended: by a signal, or by --timeout.
func endedBy(ctx context.Context) int {
	if _, ok := errors.AsType[*signalError](context.Cause(ctx)); ok {
		return exitInterrupted
	}
	return exitTimeout
}

// report prints an error and returns the exit code. What cobra itself finds is an error of usage.
func report(w io.Writer, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	if unwritten, is := errors.AsType[*fs.PathError](err); !ok && is && unwritten.Op == "write" {
		f, ok = &failure{code: exitNegative, what: "what was asked for could not be written", why: err.Error()}, true
	}
	if !ok {
		f = &failure{code: exitUsage, what: err.Error()}
	}
	if f.what != "" {
		fmt.Fprintf(w, "takt: %s\n", f.what)
	}
	if f.why != "" {
		fmt.Fprintf(w, "  why: %s\n", f.why)
	}
	if f.todo == "" && f.code == exitUsage && f.why == "" && cmd != nil {
		f.todo = "`" + cmd.CommandPath() + " --help` shows how"
	}
	if f.todo != "" {
		fmt.Fprintf(w, "  do:  %s\n", f.todo)
	}
	return f.code
}
