package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/jobfile"
)

func newSchemaCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "schema job|calendar[.FIELD]…",
		Short: "Print the JSON Schema of documents, or explain one field",
		Long: `Print the JSON Schema of documents of a kind, job or calendar, or explain one field. It needs no server. Editors complete and check
job files by the schema: write it to a file and put this line on top of a job file:

  # yaml-language-server: $schema=./job.schema.json`,
		Example: `  takt schema job > job.schema.json
  takt schema job.spec.retry
  takt schema calendar.spec.closed`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			text, whole, err := jobfile.Schema(args[0])
			if err != nil {
				return err
			}
			if whole {
				_, err = w.Write(text)
				return err
			}
			f, err := jobfile.Explain(args[0])
			if err != nil {
				return usage(err.Error())
			}
			if isData(format) {
				return printData(w, format, f)
			}
			if _, err := fmt.Fprintf(w, "%s: %s\n", f.Path, fieldText(&f)); err != nil {
				return err
			}
			if f.Doc != "" {
				fmt.Fprintf(w, "  %s\n", f.Doc)
			}
			if len(f.Fields) == 0 {
				return nil
			}
			var rows [][]string
			for i := range f.Fields {
				x := &f.Fields[i]
				rows = append(rows, []string{x.Path[strings.LastIndexByte(x.Path, '.')+1:], fieldText(x), x.Doc})
			}
			fmt.Fprintln(w)
			return printTable(w, []string{"FIELD", "TYPE", "MEANING"}, rows)
		},
	}
	addOutput(cmd, &format)
	return cmd
}

func fieldText(f *jobfile.Field) string {
	text := f.Type
	if f.Limits != "" {
		text += ", " + f.Limits
	}
	if f.Required {
		text += ", required"
	}
	if f.ReadOnly {
		text += ", set by the server"
	}
	return text
}
