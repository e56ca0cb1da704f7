package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newValidateCommand(g *global) *cobra.Command {
	var d documents
	var online bool
	var format string
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIR|-",
		Short: "Check job files without a server",
		Long: `Check job files without a server: the rules of the API's schema and of schedules. Faults are shown with
file, line and column. With --online the server judges them too; nothing is written either way.`,
		Example: `  takt validate -f jobs/ -R`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			docs, err := d.read(cmd, g)
			if err != nil {
				return err
			}
			if online {
				c, err := g.client()
				if err != nil {
					return err
				}
				in := setOf(docs, g)
				in.DryRun = true
				if _, err := c.Apply(cmd.Context(), in); err != nil {
					return refusedSet(cmd, "the server refuses "+countedDocuments(docs), docs, err)
				}
			}
			now := time.Now()
			for i := range docs {
				for _, e := range docs[i].Passed(now) {
					warnOf(cmd.ErrOrStderr(), e)
				}
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, map[string]int{"valid": len(docs)})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, no fault\n", counted(len(docs), "document"))
			return err
		},
	}
	d.addFlags(cmd)
	cmd.Flags().BoolVar(&online, "online", false, "let the server judge too")
	addOutput(cmd, &format)
	return cmd
}
