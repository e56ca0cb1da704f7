package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// PutCalendar creates or changes a calendar.
type PutCalendar struct {
	Calendar   job.Calendar // Namespace, Name, Labels and Spec
	IfRevision int64        // as in PutJob
	At         job.Instant
	Change     job.Change
}

// AppliedCalendar is what became of one calendar of a set.
type AppliedCalendar struct {
	Action   Action
	Before   *job.Calendar // newest revision before; nil when there was none
	Calendar job.Calendar  // newest revision now
	Jobs     int           // that named it before the set, and were told
	Written  []Written     // the last entry for each partition that was told, by number
}

// DeleteCalendar ends a calendar.
type DeleteCalendar struct {
	Namespace  string
	Name       string
	IfRevision int64 // > 0: only if the newest revision is this one
	At         job.Instant
	Change     job.Change
}

// CalendarRevision is one revision of a calendar with who made it and why.
type CalendarRevision struct {
	Calendar job.Calendar
	Change   job.Change
	Deleted  bool // it is the calendar's deletion, and says nothing
}

// Calendars is used by the use cases of calendars. They are written by ApplyJobs: the entries for the jobs that name one
// are in the transaction that changes it (R10). All definitions that a store gives out carry the calendars that they name,
// at their newest revision in that snapshot.
type Calendars interface {
	// Calendar: KindNotFound "calendar_not_found".
	Calendar(ctx context.Context, namespace, name string) (job.Calendar, error)
	// Calendars lists them by name.
	Calendars(ctx context.Context, namespace string, p Page) (rows []job.Calendar, next string, err error)
	// CalendarJobs lists the names of the jobs whose newest revision names a calendar.
	CalendarJobs(ctx context.Context, namespace, name string, p Page) (names []string, next string, err error)
	// CalendarRevision: KindNotFound "calendar_not_found", "revision_not_found"; a deletion is not found.
	CalendarRevision(ctx context.Context, namespace, name string, revision int64) (CalendarRevision, error)
	// CalendarRevisions lists them, newest first, over all lives of the name.
	CalendarRevisions(ctx context.Context, namespace, name string, p Page) (rows []CalendarRevision, next string, err error)
	// DeleteCalendar: KindNotFound; KindConflict "revision_changed"; KindConflict "calendar_in_use" when a job names it.
	DeleteCalendar(ctx context.Context, d DeleteCalendar) (job.Calendar, error)
}

// CheckPutCalendar refuses a calendar with a text that cannot be kept.
func CheckPutCalendar(p *PutCalendar) error {
	c := &p.Calendar
	all := append([]string{c.Namespace, c.Name, flat(c.Labels), p.Change.By, p.Change.Reason}, c.Spec.Texts()...)
	return texts("calendar "+c.Name, all...)
}

// CheckDeleteCalendar refuses a request with a text that cannot be kept.
func CheckDeleteCalendar(d *DeleteCalendar) error {
	return texts("request", d.Namespace, d.Name, d.Change.By, d.Change.Reason)
}

// MayPutCalendar refuses a write that rests on another revision than the one there is; 0: there is none.
func MayPutCalendar(name string, ifRevision, have int64) error {
	if ifRevision > 0 && have != ifRevision || ifRevision < 0 && have != 0 {
		return job.Errorf(job.KindConflict, "revision_changed", "the calendar %q has revision %d, not the one asked for", name, have).
			WithHint("read the calendar again and repeat the change")
	}
	return nil
}

// NoCalendar says that there is none.
func NoCalendar(namespace, name string) error {
	return job.Errorf(job.KindNotFound, "calendar_not_found", "there is no calendar %q in namespace %q", name, namespace)
}

// CalendarInUse refuses a deletion; jobs are some of those that name it.
func CalendarInUse(name string, jobs []string, more bool) error {
	text := ""
	for i, j := range jobs {
		if i > 0 {
			text += ", "
		}
		text += j
	}
	if more {
		text += fmt.Sprintf(" and more than %d others", len(jobs))
	}
	return job.Errorf(job.KindConflict, "calendar_in_use", "schedules keep to the calendar %q: of the jobs %s", name, text).
		WithHint("take it out of spec.schedule.calendars of these jobs first")
}

// NamersShown is how many jobs a refused deletion names.
const NamersShown = 10

// ReadCalendar completes the row of a calendar with what is stored as JSON, and marks one that cannot be used.
func ReadCalendar(c *job.Calendar, spec, labels []byte) {
	if err := readSome(labels, &c.Labels); err != nil {
		c.Unfit = unreadable("labels", err)
	}
	err := readSome(spec, &c.Spec)
	if err == nil && len(spec) > 0 {
		if err = c.Spec.Validate(); err != nil {
			c.Unfit = "as it is stored, " + err.Error()
			return
		}
	}
	if err != nil {
		c.Unfit, c.Spec = unreadable("spec", err), job.CalendarSpec{}
	}
}

// NamedCalendars are the places of the calendars that a definition names, in the order of their names.
func NamedCalendars(d *job.Definition) (all []CalendarName) {
	if d == nil {
		return nil
	}
	for _, name := range d.Spec.Calendars() {
		all = append(all, CalendarName{d.Namespace, name})
	}
	return all
}

// CalendarName is where a calendar is.
type CalendarName struct{ Namespace, Name string }

// KnownCalendars keeps the calendars that one read has found, so that definitions share them; nil for one that is not there.
type KnownCalendars map[CalendarName]*job.Calendar

// Missing are those of some definitions that have not been looked for.
func (k KnownCalendars) Missing(all ...*job.Definition) (names []CalendarName) {
	for _, d := range all {
		for _, name := range NamedCalendars(d) {
			if _, known := k[name]; !known {
				k[name] = nil
				names = append(names, name)
			}
		}
	}
	return names
}

// Fill gives a definition its calendars.
func (k KnownCalendars) Fill(all ...*job.Definition) {
	for _, d := range all {
		if d != nil {
			d.Calendars = nil
		}
		for _, name := range NamedCalendars(d) {
			if c := k[name]; c != nil {
				if d.Calendars == nil {
					d.Calendars = map[string]*job.Calendar{}
				}
				d.Calendars[name.Name] = c
			}
		}
	}
}

// Names of the lists in page texts.
const (
	ListCalendars         = "calendars"
	ListNamers            = "calendar-jobs"
	ListCalendarRevisions = "calendar-revisions"
)

// SizeOfCalendar is what may be large in a calendar, in bytes.
func SizeOfCalendar(c *job.Calendar) int {
	const date = 64
	return RowBytes + date*(len(c.Spec.Open)+len(c.Spec.Closed))
}

// CalendarRevisionOf is the answer of CalendarRevision: found is the newest revision that is not above the one asked for;
// nil: the name has none.
func CalendarRevisionOf(found *CalendarRevision, namespace, name string, revision int64, err error) (CalendarRevision, error) {
	switch {
	case err != nil:
		return CalendarRevision{}, err
	case found == nil && revision > 0:
		return CalendarRevision{}, NoCalendar(namespace, name)
	case found == nil || found.Calendar.Revision != revision || found.Deleted:
		return CalendarRevision{}, job.Errorf(job.KindNotFound, "revision_not_found", "the calendar %q has no revision %d", name, revision)
	}
	return *found, nil
}

// LastWritten keeps the last receipt for each partition.
type LastWritten struct{ of map[int]int64 }

// Add notes a receipt.
func (l *LastWritten) Add(w Written) {
	if l.of == nil {
		l.of = map[int]int64{}
	}
	l.of[w.Partition] = max(l.of[w.Partition], w.Entry)
}

// All are the receipts by partition.
func (l *LastWritten) All() (out []Written) {
	for _, p := range slices.Sorted(maps.Keys(l.of)) {
		out = append(out, Written{Partition: p, Entry: l.of[p]})
	}
	return out
}
