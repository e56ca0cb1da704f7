package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taktsched/takt/internal/schedule"
)

const maxCronCount = 1000

// cronItem is one planned instant as `takt cron next -o json` prints it.
type cronItem struct {
	At    string `json:"at"`             // RFC 3339, UTC
	Local string `json:"local"`          // RFC 3339 with the offset of the time zone
	Note  string `json:"note,omitempty"` // what a step of the clock did
}

// cronItems is a list of planned instants, with how the expression was read.
type cronItems struct {
	Items    []cronItem       `json:"items"`
	Dialect  schedule.Dialect `json:"dialect"`
	TimeZone string           `json:"timeZone"`
	Excluded []cronItem       `json:"excluded,omitempty"` // what calendars leave out between them, and a step of the clock behind them
}

func newCronCommand() *cobra.Command {
	cron := &cobra.Command{Use: "cron", Short: "Look at cron expressions; needs no server"}
	cron.AddCommand(newCronNextCommand(), newCronPrevCommand(), newCronBetweenCommand(), newCronExplainCommand(), newCronLintCommand())
	cron.SetFlagErrorFunc(expressionOrFlag)
	return cron
}

// expressionOrFlag words what is wrong with a flag, which may have been meant as an expression.
func expressionOrFlag(cmd *cobra.Command, err error) error {
	fault := flagFault(err)
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if f, is := errors.AsType[*failure](fault); ok && is && strings.ContainsAny(unknown.GetSpecifiedName()+unknown.GetSpecifiedShortnames(), " *,/0123456789") {
		f.todo = fmt.Sprintf("an expression that begins with - goes behind --, such as `%s -- \"-1 * * * *\"`", cmd.CommandPath())
	}
	return fault
}

const cronDialects = `Five fields: minute hour day-of-month month day-of-week; with six, seconds come first. Six or seven with one of
? L W # are read as Quartz (second minute hour day-of-month month day-of-week [year], Sunday is 1), or say --dialect.
Or one of @hourly @daily @weekly @monthly @yearly. H is a value that --seed (a job's name) chooses.`

// cronFlags say how an expression is read.
type cronFlags struct {
	dialect, zone, gap, overlap, seed, format string
	cronCalendars
}

func (c *cronFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.dialect, "dialect", "", "unix5, seconds6 or quartz (default: what the expression looks like)")
	f.StringVar(&c.zone, "tz", "", "time zone, an IANA name (default UTC)")
	f.StringVar(&c.gap, "gap", "", "what becomes of times of day that a clock skips: next (default), shift or skip")
	f.StringVar(&c.overlap, "overlap", "", "what becomes of times of day that a clock shows twice: first (default), last or both")
	f.StringVar(&c.seed, "seed", "", "what H is drawn from, such as namespace/job")
	f.String("namespace", "", "") // hides the global flag, which would claim -n and has no meaning here
	if err := f.MarkHidden("namespace"); err != nil {
		panic(err) // the flag was defined the line before
	}
	addOutput(cmd, &c.format)
}

// parseFor reads an expression with its calendars.
func (c *cronFlags) parseFor(cmd *cobra.Command, expr string) (schedule.Schedule, error) {
	if err := c.load(cmd); err != nil {
		return nil, err
	}
	if c.seed == "" && schedule.Hashed(expr) {
		fmt.Fprintln(cmd.ErrOrStderr(), "H has the value of no job here: that of a job differs, --seed NAMESPACE/NAME shows it")
	}
	return c.parse(expr)
}

// parse reads an expression. A fault of it is wrong usage, with its place.
func (c *cronFlags) parse(expr string) (schedule.Schedule, error) {
	dialect := schedule.Dialect(c.dialect)
	if c.dialect == "unix" {
		dialect = schedule.Unix5
	}
	spec := schedule.Spec{Cron: expr, Dialect: dialect, TimeZone: c.zone, Seed: c.seed,
		DST:       schedule.DST{Gap: schedule.GapPolicy(c.gap), Overlap: schedule.OverlapPolicy(c.overlap)},
		Calendars: c.names, Closed: schedule.ClosedPolicy(c.closed), Resolve: c.resolve}
	if expr == "" {
		return nil, usage(`the expression is empty: write one such as "30 2 * * *"`)
	}
	s, err := schedule.Parse(spec, time.Time{})
	if bad, ok := errors.AsType[*schedule.Error](err); ok {
		return nil, &failure{code: exitUsage, what: fmt.Sprintf("%.*q", schedule.MaxText, expr), why: bad.Error(), todo: bad.Hint}
	}
	return s, err
}

func oneExpression(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("one expression is needed, in quotes: " + cmd.CommandPath() + ` "30 2 * * *"`)
	}
	return nil
}

func checkCount(count int) error {
	if count < 1 || count > maxCronCount {
		return usage(fmt.Sprintf("-n %d: it must be from 1 to %d", count, maxCronCount))
	}
	return nil
}

// print writes planned instants, and what calendars leave out behind from, up to until.
func (c *cronFlags) print(cmd *cobra.Command, s schedule.Schedule, instants []time.Time, from, until time.Time) error {
	zone := schedule.Zone(s)
	list := cronItems{Items: []cronItem{}, Dialect: schedule.Reading(s), TimeZone: zone.String()}
	item := func(at time.Time, note string) cronItem {
		return cronItem{At: at.UTC().Format(time.RFC3339), Local: at.In(zone).Format(time.RFC3339), Note: note}
	}
	for _, at := range instants {
		list.Items = append(list.Items, item(at, schedule.Note(s, at)))
	}
	left, more := schedule.Excluded(s, from, until, maxCronCount)
	for _, x := range left {
		list.Excluded = append(list.Excluded, item(x.At, x.Why))
	}
	noted := from // a drop before an instant is a note of that
	for _, at := range instants {
		noted = later(noted, at)
	}
	dropped := schedule.DroppedBetween(s, noted, until, maxCronCount)
	if more {
		fmt.Fprintf(cmd.ErrOrStderr(), "calendars leave out more than the %d that are shown\n", maxCronCount)
	}
	all := slices.Concat(list.Items, list.Excluded)
	for _, x := range dropped {
		list.Excluded = append(list.Excluded, item(x.At, x.Why))
	}
	slices.SortStableFunc(all, func(a, b cronItem) int { return strings.Compare(a.At, b.At) })
	if len(instants) > 1 && instants[1].Before(instants[0]) {
		slices.Reverse(all)
	}
	rows := make([][]string, 0, len(all))
	for _, i := range all {
		rows = append(rows, []string{i.Local, i.At, i.Note})
	}
	if isData(c.format) {
		return printData(cmd.OutOrStdout(), c.format, list)
	}
	c.tellDialect(cmd, list.Dialect)
	for _, x := range dropped {
		fmt.Fprintf(cmd.ErrOrStderr(), "at %s %s\n", x.At.In(zone).Format(time.RFC3339), x.Why)
	}
	return printTable(cmd.OutOrStdout(), []string{"LOCAL", "UTC", "NOTE"}, rows)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// tellDialect says on standard error what was chosen for an expression without a declared dialect.
func (c *cronFlags) tellDialect(cmd *cobra.Command, d schedule.Dialect) {
	switch {
	case c.dialect != "":
	case d == schedule.Quartz:
		fmt.Fprintln(cmd.ErrOrStderr(), "read as Quartz: second minute hour day-of-month month day-of-week [year], Sunday is 1")
	case d == schedule.Seconds6:
		fmt.Fprintln(cmd.ErrOrStderr(), "read as seconds6: second minute hour day-of-month month day-of-week, Sunday is 0")
	default:
		fmt.Fprintln(cmd.ErrOrStderr(), "read as unix5: minute hour day-of-month month day-of-week, Sunday is 0")
	}
}

func newCronNextCommand() *cobra.Command {
	var c cronFlags
	var from string
	var count int
	cmd := &cobra.Command{
		Use:   `next "EXPR"`,
		Short: "Show the next planned instants of a cron expression",
		Long:  "Show the next planned instants of a cron expression, and what steps of the clock and calendars do to them.\n\n" + cronDialects,
		Example: `  takt cron next "30 2 * * 1-5" --tz Europe/Berlin -n 3
  takt cron next "0 0 9 ? * 6#3" --dialect quartz --tz Asia/Shanghai
  takt cron next "0 * * * *" --tz America/New_York --from 2026-03-08T00:00 -o json
  takt cron next "0 9 * * *" --calendar holidays.ics --closed next`,
		Args: oneExpression,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCount(count); err != nil {
				return err
			}
			s, err := c.parseFor(cmd, args[0])
			if err != nil {
				return err
			}
			at, err := cronAfter("--from", from, schedule.Zone(s))
			if err != nil {
				return err
			}
			instants, _ := walk(s, at, time.Time{}, count)
			last := at
			if len(instants) > 0 {
				last = instants[len(instants)-1]
			}
			if len(instants) < count {
				tellEnd(cmd, s, last)
			}
			return c.print(cmd, s, instants, at, last)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "show what comes after this instant: RFC 3339, or 2026-03-08T00:00 in the time zone, or in another one 2026-03-08T00:00[Asia/Shanghai] (default now)")
	cmd.Flags().IntVarP(&count, "count", "n", 5, fmt.Sprintf("how many to show, at most %d", maxCronCount))
	c.add(cmd)
	c.cronCalendars.add(cmd)
	return cmd
}

// walk lists planned instants after from, at most count and none after until (the zero time: no end). more: there
// are others.
func walk(s schedule.Schedule, from, until time.Time, count int) (instants []time.Time, more bool) {
	for {
		next, ok := s.Next(from)
		if !ok || !until.IsZero() && next.After(until) {
			return instants, false
		}
		if len(instants) == count {
			return instants, true
		}
		instants, from = append(instants, next), next
	}
}

func newCronPrevCommand() *cobra.Command {
	var c cronFlags
	var from string
	var count int
	cmd := &cobra.Command{
		Use:   `prev "EXPR"`,
		Short: "Show the planned instants of a cron expression before now",
		Long:  "Show the planned instants of a cron expression before now or before --from, newest first.\n\n" + cronDialects,
		Example: `  takt cron prev "30 2 * * 1-5" --tz Europe/Berlin -n 3
  takt cron prev "0 0 0 L * ?" --from 2026-03-08T00:00 -o json`,
		Args: oneExpression,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCount(count); err != nil {
				return err
			}
			s, err := c.parseFor(cmd, args[0])
			if err != nil {
				return err
			}
			at, err := cronInstant("--from", from, schedule.Zone(s))
			if err != nil {
				return err
			}
			var instants []time.Time
			until := at
			for range count {
				prev, ok := schedule.Prev(s, at)
				if !ok {
					tellBegin(cmd, s, at)
					break
				}
				instants, at = append(instants, prev), prev
			}
			return c.print(cmd, s, instants, at, until.Add(-1))
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "show what comes before this instant: RFC 3339, or 2026-03-08T00:00 in the time zone, or in another one 2026-03-08T00:00[Asia/Shanghai] (default now)")
	cmd.Flags().IntVarP(&count, "count", "n", 5, fmt.Sprintf("how many to show, at most %d", maxCronCount))
	c.add(cmd)
	c.cronCalendars.add(cmd)
	return cmd
}

func newCronBetweenCommand() *cobra.Command {
	var c cronFlags
	var from, to string
	var count int
	cmd := &cobra.Command{
		Use:   `between "EXPR" --from T --to T`,
		Short: "Show the planned instants of a cron expression in a stretch of time",
		Long: `Show the planned instants of a cron expression after --from up to and with --to, at most -n; when there are more, that is
said on standard error.

` + cronDialects,
		Example: `  takt cron between "0 * * * *" --tz Europe/Berlin --from 2026-03-29T00:00 --to 2026-03-29T06:00`,
		Args:    oneExpression,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCount(count); err != nil {
				return err
			}
			s, err := c.parseFor(cmd, args[0])
			if err != nil {
				return err
			}
			after, err := cronAfter("--from", from, schedule.Zone(s))
			if err != nil {
				return err
			}
			if to == "" {
				return usage("--to is missing: until when?")
			}
			until, err := cronInstant("--to", to, schedule.Zone(s))
			if err != nil {
				return err
			}
			if until.Before(after) {
				return usage(fmt.Sprintf("--to %s comes before --from", to))
			}
			instants, more := walk(s, after, until, count)
			if len(instants) == 0 {
				tellNone(cmd, s, after, until)
			}
			if more {
				until = instants[len(instants)-1] // what calendars leave out is shown so far, too
				if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "there are more than %d; raise -n or ask on from the last one\n", count); err != nil {
					return fmt.Errorf("write the note: %w", err)
				}
			}
			return c.print(cmd, s, instants, after, until)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "RFC 3339, or 2026-03-08T00:00 in the time zone, or in another one 2026-03-08T00:00[Asia/Shanghai] (default now)")
	cmd.Flags().StringVar(&to, "to", "", "likewise; required")
	cmd.Flags().IntVarP(&count, "count", "n", 100, fmt.Sprintf("how many to show, at most %d", maxCronCount))
	c.add(cmd)
	c.cronCalendars.add(cmd)
	return cmd
}

// cronInstant reads an instant of a flag; a text without an offset is read on the clocks of the zone. Of a reading that they show
// twice, --to means the last and any other the first.
func cronInstant(flag, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}
	at, _, err := instantOf(flag, text, zone)
	return at, err
}

// cronAfter is cronInstant for a beginning that is not included. What comes in the place of a reading that a step of the clock skipped
// comes behind it.
func cronAfter(flag, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}
	at, step, err := instantOf(flag, text, zone)
	if step != nil {
		at = at.Add(-time.Nanosecond)
	}
	return at, err
}
