package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func newCancelCommand(g *global) *cobra.Command {
	var t target
	var note, format string
	cmd := &cobra.Command{
		Use:   "cancel [EXECUTION]",
		Short: "Ask for the end of an execution",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.check(args); err != nil {
				return err
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			asked, err := t.cancel(cmd.Context(), c, args, note)
			if err != nil {
				return explain(cmd.Context(), "cannot cancel "+t.String(args), err)
			}
			return printAsked(cmd, format, "cancel", asked, asked)
		},
	}
	t.add(g, cmd)
	cmd.Flags().StringVar(&note, "note", "", "why; it is kept with the execution")
	addOutput(cmd, &format)
	return cmd
}

func (t *target) cancel(ctx context.Context, c *takt.Client, args []string, note string) (takt.Asked, error) {
	if len(args) == 1 {
		return c.Cancel(ctx, args[0], note)
	}
	return c.CancelRequested(ctx, t.job, t.key, note)
}

// printAsked prints what was asked about; data is the whole answer.
func printAsked(cmd *cobra.Command, format, what string, a takt.Asked, data any) error {
	if isData(format) {
		return printData(cmd.OutOrStdout(), format, data)
	}
	if a.Effect == "pending" {
		fmt.Fprintf(cmd.ErrOrStderr(), "the %s is stored; its owner has not taken it in yet\n", what)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), a.Execution)
	return err
}
