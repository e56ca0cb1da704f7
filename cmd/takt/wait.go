package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// executionStates are all states of an execution, the final ones last.
var executionStates = []string{"scheduled", "queued", "running", "cancelling", "succeeded", "partially_succeeded", "failed", "timed_out", "cancelled"}

type wait struct {
	g       *global
	states  string
	timeout time.Duration
	format  string
}

func newWaitCommand(g *global) *cobra.Command {
	w := wait{g: g}
	cmd := &cobra.Command{
		Use:   "wait EXECUTION",
		Short: "Wait until an execution is in a state",
		Long: `Wait until an execution has ended, or with --for until it is in one of some states.

The exit code is 0 when it got there, 1 when it ended in another state (without --for: when it did not succeed), and 7
when --timeout came first. While it waits it says on standard error what the execution waits for. Ctrl-C and --timeout
end the waiting, not the execution.`,
		Example: `  takt wait 06cw1bq0fr8j1x4cw6h3ybkq2c --timeout 10m
  takt wait 06cw1bq0fr8j1x4cw6h3ybkq2c --for state=running,succeeded`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return w.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&w.states, "for", "", "state=STATE[,STATE]…; default: the end")
	f.DurationVar(&w.timeout, "timeout", 0, "give up after this time; 0: never")
	addOutput(cmd, &w.format)
	return cmd
}

func (w *wait) run(cmd *cobra.Command, id string) error {
	want, err := parseFor(w.states)
	if err != nil {
		return err
	}
	if w.timeout < 0 {
		return usage("--timeout must not be negative")
	}
	c, err := w.g.client()
	if err != nil {
		return err
	}
	ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
	if w.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
	}
	defer cancel()
	e, err := awaitExecution(ctx, c, id, func(e *takt.Execution) bool { return e.Ended() || slices.Contains(want, e.State) },
		func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) })
	reached := slices.Contains(want, e.State) || len(want) == 0 && e.Ended()
	switch {
	case err == nil || reached:
	case ctx.Err() != nil:
		return &failure{code: endedBy(ctx), what: "stopped waiting for execution " + id + "; the execution goes on",
			why: firstText(waitsFor(e), stoppedBy(ctx)), todo: "`takt describe execution " + id + "` says where it stands"}
	default:
		return explain(ctx, "cannot wait for execution "+id, err)
	}
	if isData(w.format) {
		if err := printData(cmd.OutOrStdout(), w.format, e); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(cmd.OutOrStdout(), e.State); err != nil {
		return err
	}
	if !reached || len(want) == 0 && e.State != "succeeded" {
		return &failure{code: exitNegative, what: "execution " + id + " ended " + e.State, why: e.ReasonText,
			todo: "`takt describe execution " + id + "` shows why"}
	}
	return nil
}

// parseFor reads --for; no states mean the end.
func parseFor(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	list, ok := strings.CutPrefix(text, "state=")
	states := strings.Split(list, ",")
	for _, s := range states {
		if ok = ok && slices.Contains(executionStates, s); !ok {
			return nil, usage(fmt.Sprintf("--for %s: write state= and one or more of %s, joined by commas", text, strings.Join(executionStates, ", ")))
		}
	}
	return states, nil
}

// awaitEnd asks for an execution until it has ended.
func awaitEnd(ctx context.Context, c *takt.Client, id string, say func(string)) (takt.Execution, error) {
	return awaitExecution(ctx, c, id, (*takt.Execution).Ended, say)
}

// awaitExecution asks for an execution until it is there. say gets a line when it waits for something, and
// another one when that changes.
func awaitExecution(ctx context.Context, c *takt.Client, id string, there func(*takt.Execution) bool, say func(string)) (takt.Execution, error) {
	var last takt.Execution
	var notes waitNotes
	for pause := 50 * time.Millisecond; ; pause = min(pause*3/2, time.Second) {
		e, err := c.Execution(ctx, id)
		var line string
		switch {
		case err == nil && there(&e):
			return e, nil
		case err == nil:
			last, line = e, notes.looked(&e)
		case errors.Is(err, takt.ErrUnavailable) && ctx.Err() == nil:
			line = notes.unanswered(err)
		default:
			return last, err
		}
		if line != "" {
			say(line)
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// waitNotes says what an execution waits for, once until that changes. Between two looks a shard may have begun and ended, so
// that there is nothing it waits for: that alone is no change, another state of the execution is one.
type waitNotes struct {
	why, state string
	away       bool // no server answers
}

// looked is the line about an execution; "": there is nothing new.
func (n *waitNotes) looked(e *takt.Execution) string {
	why := waitsFor(*e)
	back := n.away
	if n.away = false; why == "" && e.State == n.state && !back {
		return ""
	}
	old := *n
	n.why, n.state = why, e.State
	if why == "" || why == old.why && e.State == old.state && !back {
		return ""
	}
	return "waits: " + why
}

// unanswered is the line about a call that nobody answered.
func (n *waitNotes) unanswered(err error) string {
	if n.away {
		return ""
	}
	n.away = true
	return "no server answers, asking on: " + err.Error()
}

// stoppedBy says in words what ended a wait.
func stoppedBy(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return "--timeout passed"
	}
	return context.Cause(ctx).Error()
}
