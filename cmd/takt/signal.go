package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signalError is the cause of a context that a signal ended.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return e.sig.String() }

// sameSignal is how long after the first signal another one counts as the same: timeout(1) and terminals
// signal a process and its group.
const sameSignal = 100 * time.Millisecond

// untilSignal ends the context at the first SIGINT, SIGTERM or SIGHUP and the process at the second. stop
// gives the signals back.
func untilSignal(parent context.Context, errOut io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	over := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case s := <-signals:
				if first.IsZero() {
					first = time.Now()
				} else if time.Since(first) > sameSignal {
					fmt.Fprintln(errOut, "takt: second signal, ending at once")
					os.Exit(exitInterrupted)
				}
				cancel(&signalError{s})
			case <-over:
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(over); cancel(nil) }
}

// sayStopping says, once ctx has ended, that the end is under way, and how to have it at once. The function
// that it returns takes that back.
func sayStopping(ctx context.Context, errOut io.Writer) (never func()) {
	stop := context.AfterFunc(ctx, func() { fmt.Fprintln(errOut, "takt: stopping; once more ends it at once") })
	return func() { stop() }
}
