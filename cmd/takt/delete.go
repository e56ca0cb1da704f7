package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func newDeleteCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "delete", Short: "Delete a job or a calendar"}
	cmd.AddCommand(newDeleteJobCommand(g), newDeleteCalendarCommand(g))
	return cmd
}

func newDeleteJobCommand(g *global) *cobra.Command {
	var (
		w          who
		running    string
		ifRevision int64
		format     string
	)
	cmd := &cobra.Command{
		Use:   "job JOB",
		Short: "Delete a job; say what becomes of its executions",
		Long: `Delete a job. It plans nothing more. Executions that have not ended run to their end (--running finish,
the default) or are cancelled (--running cancel). What the job has done, and its revisions, stay readable.
A job that gets the name later is another one.`,
		Example: `  takt delete job reindex --reason "replaced by reindex2"
  takt delete job reindex --running cancel`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if running != "finish" && running != "cancel" || ifRevision < 0 {
				return usage(fmt.Sprintf("--running %s: it must be finish or cancel", running))
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			d, err := c.DeleteJob(cmd.Context(), args[0], running == "cancel", w.options(ifRevision))
			if err != nil {
				return explain(cmd.Context(), "cannot delete job "+args[0], err)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, d)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), deletedText(&d))
			return err
		},
	}
	cmd.Flags().StringVar(&running, "running", "finish", "what becomes of executions that have not ended: finish or cancel")
	cmd.Flags().Int64Var(&ifRevision, "if-revision", 0, "refuse unless the job stands at this revision")
	w.addFlags(cmd)
	addOutput(cmd, &format)
	return cmd
}

func deletedText(d *takt.DeletedJob) string {
	line := fmt.Sprintf("%s deleted at revision %d; ", d.Name, d.Revision)
	switch {
	case d.Live == 0:
		line += "none of its executions was open"
	case d.Running == "cancel":
		line += counted(d.Live, "open execution") + ", being cancelled"
	default:
		line += counted(d.Live, "open execution") + ", left to finish"
	}
	if d.Effect == "pending" {
		line += ", pending"
	}
	return line
}
