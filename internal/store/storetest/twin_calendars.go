package storetest

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// twinCalendar is a name with all its revisions, over all its lives.
type twinCalendar struct {
	revisions []store.CalendarRevision
	created   job.Instant // of the newest life
}

func (c *twinCalendar) newest() *job.Calendar {
	if c == nil || c.revisions[len(c.revisions)-1].Deleted {
		return nil
	}
	found := c.revisions[len(c.revisions)-1].Calendar
	found.CreatedAt = c.created
	return &found
}

func (w *twin) calendar(namespace, name string) *job.Calendar {
	return w.calendars[jobName{namespace, name}].newest()
}

// filled gives a definition the calendars that it names.
func (w *twin) filled(d job.Definition) job.Definition {
	d.Calendars = nil
	for _, s := range d.Spec.Schedules {
		for _, name := range s.Calendars {
			if c := w.calendar(d.Namespace, name); c != nil {
				if d.Calendars == nil {
					d.Calendars = map[string]*job.Calendar{}
				}
				d.Calendars[name] = c
			}
		}
	}
	return d
}

func (w *twin) addRevision(at jobName, v store.CalendarRevision) {
	old := w.calendars[at]
	next := twinCalendar{created: v.Calendar.UpdatedAt}
	if old != nil {
		next.revisions = slices.Clone(old.revisions)
		if old.newest() != nil {
			next.created = old.created
		}
	}
	v.Calendar.Namespace, v.Calendar.Name, v.Calendar.Revision = at.namespace, at.name, int64(len(next.revisions))+1
	next.revisions = append(next.revisions, v)
	w.calendars[at] = &next
}

// namers are the jobs whose newest revision names a calendar, by name.
func (w *twin) namers(at jobName) (all []job.Definition) {
	for name, j := range w.jobs {
		d := j.revisions[len(j.revisions)-1]
		if name.namespace == at.namespace && slices.Contains(d.Spec.Calendars(), at.name) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b job.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (w *twin) putCalendar(p store.PutCalendar) (out store.AppliedCalendar, err error) {
	if err := store.CheckPutCalendar(&p); err != nil {
		return out, err
	}
	at := jobName{p.Calendar.Namespace, p.Calendar.Name}
	old := w.calendar(at.namespace, at.name)
	out.Action, out.Before = store.ActionCreated, old
	have := int64(0)
	if old != nil {
		out.Action, have = store.ActionChanged, old.Revision
	}
	if p.IfRevision > 0 && p.IfRevision != have || p.IfRevision < 0 && have != 0 {
		return out, refuse(job.KindConflict, "revision_changed")
	}
	if old != nil && reflect.DeepEqual(old.Spec, p.Calendar.Spec) && reflect.DeepEqual(old.Labels, p.Calendar.Labels) {
		out.Action, out.Calendar = store.ActionUnchanged, *old
		return out, nil
	}
	v := store.CalendarRevision{Calendar: p.Calendar, Change: p.Change}
	v.Calendar.UpdatedAt = p.At
	w.addRevision(at, v)
	out.Calendar = *w.calendar(at.namespace, at.name)
	var last store.LastWritten
	for _, d := range w.namers(at) {
		out.Jobs++
		last.Add(w.addEntry(w.planner(d.UID), at.namespace, false, engine.Entry{Kind: engine.EntryJobChanged, Job: d.UID}))
	}
	out.Written = last.All()
	return out, nil
}

func (w *twin) Calendar(_ context.Context, namespace, name string) (job.Calendar, error) {
	c := w.calendar(namespace, name)
	if c == nil {
		return job.Calendar{}, refuse(job.KindNotFound, "calendar_not_found")
	}
	return *c, nil
}

func (w *twin) Calendars(_ context.Context, namespace string, p store.Page) ([]job.Calendar, string, error) {
	var all []job.Calendar
	for at, c := range w.calendars {
		if there := c.newest(); there != nil && at.namespace == namespace {
			all = append(all, *there)
		}
	}
	slices.SortFunc(all, func(a, b job.Calendar) int { return cmp.Compare(a.Name, b.Name) })
	return list(all, "calendars", p, func(job.Calendar) bool { return true }, func(c job.Calendar) string { return c.Name })
}

func (w *twin) CalendarJobs(_ context.Context, namespace, name string, p store.Page) ([]string, string, error) {
	var all []string
	for _, d := range w.namers(jobName{namespace, name}) {
		all = append(all, d.Name)
	}
	slices.Sort(all)
	return list(all, "namers", p, func(string) bool { return true }, func(name string) string { return name })
}

func (w *twin) revisionsOf(namespace, name string) (all []store.CalendarRevision) {
	c := w.calendars[jobName{namespace, name}]
	if c == nil {
		return nil
	}
	for _, v := range slices.Backward(c.revisions) {
		v.Calendar.CreatedAt = c.created
		all = append(all, v)
	}
	return all
}

func (w *twin) CalendarRevision(_ context.Context, namespace, name string, revision int64) (store.CalendarRevision, error) {
	all := w.revisionsOf(namespace, name)
	if len(all) == 0 && revision > 0 {
		return store.CalendarRevision{}, refuse(job.KindNotFound, "calendar_not_found")
	}
	for _, v := range all {
		if v.Calendar.Revision == revision && !v.Deleted {
			return v, nil
		}
	}
	return store.CalendarRevision{}, refuse(job.KindNotFound, "revision_not_found")
}

func (w *twin) CalendarRevisions(_ context.Context, namespace, name string, p store.Page) ([]store.CalendarRevision, string, error) {
	all := w.revisionsOf(namespace, name)
	if len(all) == 0 {
		return nil, "", refuse(job.KindNotFound, "calendar_not_found")
	}
	return list(all, "calendar revisions", p, func(store.CalendarRevision) bool { return true },
		func(v store.CalendarRevision) string { return string(rune(v.Calendar.Revision)) })
}

func (w *twin) DeleteCalendar(_ context.Context, d store.DeleteCalendar) (job.Calendar, error) {
	if err := store.CheckDeleteCalendar(&d); err != nil {
		return job.Calendar{}, err
	}
	at := jobName{d.Namespace, d.Name}
	c := w.calendar(at.namespace, at.name)
	switch {
	case c == nil:
		return job.Calendar{}, refuse(job.KindNotFound, "calendar_not_found")
	case d.IfRevision > 0 && d.IfRevision != c.Revision:
		return job.Calendar{}, refuse(job.KindConflict, "revision_changed")
	case len(w.namers(at)) > 0:
		return job.Calendar{}, refuse(job.KindConflict, "calendar_in_use")
	}
	v := store.CalendarRevision{Change: d.Change, Deleted: true}
	v.Calendar.UpdatedAt = d.At
	w.addRevision(at, v)
	return *c, nil
}

// past is what the job of an entry said since its cursors.
func (w *twin) past(e *engine.Entry) *engine.Past {
	if !e.WantsPast() {
		return nil
	}
	var p engine.Past
	names := map[string]bool{}
	for n := e.Definition.Revision; n > 0; n-- {
		of := func(c job.Cursor) bool { return c.Revision == n }
		since := func(c job.Cursor) bool { return c.Revision <= n }
		recent := e.Definition.Revision-n <= engine.PastMax && (len(e.Cursors) == 0 || slices.ContainsFunc(e.Cursors, since))
		if n < e.Definition.Revision && !recent && !slices.ContainsFunc(e.Cursors, of) {
			continue
		}
		d := w.definition(e.Job, n)
		if n < e.Definition.Revision {
			p.Revisions = append(p.Revisions, d)
		}
		for _, name := range d.Spec.Calendars() {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c := w.calendars[jobName{e.Definition.Namespace, name}]
		if c == nil {
			continue
		}
		for i := len(c.revisions) - 1; i >= 0 && i >= len(c.revisions)-engine.CalendarsMax; i-- {
			if v := c.revisions[i]; !v.Deleted {
				v.Calendar.CreatedAt = c.created
				p.Calendars = append(p.Calendars, v.Calendar)
			}
		}
	}
	return &p
}
