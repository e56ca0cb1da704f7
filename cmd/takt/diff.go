package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func newDiffCommand(g *global) *cobra.Command {
	var s set
	var format string
	cmd := &cobra.Command{
		Use:   "diff -f FILE|DIR|-",
		Short: "Show what apply would change",
		Long: `Show what apply would change: each field, and the next five planned instants before and after. The
server judges, nothing is written.

TAKT_EXTERNAL_DIFF names a program that shows the difference instead, such as 'diff -ru --color' or meld: it is called, without
a shell, with two directories in which every job and calendar that would change is a file, before and after.

Exit code 0: nothing would change; 1: something would; 2 and above: an error.`,
		Example: `  takt diff -f jobs/ -R
  takt diff -f jobs/ --prune -l app=billing`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			docs, err := s.read(cmd, g)
			if err != nil {
				return err
			}
			in := setOf(docs, g)
			in.DryRun, in.Prune = true, s.selector
			c, err := g.client()
			if err != nil {
				return err
			}
			out, err := c.Apply(cmd.Context(), in)
			if err != nil {
				return refusedSet(cmd, "cannot compare "+countedDocuments(docs), docs, err)
			}
			warn(cmd.ErrOrStderr(), warningsOf(docs, &out))
			if program := os.Getenv("TAKT_EXTERNAL_DIFF"); program != "" && format == "table" {
				return externalDiff(cmd, g, program, &out)
			}
			return printDiff(cmd.OutOrStdout(), &out, format)
		},
	}
	s.addFlags(cmd)
	addOutput(cmd, &format)
	return cmd
}

// printDiff ends with exit code 1 when there is a difference.
func printDiff(w io.Writer, r *takt.ApplyResult, format string) error {
	differs := slices.ContainsFunc(r.Items, differing) ||
		slices.ContainsFunc(r.Calendars, func(x takt.AppliedCalendar) bool { return x.Action != "unchanged" })
	if isData(format) {
		if err := printData(w, format, r); err != nil {
			return err
		}
	} else {
		for i := range r.Calendars {
			if err := printCalendarDiff(w, &r.Calendars[i]); err != nil {
				return err
			}
		}
		for i := range r.Items {
			if err := printJobDiff(w, &r.Items[i]); err != nil {
				return err
			}
		}
	}
	if differs {
		return &failure{code: exitNegative}
	}
	return nil
}

func printJobDiff(w io.Writer, x *takt.AppliedJob) error {
	m := &x.Job.Metadata
	if x.Action == "unchanged" {
		if sameFires(x) {
			return nil
		}
		if _, err := fmt.Fprintf(w, "job %s/%s would keep to changed calendars\n", m.Namespace, m.Name); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		return printFires(w, x)
	}
	verb := map[string]string{"created": "would be created", "changed": "would change", "pruned": "would be deleted"}[x.Action]
	if _, err := fmt.Fprintf(w, "job %s/%s %s\n", m.Namespace, m.Name, verb); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	printChanges(w, x.Changes)
	return printFires(w, x)
}

func printChanges(w io.Writer, all []takt.FieldChange) {
	for _, c := range all {
		if len(c.Before) > 0 {
			fmt.Fprintf(w, "  - %s: %s\n", c.Field, printable(string(c.Before)))
		}
		if len(c.After) > 0 {
			fmt.Fprintf(w, "  + %s: %s\n", c.Field, printable(string(c.After)))
		}
	}
}

// sameFires tells whether the next planned instants are the same before and after.
func sameFires(x *takt.AppliedJob) bool {
	return slices.EqualFunc(x.FiresBefore, x.Fires, func(a, b takt.Fire) bool { return fireText(&a) == fireText(&b) })
}

// printFires shows the next planned instants before and after side by side, unless they are the same.
func printFires(w io.Writer, x *takt.AppliedJob) error {
	var rows [][]string
	same := true
	for i := range max(len(x.Fires), len(x.FiresBefore)) {
		row := []string{"", ""}
		if i < len(x.FiresBefore) {
			row[0] = fireText(&x.FiresBefore[i])
		}
		if i < len(x.Fires) {
			row[1] = fireText(&x.Fires[i])
		}
		same = same && row[0] == row[1]
		rows = append(rows, row)
	}
	if x.Silence != "" {
		fmt.Fprintf(w, "  no instant to come: %s\n", printable(x.Silence))
	}
	if len(rows) == 0 {
		return nil
	}
	if same {
		_, err := fmt.Fprintln(w, "  next planned instants: the same")
		return err
	}
	var table strings.Builder
	if err := printTable(&table, []string{"NEXT BEFORE", "NEXT AFTER"}, rows); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := io.WriteString(w, "  "+line); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}
