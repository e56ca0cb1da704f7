package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/ical"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/jobfile"
	"github.com/taktsched/takt/internal/schedule"
)

func newImportCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Make documents of what other programs write"}
	cmd.AddCommand(newImportCalendarCommand(g))
	return cmd
}

// importCalendar holds the flags of import calendar.
type importCalendar struct {
	who
	calendar, zone string
	open, weekly   []string
	through        int
	apply          bool
	format         string
}

func newImportCalendarCommand(g *global) *cobra.Command {
	var m importCalendar
	cmd := &cobra.Command{
		Use:   "calendar FILE.ics|- --name CALENDAR",
		Short: "Make a calendar of the events of an iCalendar file",
		Long: `Make a calendar of the events of an iCalendar file (.ics): every whole day that an event takes is closed. Events
whose summary holds the text of --open are make-up workdays: their days are open. The document is printed, or
applied with --apply.

Events are dates, or times from midnight to midnight of one time zone. A yearly rule on a date closes it each
year; one with an end, an interval or an nth weekday is written out as dates, without an end up to the year
--through. What a calendar cannot say is refused with its line: parts of a day, other rules, exceptions.`,
		Example: `  takt import calendar holidays.ics --name de-holidays --weekly MON-FRI > calendars/de.yaml
  takt import calendar cn.ics --name cn-workdays --weekly MON-FRI --open 补班 --apply --reason "2026"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := m.read(cmd, args[0])
			if err != nil {
				return err
			}
			if m.apply {
				return m.put(cmd, g, doc)
			}
			if m.format == "yaml" {
				return printDocuments(cmd.OutOrStdout(), []any{doc})
			}
			return printData(cmd.OutOrStdout(), m.format, doc)
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.calendar, "name", "", "name of the calendar")
	f.StringVar(&m.zone, "time-zone", "", "zone whose dates these are (default: the one that the file's times name, else that of each schedule)")
	f.StringArrayVar(&m.open, "open", nil, "events whose summary holds this text are open days; repeatable")
	f.StringSliceVar(&m.weekly, "weekly", nil, "open weekdays, such as MON-FRI (default: all)")
	f.IntVar(&m.through, "through", 0, "last year up to which rules without an end are written out (default: five years from now)")
	f.BoolVar(&m.apply, "apply", false, "apply the calendar instead of printing it")
	m.addFlags(cmd)
	addForms(cmd, &m.format, []string{"yaml", "json"})
	return cmd
}

// read makes the document; what is wrong with the file is said on standard error.
func (m *importCalendar) read(cmd *cobra.Command, file string) (*takt.Calendar, error) {
	if !job.ValidName(m.calendar) {
		return nil, usage("--name CALENDAR is missing, or no name: 1 to 63 lower-case letters, digits, '.' and '-'")
	}
	label, text, err := readFile(cmd.Context(), file, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	if m.through == 0 {
		m.through = time.Now().Year() + 5
	}
	days, found := ical.Parse(string(text), ical.Options{Open: m.open, Through: m.through})
	var faults jobfile.Errors
	for _, f := range found {
		faults = append(faults, &jobfile.Error{File: label, Line: f.Line, Column: 1, Message: f.Message, Hint: f.Hint})
	}
	if len(faults) > 0 {
		return nil, badFile(cmd.ErrOrStderr(), faults)
	}
	if m.zone != "" && days.TimeZone != "" && m.zone != days.TimeZone {
		return nil, usage(fmt.Sprintf("--time-zone %s: times in the file are of %s", m.zone, days.TimeZone))
	}
	for _, note := range days.Notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", printable(note))
	}
	doc := &takt.Calendar{APIVersion: takt.APIVersion, Kind: "Calendar", Metadata: takt.CalendarMetadata{Name: m.calendar},
		Spec: takt.CalendarSpec{Title: days.Title, TimeZone: firstText(m.zone, days.TimeZone), Weekly: m.weekly, Open: documentDates(days.Open), Closed: documentDates(days.Closed)}}
	spec := jobfile.CalendarOf(&doc.Spec)
	if err := spec.Validate(); err != nil {
		return nil, usage(strings.TrimPrefix(err.Error(), "spec."))
	}
	return doc, nil
}

func documentDates(all []schedule.Dates) (out []takt.CalendarDates) {
	for _, d := range all {
		out = append(out, takt.CalendarDates{From: string(d.From), To: string(d.To), Name: d.Name})
	}
	return out
}

func (m *importCalendar) put(cmd *cobra.Command, g *global, doc *takt.Calendar) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	out, err := c.Apply(cmd.Context(), takt.ApplyRequest{Calendars: []takt.ApplyCalendar{{Calendar: *doc}}, Author: m.name(), Reason: m.reason})
	if err != nil {
		return explain(cmd.Context(), "cannot apply calendar "+doc.Metadata.Name, err)
	}
	if cmd.Flags().Changed("output") {
		return printData(cmd.OutOrStdout(), m.format, out.Calendars[0])
	}
	return printAppliedCalendar(cmd.OutOrStdout(), &out.Calendars[0], false)
}
