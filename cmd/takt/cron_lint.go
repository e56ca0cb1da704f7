package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/jobfile"
	"github.com/taktsched/takt/internal/schedule"
)

func newCronExplainCommand() *cobra.Command {
	var c cronFlags
	var lang string
	cmd := &cobra.Command{
		Use:   `explain "EXPR"`,
		Short: "Say in words when a cron expression is due",
		Long:  "Say in words when a cron expression is due, in English or Chinese.\n\n" + cronDialects,
		Example: `  takt cron explain "30 2 * * 1-5" --tz Europe/Berlin
  takt cron explain "0 0 9 ? * 6#3" --lang zh`,
		Args: oneExpression,
		RunE: func(cmd *cobra.Command, args []string) error {
			if lang != schedule.English && lang != schedule.Chinese {
				return usage(fmt.Sprintf("--lang %.32q: it must be en or zh", lang))
			}
			s, err := c.parseFor(cmd, args[0])
			if err != nil {
				return err
			}
			text := schedule.Explain(s, lang)
			if isData(c.format) {
				return printData(cmd.OutOrStdout(), c.format, map[string]any{"text": text, "dialect": schedule.Reading(s),
					"timeZone": schedule.Zone(s).String(), "findings": schedule.Lint(s, time.Now())})
			}
			c.tellDialect(cmd, schedule.Reading(s))
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVar(&lang, "lang", schedule.English, "en or zh")
	c.add(cmd)
	c.cronCalendars.add(cmd)
	return cmd
}

// lintItem is one finding of `takt cron lint`.
type lintItem struct {
	Where string `json:"where"` // the expression, or file, job and schedule
	Cron  string `json:"cron,omitempty"`
	schedule.Finding
}

// pileUp is how many jobs may be due at one minute of midnight before it is worth a word.
const pileUp = 10

func newCronLintCommand() *cobra.Command {
	var c cronFlags
	var d documents
	cmd := &cobra.Command{
		Use:   `lint ["EXPR" …] [-f FILE|DIR|-]`,
		Short: "Look for what may surprise in cron expressions, or in the schedules of job files",
		Long: `Look for what may surprise in cron expressions, or in the schedules of job files: steps that leave uneven pauses, days that
match either of two fields, times that a clock skips or shows twice, years that have passed, and many jobs that are due at midnight
together. Exit code 1 when something was found, 2 when an expression or a file is invalid (one that can never fire is).

` + cronDialects,
		Example: `  takt cron lint "*/7 * * * *"
  takt cron lint -f jobs/ -R`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && len(d.files) == 0 {
				return usage("nothing to look at: give an expression in quotes, or -f")
			}
			items := []lintItem{}
			for _, expr := range args {
				s, err := c.parse(expr)
				if err != nil {
					return err
				}
				items = append(items, lintOf(expr, expr, s)...)
			}
			if len(d.files) > 0 {
				found, err := d.lint(cmd)
				if err != nil {
					return err
				}
				items = append(items, found...)
			}
			return printLint(cmd, c.format, items)
		},
	}
	d.addFlags(cmd)
	c.add(cmd)
	return cmd
}

func lintOf(where, expr string, s schedule.Schedule) (items []lintItem) {
	for _, f := range schedule.Lint(s, time.Now()) {
		items = append(items, lintItem{where, expr, f})
	}
	return items
}

// lint looks at the schedules of job files.
func (d *documents) lint(cmd *cobra.Command) ([]lintItem, error) {
	docs, err := readAll(cmd.Context(), "default", d.files, d.recursive, cmd.InOrStdin())
	if err != nil {
		return nil, badFile(cmd.ErrOrStderr(), err)
	}
	var items []lintItem
	midnight := map[string]int{} // by zone
	for i := range docs {
		for _, one := range schedulesOf(&docs[i]) {
			s, err := schedule.Parse(one.spec, time.Unix(0, 0))
			if err != nil {
				return nil, &failure{code: exitUsage, what: one.where, why: err.Error()} // it was checked when the file was read
			}
			items = append(items, lintOf(one.where, one.spec.Cron, s)...)
			if anchored := one.spec.Every != 0 && one.spec.Phase == 0; anchored {
				continue // it counts from a creation that no file tells
			}
			if today := time.Now().In(schedule.Zone(s)); schedule.Matches(s, time.Date(today.Year(), today.Month(), today.Day()+1, 0, 0, 0, 0, today.Location())) {
				midnight[schedule.Zone(s).String()]++
			}
		}
	}
	var zones []string
	for zone, n := range midnight {
		if n > pileUp {
			zones = append(zones, zone)
		}
	}
	slices.SortFunc(zones, func(a, b string) int { return cmp.Or(midnight[b]-midnight[a], cmp.Compare(a, b)) })
	for _, zone := range zones {
		items = append(items, lintItem{Where: zone, Finding: schedule.Finding{Rule: "midnight_pile_up",
			Text: fmt.Sprintf("%d schedules are due together at the next 00:00 of %s", midnight[zone], zone),
			Hint: "write H for the minute and the hour: it spreads jobs over the range, each at its own fixed place"}})
	}
	return items, nil
}

// placedSpec is a schedule with where it stands.
type placedSpec struct {
	where string
	spec  schedule.Spec
}

func schedulesOf(doc *jobfile.Doc) (all []placedSpec) {
	j := &doc.Job
	add := func(name string, s *takt.ScheduleSpec) {
		spec := jobfile.SpecOf(s)
		spec.Seed = job.Seed(cmp.Or(j.Metadata.Namespace, "default"), j.Metadata.Name)
		all = append(all, placedSpec{fmt.Sprintf("%s:%d %s %s", doc.File, doc.Line, j.Metadata.Name, name), spec})
	}
	if j.Spec.Schedule != nil {
		add("schedule", j.Spec.Schedule)
	}
	for i := range j.Spec.Schedules {
		one := j.Spec.Schedules[i].Schedule()
		add("schedules."+j.Spec.Schedules[i].Name, &one)
	}
	return all
}

func printLint(cmd *cobra.Command, format string, items []lintItem) error {
	rows := make([][]string, 0, len(items))
	for i := range items {
		rows = append(rows, []string{items[i].Where, items[i].Rule, items[i].Text, items[i].Hint})
	}
	var err error
	switch {
	case isData(format):
		err = printData(cmd.OutOrStdout(), format, map[string][]lintItem{"items": items})
	case len(items) == 0:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "nothing found")
	default:
		err = printTable(cmd.OutOrStdout(), []string{"WHERE", "RULE", "FOUND", "HINT"}, rows)
	}
	if err != nil || len(items) == 0 {
		return err
	}
	return &failure{code: exitNegative, what: fmt.Sprintf("%d finding(s)", len(items))}
}
