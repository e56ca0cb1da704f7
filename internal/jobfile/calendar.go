package jobfile

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// calendarSchema is what the API's schema says of a calendar.
var calendarSchema = sync.OnceValues(func() (huma.Registry, *huma.Schema) {
	registry := huma.NewMapRegistry(definitions, huma.DefaultSchemaNamer)
	return registry, registry.Schema(reflect.TypeFor[takt.Calendar](), true, "Calendar")
})

// schemas are those of the kinds of documents, by the words that name them.
var schemas = map[string]func() (huma.Registry, *huma.Schema){"job": jobSchema, "calendar": calendarSchema}

// readCalendar reads a document of kind Calendar.
func (d *Doc) readCalendar(text []byte, namespace string, faults Errors) Errors {
	var c takt.Calendar
	if err := json.Unmarshal(text, &c); err != nil {
		if len(faults) == 0 {
			faults = Errors{d.undecodable("", err)}
		}
		return faults
	}
	namespace = cmp.Or(c.Metadata.Namespace, namespace)
	made := job.Calendar{Namespace: namespace, Name: c.Metadata.Name, Labels: c.Metadata.Labels, Spec: CalendarOf(&c.Spec)}
	known := faults
	for _, e := range job.FaultsOf(made.Check()) {
		part, _, _ := strings.Cut(e.Field, "[")
		if !known.below(part) && !known.has(e.Field) {
			faults = append(faults, d.At(e.Field, e.Message, e.Hint))
		}
	}
	if len(faults) == 0 {
		d.Calendar = &c
	}
	return faults.inOrder()
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
