package store

import (
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// PastBytes bounds what the entries of one page bring of the past, but for the last one that does.
const PastBytes = 8 << 20

// PastOf collects Entry.Past for the entries of a page, which share what they have in common. Whoever finds Full cuts the page
// behind that entry.
type PastOf struct {
	Calendars func(namespace, name string) ([]job.Calendar, error) // revisions that say something, newest first
	found     map[CalendarName][]job.Calendar
	seen      map[*job.Definition]bool
	bytes     int
}

// AddPast takes a revision of a calendar in, newest first; ErrEnough when what is there is large and no more has to be known.
func AddPast(all *[]job.Calendar, c *job.Calendar, bytes *int) error {
	if *bytes += SizeOfCalendar(c); *bytes > PastBytes && len(*all) >= engine.PastMax {
		return ErrEnough
	}
	*all = append(*all, *c)
	return nil
}

// Full tells that no more should come.
func (p *PastOf) Full() bool { return p.bytes > PastBytes }

// Put adds what a job and its calendars said before; revision finds one of the job, nil: it is not there.
func (p *PastOf) Put(e *engine.Entry, revision func(int64) (*job.Definition, error)) error {
	if p.found == nil {
		p.found, p.seen = map[CalendarName][]job.Calendar{}, map[*job.Definition]bool{}
	}
	out := &engine.Past{}
	for _, n := range PastRevisions(e) {
		d, err := revision(n)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		if out.Revisions = append(out.Revisions, d); !p.seen[d] {
			p.seen[d] = true
			p.bytes += SizeOfDefinition(d)
		}
	}
	for _, name := range pastCalendars(e.Definition, out.Revisions) {
		at := CalendarName{e.Definition.Namespace, name}
		all, known := p.found[at]
		if !known {
			var err error
			if all, err = p.Calendars(at.Namespace, at.Name); err != nil {
				return err
			}
			for i := range all {
				p.bytes += SizeOfCalendar(&all[i])
			}
			p.found[at] = all
		}
		out.Calendars = append(out.Calendars, all...)
	}
	e.Past = out
	return nil
}

// PastRevisions numbers the revisions that Entry.Past brings, newest first.
func PastRevisions(e *engine.Entry) (all []int64) {
	oldest := e.Definition.Revision
	for _, c := range e.Cursors {
		oldest = min(oldest, max(c.Revision, 1))
	}
	if len(e.Cursors) == 0 {
		oldest = 1
	}
	for n := e.Definition.Revision - 1; n >= oldest && len(all) < engine.PastMax; n-- {
		all = append(all, n)
	}
	for _, c := range e.Cursors {
		if c.Revision > 0 && c.Revision < e.Definition.Revision && !slices.Contains(all, c.Revision) {
			all = append(all, c.Revision)
		}
	}
	slices.SortFunc(all, func(a, b int64) int { return int(b - a) })
	return all
}

// pastCalendars names the calendars whose revisions Entry.Past brings.
func pastCalendars(newest *job.Definition, old []*job.Definition) []string {
	names := map[string]bool{}
	for _, d := range append(slices.Clone(old), newest) {
		for _, name := range d.Spec.Calendars() {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
