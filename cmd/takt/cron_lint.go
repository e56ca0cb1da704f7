package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
match either of two fields, times that a clock skips or shows twice, years that have passed, calendars of the same files that leave
nothing open, and many jobs that are due at midnight together. Exit code 1 when something was found, 2 when an expression or a file is invalid (one that can never fire is).

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
	if len(docs) == 0 {
		return nil, usage("the files hold no document")
	}
	items, known := lintCalendars(docs)
	midnight := map[string]int{} // by zone
	for i := range docs {
		for _, one := range schedulesOf(&docs[i], known) {
			s, err := schedule.Parse(one.spec, time.Unix(0, 0))
			if err != nil { // without its calendars it was checked when the file was read
				return nil, &failure{code: exitUsage, what: one.where, why: err.Error(), todo: hintOf(err)}
			}
			items = append(items, lintOf(one.where, one.spec.Cron, s)...)
			items = append(items, lintClosed(&one, s)...)
			if pilesUp(&one.spec, s) {
				midnight[schedule.Zone(s).String()]++
			}
		}
	}
	return append(items, lintMidnight(midnight)...), nil
}

func hintOf(err error) string {
	if bad, ok := errors.AsType[*schedule.Error](err); ok {
		return bad.Hint
	}
	return ""
}

// mostOfDay is how many instants a day may have of a schedule that adds to a midnight: one for each hour of the longest day. What is
// due more often is due all the time.
const mostOfDay = 25

// pilesUp tells whether a schedule adds to what is due at the next midnight.
func pilesUp(spec *schedule.Spec, s schedule.Schedule) bool {
	if anchored := spec.Every != 0 && spec.Phase == 0; anchored {
		return false // it counts from a creation that no file tells
	}
	today := time.Now().In(schedule.Zone(s))
	midnight := time.Date(today.Year(), today.Month(), today.Day()+1, 0, 0, 0, 0, today.Location())
	if !schedule.Matches(s, midnight) {
		return false
	}
	n, _, done := schedule.Count(s, midnight.Add(-time.Nanosecond), midnight.AddDate(0, 0, 1).Add(-time.Nanosecond), mostOfDay)
	return done && n <= mostOfDay
}

// lintMidnight finds the time zones in whose midnight too many schedules are due together.
func lintMidnight(midnight map[string]int) (items []lintItem) {
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
	return items
}

// lintCalendars finds calendars that are never open. known are those of the documents, by namespace and name.
func lintCalendars(docs []jobfile.Doc) (items []lintItem, known map[string]*schedule.Calendar) {
	items, known = []lintItem{}, map[string]*schedule.Calendar{}
	for i := range docs {
		d := docs[i].Calendar
		if d == nil {
			continue
		}
		k := jobfile.CalendarOf(&d.Spec).Calendar
		known[placeOf(&docs[i])+"/"+d.Metadata.Name] = &k
		each := schedule.Spec{Cron: "* * * * *", Calendars: []string{d.Metadata.Name}, Resolve: func(string) *schedule.Calendar { return &k }}
		s, err := schedule.Parse(each, time.Unix(0, 0))
		if err != nil {
			continue // it was checked when the file was read
		}
		if _, open := s.Next(time.Now()); !open {
			items = append(items, lintItem{Where: fmt.Sprintf("%s:%d calendar %s", docs[i].File, docs[i].Line, d.Metadata.Name),
				Finding: schedule.Finding{Rule: "never_open", Text: "no day to come is open: what keeps to it never fires", Hint: "list the open days under open, or close fewer"}})
		}
	}
	return items, known
}

// lintClosed finds that the calendars of a schedule leave none of its instants.
func lintClosed(one *placedSpec, s schedule.Schedule) []lintItem {
	now := time.Now()
	if _, fires := s.Next(now); fires || len(one.spec.Calendars) == 0 {
		return nil
	}
	bare := one.spec
	bare.Calendars, bare.Closed = nil, ""
	always, err := schedule.Parse(bare, time.Unix(0, 0))
	if err != nil {
		return nil // it cannot do without
	}
	if _, fires := always.Next(now); !fires {
		return nil // calendars are not what keeps it from that
	}
	return []lintItem{{one.where, one.spec.Cron, schedule.Finding{Rule: "always_closed",
		Text: fmt.Sprintf("it never fires: all of its instants to come are closed by %s", strings.Join(one.spec.Calendars, ", ")), Hint: "give the calendars the days to come"}}}
}

// placedSpec is a schedule with where it stands.
type placedSpec struct {
	where string
	field string // of the document
	spec  schedule.Spec
}

// placeOf is the namespace of a document.
func placeOf(doc *jobfile.Doc) string { return cmp.Or(doc.Namespace(), "default") }

// schedulesOf are the schedules of a document with those of their calendars that are known; others are taken to be open.
func schedulesOf(doc *jobfile.Doc, known map[string]*schedule.Calendar) (all []placedSpec) {
	j := &doc.Job
	resolve := func(name string) *schedule.Calendar {
		if k := known[placeOf(doc)+"/"+name]; k != nil {
			return k
		}
		return &schedule.Calendar{}
	}
	add := func(name, field string, s *takt.ScheduleSpec) {
		spec := jobfile.SpecOf(s)
		spec.Resolve = resolve
		spec.Seed = job.Seed(placeOf(doc), j.Metadata.Name)
		all = append(all, placedSpec{fmt.Sprintf("%s:%d %s %s", doc.File, doc.Line, j.Metadata.Name, name), field, spec})
	}
	if j.Spec.Schedule != nil {
		add("schedule", "spec.schedule", j.Spec.Schedule)
	}
	for i := range j.Spec.Schedules {
		one := j.Spec.Schedules[i].Schedule()
		add("schedules."+j.Spec.Schedules[i].Name, fmt.Sprintf("spec.schedules[%d]", i), &one)
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
