package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// keepFlag is a flag with a length of time in days and weeks, too.
type keepFlag struct{ to *time.Duration }

func newKeep(to *time.Duration) keepFlag { return keepFlag{to} }

// Set reads a duration as documents have it.
func (k keepFlag) Set(s string) error {
	d, err := takt.ParseDuration(s)
	if err != nil {
		return err // it says whether it is no duration or too long
	}
	*k.to = d.Std()
	return nil
}

// String is empty for the default.
func (k keepFlag) String() string {
	if k.to == nil || *k.to == 0 {
		return ""
	}
	return takt.Duration(*k.to).String()
}

// Type is shown in the help.
func (keepFlag) Type() string { return "duration" }

func newRetentionCommand(g *global) *cobra.Command {
	var executions, logs time.Duration
	var format string
	cmd := &cobra.Command{
		Use:   "retention",
		Short: "Show or set how long a namespace keeps what is over",
		Long: `Show how long the namespace keeps ended executions and their logs, or set it. What is older is deleted in small
steps, every ten minutes. 0 goes back to the server's default. Jobs and their revisions are kept until they are deleted by hand.`,
		Example: `  takt retention -n billing
  takt retention -n billing --executions 90d --logs 14d
  takt retention -n billing --logs 0 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := g.client()
			if err != nil {
				return err
			}
			status, err := c.Retention(cmd.Context())
			if err != nil {
				return explain(cmd.Context(), "cannot read the retention", err)
			}
			setExecutions, setLogs := cmd.Flags().Changed("executions"), cmd.Flags().Changed("logs")
			if setExecutions || setLogs {
				own := status.Own
				if setExecutions {
					own.Executions = takt.Duration(executions)
				}
				if setLogs {
					own.Logs = takt.Duration(logs)
				}
				if status, err = c.SetRetention(cmd.Context(), own); err != nil {
					return explain(cmd.Context(), "cannot set the retention", err)
				}
			}
			if own := status.Own.Logs; own > status.Logs {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: logs go with their executions, after %s; the %s that the namespace asks for them has no effect until executions are kept longer\n", status.Logs, own)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, status)
			}
			return printTable(cmd.OutOrStdout(), []string{"WHAT", "KEPT", "SET BY"}, [][]string{
				{"executions", status.Executions.String(), setBy(status.Own.Executions)}, {"logs", status.Logs.String(), setBy(status.Own.Logs)}})
		},
	}
	cmd.Flags().Var(newKeep(&executions), "executions", "keep ended executions so long; 0: the server's default")
	cmd.Flags().Var(newKeep(&logs), "logs", "keep logs so long; 0: the server's default")
	addOutput(cmd, &format)
	return cmd
}

func setBy(own takt.Duration) string {
	if own == 0 {
		return "server"
	}
	return "namespace"
}
