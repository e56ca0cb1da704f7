package main

import "github.com/spf13/cobra"

func newRerunCommand(g *global) *cobra.Command {
	var note, format string
	cmd := &cobra.Command{
		Use:   "rerun EXECUTION",
		Short: "Run again the shards of an ended execution that did not succeed",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.client()
			if err != nil {
				return err
			}
			asked, err := c.Rerun(cmd.Context(), args[0], note)
			if err != nil {
				return explain(cmd.Context(), "cannot rerun execution "+args[0], err)
			}
			return printAsked(cmd, format, "rerun", asked, asked)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why; it is kept with the execution")
	addOutput(cmd, &format)
	return cmd
}
