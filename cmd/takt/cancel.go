package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func newCancelCommand(g *global) *cobra.Command {
	var note, format string
	cmd := &cobra.Command{
		Use:   "cancel EXECUTION",
		Short: "Ask for the end of an execution",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.client()
			if err != nil {
				return err
			}
			asked, err := c.Cancel(cmd.Context(), args[0], note)
			if err != nil {
				return explain(cmd.Context(), "cannot cancel execution "+args[0], err)
			}
			return printAsked(cmd, format, "cancel", asked)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why; it is kept with the execution")
	addOutput(cmd, &format)
	return cmd
}

func printAsked(cmd *cobra.Command, format, what string, a takt.Asked) error {
	if isData(format) {
		return printData(cmd.OutOrStdout(), format, a)
	}
	if a.Effect == "pending" {
		fmt.Fprintf(cmd.ErrOrStderr(), "the %s is stored; its owner has not taken it in yet\n", what)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), a.Execution)
	return err
}
