package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func newHistoryCommand(g *global) *cobra.Command {
	var page takt.Page
	var format string
	cmd := &cobra.Command{
		Use:   "history JOB|calendar/CALENDAR",
		Short: "List the revisions of a job or a calendar: who changed what, when and why",
		Long: `List the revisions of a job or a calendar, newest first: who changed what, when and why. Those of a deleted job stay
readable until another job has its name. Those of a calendar go on over its deletion.`,
		Example: `  takt history reindex
  takt history calendar/cn-workdays
  takt history reindex -o json --limit 1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if page.Limit < 0 {
				return usage("--limit must not be negative")
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			if name, is := ofCalendar(args[0]); is {
				return calendarHistory(cmd, c, name, format, page)
			}
			list, err := c.Revisions(cmd.Context(), args[0], page)
			if err != nil {
				return explain(cmd.Context(), "cannot read the history of job "+args[0], err)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, list)
			}
			rows := make([][]string, len(list.Items))
			for i := range list.Items {
				rows[i] = revisionRow(&list.Items[i])
			}
			return printRevisions(cmd, rows, list.Next)
		},
	}
	cmd.Flags().IntVar(&page.Limit, "limit", 0, "at most so many; 0: the server's default")
	cmd.Flags().StringVar(&page.After, "after", "", "go on after this place, as the page before says")
	addOutput(cmd, &format)
	return cmd
}

func printRevisions(cmd *cobra.Command, rows [][]string, next string) error {
	if err := printTable(cmd.OutOrStdout(), []string{"REVISION", "AT", "AUTHOR", "CHANGED", "REASON"}, rows); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "there are more: --after '%s'\n", next)
	}
	return nil
}

func revisionRow(v *takt.JobRevision) []string {
	const most = 4
	var fields []string
	for _, c := range v.Changes {
		fields = append(fields, c.Field)
	}
	if len(fields) > most {
		fields = append(fields[:most], fmt.Sprintf("and %d more", len(fields)-most))
	}
	if v.Revision == 1 {
		fields = []string{"created"}
	}
	return []string{strconv.FormatInt(v.Revision, 10), v.At.Local().Format(time.RFC3339), v.Author, strings.Join(fields, ", "), v.Reason}
}

func newRollbackCommand(g *global) *cobra.Command {
	var (
		w              who
		to, ifRevision int64
		format         string
	)
	cmd := &cobra.Command{
		Use:   "rollback JOB|calendar/CALENDAR --to REVISION",
		Short: "Make a new revision that says what an older one said",
		Long: `Make a new revision that says what an older one said. Nothing is taken out of the history, and nothing of
the past fires. Executions keep the revision that they began with.`,
		Example: `  takt rollback reindex --to 12 --reason "new tariff is wrong"
  takt rollback calendar/cn-workdays --to 2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 1 || ifRevision < 0 {
				return usage("--to REVISION is missing: `takt history " + args[0] + "` lists them")
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			if name, is := ofCalendar(args[0]); is {
				return calendarRollback(cmd, c, name, format, to, w.options(ifRevision))
			}
			j, err := c.RollbackJob(cmd.Context(), args[0], to, w.options(ifRevision))
			if err != nil {
				return explain(cmd.Context(), "cannot roll back job "+args[0], err)
			}
			return printChanged(cmd, format, &j, fmt.Sprintf("%s says what revision %d said, revision %d", args[0], to, j.Metadata.Revision))
		},
	}
	cmd.Flags().Int64Var(&to, "to", 0, "the older revision")
	cmd.Flags().Int64Var(&ifRevision, "if-revision", 0, "refuse unless the job stands at this revision")
	w.addFlags(cmd)
	addOutput(cmd, &format)
	return cmd
}

// printChanged prints a line, or the job in JSON.
func printChanged(cmd *cobra.Command, format string, j *takt.Job, line string) error {
	if isData(format) {
		return printData(cmd.OutOrStdout(), format, j)
	}
	if j.Status != nil && j.Status.Effect == "pending" {
		line += ", pending"
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), printable(line))
	return err
}
