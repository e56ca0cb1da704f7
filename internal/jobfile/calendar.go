package jobfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// calendarSchema is what the API's schema says of a calendar.
var calendarSchema = sync.OnceValues(func() (huma.Registry, *huma.Schema) {
	registry := huma.NewMapRegistry(definitions, huma.DefaultSchemaNamer)
	return registry, registry.Schema(reflect.TypeFor[takt.Calendar](), true, "Calendar")
})

// schemas are those of the kinds of documents, by the words that name them.
var schemas = map[string]func() (huma.Registry, *huma.Schema){"job": jobSchema, "calendar": calendarSchema}

// readCalendar reads a document of kind Calendar.
func (d *Doc) readCalendar(text []byte, faults Errors) Errors {
	var c takt.Calendar
	if err := json.Unmarshal(text, &c); err != nil {
		if len(faults) == 0 {
			faults = Errors{d.undecodable(err)}
		}
		return faults
	}
	if e := job.CheckLabels(c.Metadata.Labels); e != nil && !faults.below("metadata.labels") {
		faults = append(faults, d.At(e.Field, e.Message, e.Hint))
	}
	if !faults.below("spec") {
		spec := CalendarOf(&c.Spec)
		if err := spec.Validate(); err != nil {
			e, _ := err.(*job.Error) //nolint:errorlint // exactly one of ours
			faults = append(faults, d.At(e.Field, e.Message, e.Hint))
		}
	}
	if len(faults) == 0 {
		d.Calendar = &c
	}
	return faults.inOrder()
}

// CalendarOf is a calendar as the calculus takes it.
func CalendarOf(s *takt.CalendarSpec) job.CalendarSpec {
	dates := func(all []takt.CalendarDates) (out []schedule.Dates) {
		for _, d := range all {
			out = append(out, schedule.Dates{From: schedule.Date(d.From), To: schedule.Date(d.To), Name: d.Name})
		}
		return out
	}
	c := job.CalendarSpec{Title: s.Title, Calendar: schedule.Calendar{TimeZone: s.TimeZone, Weekly: s.Weekly, Open: dates(s.Open), Closed: dates(s.Closed)}}
	for _, w := range s.Daily {
		c.Daily = append(c.Daily, schedule.Window{From: w.From, To: w.To})
	}
	return c
}

// ID names a document among others: kind, namespace and name.
func (d *Doc) ID(standard string) (kind, namespace, name string) {
	kind, namespace, name = "job", d.Job.Metadata.Namespace, d.Job.Metadata.Name
	if d.Calendar != nil {
		kind, namespace, name = "calendar", d.Calendar.Metadata.Namespace, d.Calendar.Metadata.Name
	}
	if namespace == "" {
		namespace = standard
	}
	return kind, namespace, name
}

// Namespace is what the document says; "" when it does not.
func (d *Doc) Namespace() string {
	_, namespace, _ := d.ID("")
	return namespace
}

// alwaysOpen stands for calendars where none is known: only the server knows what they say.
func alwaysOpen(string) *schedule.Calendar { return &schedule.Calendar{} }

// checkCalendarNames judges the names of calendars, which no tag can.
func (d *Doc) checkCalendarNames(names []string, field string) (faults Errors) {
	seen := map[string]bool{}
	for i, name := range names {
		if !job.ValidName(name) || seen[name] {
			faults = append(faults, d.At(fmt.Sprintf("%s.calendars[%d]", field, i), fmt.Sprintf("%.64q is no name, or it is there twice", name),
				"names are 1 to 63 lower-case letters, digits, '.' and '-', with a letter or digit at both ends"))
		}
		seen[name] = true
	}
	return faults
}
