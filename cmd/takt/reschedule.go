package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taktsched/takt"
)

// whenFlags say at which instant something starts.
type whenFlags struct{ at, in string }

func (w *whenFlags) add(f *pflag.FlagSet, what string) {
	f.StringVar(&w.in, "in", "", what+": a time from now such as 300ms, 30m or 2d, at most ten years")
	f.StringVar(&w.at, "at", "", what+": an instant such as 2026-12-01T09:00:00+08:00 or 2026-12-01T09:00[Asia/Shanghai]; one that has passed means now")
}

// read gives the instant, or the time from now; both zero when neither flag is there.
func (w *whenFlags) read() (at time.Time, in time.Duration, err error) {
	if w.at != "" && w.in != "" {
		return at, 0, usage("--at and --in exclude each other")
	}
	if w.at != "" {
		if at, _, err = instantOf("--at", w.at, nil); err != nil {
			return at, 0, err
		}
	}
	var d takt.Duration
	if w.in != "" {
		if d, err = takt.ParseDuration(w.in); err != nil {
			return at, 0, usage("--in: " + err.Error())
		}
	}
	return at, d.Std(), nil
}

// target is an execution, by its id or by the key of the trigger that asked for it.
type target struct{ job, key string }

func (t *target) add(g *global, cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.job, "job", "", "with --key: the job that was triggered")
	cmd.Flags().StringVar(&t.key, "key", "", "the key that it was triggered with, instead of EXECUTION")
	_ = cmd.RegisterFlagCompletionFunc("job", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return g.completeJobs(cmd, nil, typed)
	}) // the flag is there
}

// check refuses what names no execution, or two.
func (t *target) check(args []string) error {
	switch {
	case len(args) == 1 && t.job == "" && t.key == "", len(args) == 0 && t.job != "" && t.key != "":
		return nil
	case len(args) == 0:
		return usage("name an execution, or --job and --key of the trigger that asked for it")
	}
	return usage("name an execution, or --job and --key, not both")
}

// String names it in messages.
func (t *target) String(args []string) string {
	if len(args) == 1 {
		return "execution " + args[0]
	}
	return "the request " + t.key + " of job " + t.job
}

func newRescheduleCommand(g *global) *cobra.Command {
	var t target
	var when whenFlags
	var note, format string
	cmd := &cobra.Command{
		Use:   "reschedule [EXECUTION]",
		Short: "Move an execution that waits for its instant to another one",
		Long: `Move an execution that waits for its instant (takt trigger --in, --at) to another one. It keeps its id and its key.
What has begun or ended is not moved: exit code 5 and its state.`,
		Example: `  takt reschedule 06cw1bq0fr8j1x4cw6h3ybkq2c --in 10m
  takt reschedule --job close-order --key order-17 --at 2026-12-01T09:00:00+08:00`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.check(args); err != nil {
				return err
			}
			at, in, err := when.read()
			if err != nil {
				return err
			}
			if at.IsZero() && when.in == "" {
				return usage("say when: --in or --at")
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			moved, err := reschedule(cmd.Context(), c, &t, args, takt.RescheduleOptions{At: at, In: in, Note: note})
			if err != nil {
				return explain(cmd.Context(), "cannot reschedule "+t.String(args), err)
			}
			if moved.Past {
				fmt.Fprintln(cmd.ErrOrStderr(), "the instant has passed: it runs now")
			}
			return printAsked(cmd, format, "reschedule", takt.Asked{Execution: moved.Execution, Effect: moved.Effect}, moved)
		},
	}
	when.add(cmd.Flags(), "the new instant")
	t.add(g, cmd)
	cmd.Flags().StringVar(&note, "note", "", "why; it is kept in the journal")
	addOutput(cmd, &format)
	return cmd
}

func reschedule(ctx context.Context, c *takt.Client, t *target, args []string, opt takt.RescheduleOptions) (takt.Rescheduled, error) {
	if len(args) == 1 {
		return c.Reschedule(ctx, args[0], opt)
	}
	return c.RescheduleRequested(ctx, t.job, t.key, opt)
}
