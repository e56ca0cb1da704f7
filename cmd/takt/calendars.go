package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
)

var calendarHeader = []string{"NAME", "WEEKLY", "HOURS", "CLOSED", "OPEN", "ZONE", "REVISION", "LABELS", "TITLE"}

func calendarRow(c *takt.Calendar) []string {
	s := &c.Spec
	weekly, hours := firstText(strings.Join(s.Weekly, ","), "every day"), "all"
	if len(s.Daily) > 0 {
		var all []string
		for _, w := range s.Daily {
			all = append(all, w.From+"-"+w.To)
		}
		hours = strings.Join(all, ",")
	}
	if c.Status != nil && c.Status.Unfit != "" {
		weekly = "unfit: " + c.Status.Unfit
	}
	return []string{c.Metadata.Name, weekly, hours, strconv.Itoa(len(s.Closed)), strconv.Itoa(len(s.Open)), s.TimeZone,
		strconv.FormatInt(c.Metadata.Revision, 10), labelsText(c.Metadata.Labels), s.Title}
}

func (q *get) calendars(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	if len(args) == 1 {
		one, err := c.Calendar(ctx, args[0])
		return &listing{value: one, header: calendarHeader, narrow: 7, rows: [][]string{calendarRow(&one)}}, err
	}
	list, err := c.Calendars(ctx, q.page)
	l := &listing{value: list, header: calendarHeader, narrow: 7, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, calendarRow(&list.Items[i]))
	}
	return l, err
}

func describeCalendar(ctx context.Context, c *takt.Client, name string) (*account, error) {
	one, err := c.Calendar(ctx, name)
	if err != nil {
		return nil, err
	}
	row := calendarRow(&one)
	a := &account{value: one}
	a.fact("Calendar", row[0])
	a.fact("Title", one.Spec.Title)
	a.fact("Labels", row[7])
	a.fact("Open weekdays", row[1])
	a.fact("Open hours", row[2])
	a.fact("Time zone", firstText(row[5], "that of each schedule"))
	a.fact("Revision", row[6])
	a.when("Changed", one.Metadata.UpdatedAt)
	if one.Status != nil {
		if one.Status.Unfit != "" {
			a.fact("To do", "apply the calendar again; `takt history calendar/"+name+"` shows what it was")
		}
		a.fact("Kept to by", firstText(strings.Join(one.Status.Jobs, ", "), "no job"))
	}
	for _, x := range []struct {
		title string
		dates []takt.CalendarDates
	}{{"Closed", one.Spec.Closed}, {"Open", one.Spec.Open}} {
		t := titled{title: x.title, header: []string{"FROM", "TO", "NAME"}}
		for _, d := range x.dates {
			t.rows = append(t.rows, []string{d.From, firstText(d.To, d.From), d.Name})
		}
		if len(t.rows) > 0 {
			a.tables = append(a.tables, t)
		}
	}
	return a, nil
}

// ofCalendar is the calendar that an argument such as calendar/cn names; false for the name of a job.
func ofCalendar(arg string) (name string, is bool) { return strings.CutPrefix(arg, "calendar/") }

func newDeleteCalendarCommand(g *global) *cobra.Command {
	var (
		w          who
		ifRevision int64
		format     string
	)
	cmd := &cobra.Command{
		Use:   "calendar CALENDAR",
		Short: "Delete a calendar that no job names",
		Long: `Delete a calendar. It is refused while a job's schedules name it. Its revisions stay readable: a calendar
that gets the name later goes on counting them.`,
		Example: `  takt delete calendar trading-2025 --reason "over"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if ifRevision < 0 {
				return usage("--if-revision must not be negative")
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			d, err := c.DeleteCalendar(cmd.Context(), args[0], w.options(ifRevision))
			if err != nil {
				return explain(cmd.Context(), "cannot delete calendar "+args[0], err)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, d)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "calendar %s deleted at revision %d\n", d.Name, d.Revision)
			return err
		},
	}
	cmd.Flags().Int64Var(&ifRevision, "if-revision", 0, "refuse unless the calendar stands at this revision")
	w.addFlags(cmd)
	addOutput(cmd, &format)
	return cmd
}

// calendarHistory is what `takt history calendar/NAME` prints.
func calendarHistory(cmd *cobra.Command, c *takt.Client, name, format string, page takt.Page) error {
	list, err := c.CalendarRevisions(cmd.Context(), name, page)
	if err != nil {
		return explain(cmd.Context(), "cannot read the history of calendar "+name, err)
	}
	if isData(format) {
		return printData(cmd.OutOrStdout(), format, list)
	}
	rows := make([][]string, len(list.Items))
	for i, v := range list.Items {
		rows[i] = revisionRow(&takt.JobRevision{Revision: v.Revision, At: v.At, Author: v.Author, Reason: v.Reason, Changes: v.Changes})
		switch {
		case v.Deleted:
			rows[i][3] = "deleted"
		case v.Calendar != nil && v.Calendar.Metadata.CreatedAt != nil && v.Calendar.Metadata.CreatedAt.Equal(v.At):
			rows[i][3] = "created"
		}
	}
	return printRevisions(cmd, rows, list.Next)
}

func calendarRollback(cmd *cobra.Command, c *takt.Client, name, format string, to int64, opt takt.ChangeOptions) error {
	k, err := c.RollbackCalendar(cmd.Context(), name, to, opt)
	if err != nil {
		return explain(cmd.Context(), "cannot roll back calendar "+name, err)
	}
	if isData(format) {
		return printData(cmd.OutOrStdout(), format, k)
	}
	line := fmt.Sprintf("calendar %s says what revision %d said, revision %d", name, to, k.Metadata.Revision)
	if k.Status != nil && k.Status.Effect == "pending" {
		line += ", pending"
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), printable(line))
	return err
}

func printAppliedCalendar(w io.Writer, x *takt.AppliedCalendar, dry bool) error {
	m := &x.Calendar.Metadata
	line := fmt.Sprintf("calendar %s %s, revision %d", m.Name, x.Action, m.Revision)
	if x.Jobs > 0 {
		line += "; " + counted(x.Jobs, "job") + " told"
	}
	if x.Effect == "pending" {
		line += ", pending"
	}
	if dry {
		line += " (dry run)"
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func printCalendarDiff(w io.Writer, x *takt.AppliedCalendar) error {
	if x.Action == "unchanged" {
		return nil
	}
	m := &x.Calendar.Metadata
	verb := map[string]string{"created": "would be created", "changed": "would change"}[x.Action]
	if x.Jobs > 0 {
		verb += ", and with it the schedules of " + counted(x.Jobs, "job")
	}
	if _, err := fmt.Fprintf(w, "calendar %s/%s %s\n", m.Namespace, m.Name, verb); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	printChanges(w, x.Changes)
	return nil
}

// bareCalendar is what a file would say.
func bareCalendar(c *takt.Calendar) takt.Calendar {
	return takt.Calendar{APIVersion: c.APIVersion, Kind: c.Kind, Metadata: takt.CalendarMetadata{Name: c.Metadata.Name, Labels: c.Metadata.Labels}, Spec: c.Spec}
}

// calendarsWith are the calendars that jobs name, and all others that match says yes to.
func calendarsWith(ctx context.Context, c *takt.Client, jobs []takt.Job, match func(map[string]string) bool) (all []takt.Calendar, err error) {
	named := map[string]bool{}
	for i := range jobs {
		if s := jobs[i].Spec.Schedule; s != nil {
			for _, name := range s.Calendars {
				named[name] = true
			}
		}
		for _, s := range jobs[i].Spec.Schedules {
			for _, name := range s.Calendars {
				named[name] = true
			}
		}
	}
	for page := (takt.Page{Limit: 500}); ; {
		list, err := c.Calendars(ctx, page)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			one := &list.Items[i]
			if !named[one.Metadata.Name] && !match(one.Metadata.Labels) {
				continue
			}
			if one.Status != nil && one.Status.Unfit != "" {
				return nil, &failure{code: exitConflict, what: "cannot export calendar " + one.Metadata.Name, why: "what is stored of it cannot be used: " + one.Status.Unfit,
					todo: "apply it again from its file"}
			}
			all = append(all, bareCalendar(one))
		}
		if page.After = list.Next; list.Next == "" {
			return all, nil
		}
	}
}

func (g *global) completeCalendars(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.complete(cmd, "calendars", args, typed, func(ctx context.Context, c *takt.Client) ([]cobra.Completion, error) {
		list, err := c.Calendars(ctx, takt.Page{Limit: 500})
		var all []cobra.Completion
		for i := range list.Items {
			all = append(all, cobra.CompletionWithDesc(list.Items[i].Metadata.Name, list.Items[i].Spec.Title))
		}
		return all, err
	})
}

// parted are the places of the jobs and of the calendars among documents, in the order in which a set names each kind.
func parted(docs []jobfile.Doc) (jobs, calendars []int) {
	for i := range docs {
		if docs[i].Calendar != nil {
			calendars = append(calendars, i)
		} else {
			jobs = append(jobs, i)
		}
	}
	return jobs, calendars
}

// countedDocuments says how many jobs, or documents when there are others.
func countedDocuments(docs []jobfile.Doc) string {
	if _, calendars := parted(docs); len(calendars) > 0 {
		return counted(len(docs), "document")
	}
	return counted(len(docs), "job")
}
