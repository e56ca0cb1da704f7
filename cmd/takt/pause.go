package main

import (
	"time"

	"github.com/spf13/cobra"
)

func newPauseCommand(g *global) *cobra.Command {
	var w who
	var until, format string
	cmd := &cobra.Command{
		Use:   "pause JOB",
		Short: "Keep a job's schedules from firing; requests still run",
		Long: `Keep a job's schedules from firing, until it is resumed or until --until. Requests (takt trigger) still
run, and so do executions that exist. Planned instants of the pause are recorded as skipped when it ends:
takt get decisions shows them. Pausing a paused job changes reason and end.`,
		Example: `  takt pause reindex --reason "storage is being moved" --until 2h
  takt pause reindex --until 2026-12-01T06:00:00+08:00`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := endOf(until, time.Now())
			if err != nil {
				return err
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			j, err := c.PauseJob(cmd.Context(), args[0], end, w.options(0))
			if err != nil {
				return explain(cmd.Context(), "cannot pause job "+args[0], err)
			}
			line := args[0] + " is paused"
			if s := j.Status; s != nil && s.Paused != nil {
				line = args[0] + " is " + pausedText(s.Paused)
			}
			return printChanged(cmd, format, &j, line+"; requests still run")
		},
	}
	cmd.Flags().StringVar(&until, "until", "", "when it ends by itself: an instant (RFC 3339, or 2026-12-01T06:00[Asia/Shanghai]) or a time from now such as 2h or 1d12h")
	w.addFlags(cmd)
	addOutput(cmd, &format)
	return cmd
}

// endOf reads --until; "" is the zero time.
func endOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	d, at, err := lengthOrInstant("--until", text)
	if err == nil && d > 0 {
		at = now.Add(d)
	}
	return at, err
}

func newResumeCommand(g *global) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "resume JOB",
		Short: "End the pause of a job, its own or that of failures in a row",
		Long: `End the pause of a job, whether a person paused it or failures in a row did (spec.autoPause; their count
begins anew). Its next planned instant lies ahead; those of the pause are recorded as skipped.
Resuming a job that is not paused changes nothing.`,
		Example: `  takt resume reindex`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.client()
			if err != nil {
				return err
			}
			was, err := c.Job(cmd.Context(), args[0])
			if err != nil {
				return explain(cmd.Context(), "cannot resume job "+args[0], err)
			}
			j, err := c.ResumeJob(cmd.Context(), args[0])
			if err != nil {
				return explain(cmd.Context(), "cannot resume job "+args[0], err)
			}
			line := args[0] + " was not paused"
			if s := was.Status; s != nil && (s.Paused != nil || s.AutoPaused != nil) {
				line = args[0] + " is resumed"
			}
			if s := j.Status; s != nil && s.NextPlannedAt != nil {
				line += "; next " + s.NextPlannedAt.Local().Format(time.RFC3339)
			}
			return printChanged(cmd, format, &j, line)
		},
	}
	addOutput(cmd, &format)
	return cmd
}
