package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/ical"
	"github.com/taktsched/takt/internal/jobfile"
	"github.com/taktsched/takt/internal/schedule"
)

// cronCalendars are calendars of files, for previews.
type cronCalendars struct {
	files  []string
	closed string
	names  []string
	known  map[string]*schedule.Calendar
}

func (c *cronCalendars) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&c.files, "calendar", nil, "file of calendars (documents of kind Calendar, or .ics) that the instants keep to; repeatable")
	f.StringVar(&c.closed, "closed", "", "with --calendar: what becomes of instants on closed days: skip (default), next or previous")
}

// load reads the files.
func (c *cronCalendars) load(cmd *cobra.Command) error {
	if c.closed != "" && len(c.files) == 0 {
		return usage("--closed goes with --calendar")
	}
	c.known = map[string]*schedule.Calendar{}
	for _, file := range c.files {
		label, text, err := readFile(cmd.Context(), file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if strings.EqualFold(filepath.Ext(file), ".ics") {
			err = c.addICal(cmd, label, text)
		} else {
			err = c.addDocuments(cmd, label, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cronCalendars) addICal(cmd *cobra.Command, label string, text []byte) error {
	days, found := ical.Parse(string(text), ical.Options{Through: time.Now().Year() + 5})
	var faults jobfile.Errors
	for _, f := range found {
		faults = append(faults, &jobfile.Error{File: label, Line: f.Line, Column: 1, Message: f.Message, Hint: f.Hint})
	}
	if len(faults) > 0 {
		return badFile(cmd.ErrOrStderr(), faults)
	}
	for _, note := range days.Notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", printable(note))
	}
	name := strings.TrimSuffix(filepath.Base(label), filepath.Ext(label))
	return c.put(name, schedule.Calendar{TimeZone: days.TimeZone, Open: days.Open, Closed: days.Closed})
}

func (c *cronCalendars) addDocuments(cmd *cobra.Command, label string, text []byte) error {
	docs, err := jobfile.Parse(label, text)
	if _, bad := errors.AsType[jobfile.Errors](err); bad {
		return badFile(cmd.ErrOrStderr(), err)
	}
	if err != nil {
		return err
	}
	before := len(c.names)
	for i := range docs {
		if d := docs[i].Calendar; d != nil {
			if err := c.put(d.Metadata.Name, jobfile.CalendarOf(&d.Spec).Calendar); err != nil {
				return err
			}
		}
	}
	if len(c.names) == before {
		return usage(label + " holds no document of kind Calendar")
	}
	return nil
}

func (c *cronCalendars) put(name string, k schedule.Calendar) error {
	if slices.Contains(c.names, name) {
		return usage(fmt.Sprintf("--calendar: two calendars have the name %.64q", name))
	}
	c.names, c.known[name] = append(c.names, name), &k
	return nil
}

func (c *cronCalendars) resolve(name string) *schedule.Calendar { return c.known[name] }

// tellEnd says on standard error why nothing comes after an instant, when nothing does.
func tellEnd(cmd *cobra.Command, s schedule.Schedule, after time.Time) {
	has := func(s schedule.Schedule) bool {
		_, ok := s.Next(after)
		return ok
	}
	if !has(s) {
		fmt.Fprintf(cmd.ErrOrStderr(), "no planned instant after %s: %s (%d years were looked at)\n",
			after.In(schedule.Zone(s)).Format(time.RFC3339), schedule.Silence(s, has), schedule.Horizon)
	}
}

// tellNone says on standard error that nothing comes in a stretch of time, and why or what comes behind it.
func tellNone(cmd *cobra.Command, s schedule.Schedule, after, until time.Time) {
	next, more := s.Next(until)
	if !more {
		tellEnd(cmd, s, after)
		return
	}
	zone := schedule.Zone(s)
	fmt.Fprintf(cmd.ErrOrStderr(), "no planned instant after %s up to %s: the next one is %s\n",
		after.In(zone).Format(time.RFC3339), until.In(zone).Format(time.RFC3339), next.In(zone).Format(time.RFC3339))
}

// tellBegin says on standard error why nothing comes before an instant, when nothing does.
func tellBegin(cmd *cobra.Command, s schedule.Schedule, before time.Time) {
	has := func(s schedule.Schedule) bool {
		_, ok := schedule.Prev(s, before)
		return ok
	}
	if !has(s) {
		fmt.Fprintf(cmd.ErrOrStderr(), "no planned instant before %s: %s\n", before.In(schedule.Zone(s)).Format(time.RFC3339), schedule.Silence(s, has))
	}
}
