package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const calendarColumns = `c.namespace, c.name, r.revision, r.labels, c.created_at, r.at, r.spec`

var (
	qCalendar = statement(`SELECT ` + calendarColumns + ` FROM calendars c
		JOIN calendar_revisions r ON r.namespace = c.namespace AND r.name = c.name AND r.revision = c.revision
		WHERE c.namespace = ? AND c.name = ? AND c.there = 1`)
	qCalendars = statement(`SELECT ` + calendarColumns + ` FROM calendars c
		JOIN calendar_revisions r ON r.namespace = c.namespace AND r.name = c.name AND r.revision = c.revision
		WHERE c.namespace = ? AND c.name > ? AND c.there = 1 ORDER BY c.name LIMIT ?`)
	qCalendarRow       = statement(`SELECT revision, there FROM calendars WHERE namespace = ? AND name = ?`)
	qCalendarRevisions = statement(`SELECT ` + calendarColumns + `, r.author, r.reason FROM calendars c
		JOIN calendar_revisions r ON r.namespace = c.namespace AND r.name = c.name
		WHERE c.namespace = ?1 AND c.name = ?2 AND r.revision < ?3 ORDER BY r.revision DESC LIMIT ?4`)
	qCalendarDocument = statement(`SELECT labels, spec FROM calendar_revisions WHERE namespace = ? AND name = ? AND revision = ?`)
	qCalendarPut      = statement(`INSERT INTO calendars (namespace, name, revision, there, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (namespace, name) DO UPDATE SET revision = excluded.revision, there = excluded.there,
		created_at = CASE there WHEN 1 THEN created_at ELSE excluded.created_at END`)
	qCalendarRevision = statement(`INSERT INTO calendar_revisions (namespace, name, revision, labels, spec, at, author, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)

	qNamed    = statement(`INSERT INTO job_calendars (namespace, calendar, name, job) VALUES (?, ?, ?, ?)`)
	qUnnamed  = statement(`DELETE FROM job_calendars WHERE job = ?`)
	qNamers   = statement(`SELECT j.uid, ` + plannerOf + ` FROM job_calendars n CROSS JOIN jobs j ON j.uid = n.job WHERE n.namespace = ? AND n.calendar = ? ORDER BY n.name`)
	qNamedFor = statement(`SELECT name FROM job_calendars WHERE namespace = ? AND calendar = ? AND name > ? ORDER BY name LIMIT ?`)
)

// scanCalendar reads calendarColumns and whatever follows them; deleted tells of the revision that is a deletion.
func scanCalendar(rows *sql.Rows, more ...any) (c job.Calendar, deleted bool, err error) {
	var labels, spec sql.NullString
	dest := append([]any{&c.Namespace, &c.Name, &c.Revision, &labels, &c.CreatedAt, &c.UpdatedAt, &spec}, more...)
	if err := rows.Scan(dest...); err != nil {
		return c, false, err
	}
	store.ReadCalendar(&c, raw(spec), raw(labels))
	return c, !spec.Valid, nil
}

// findCalendar is nil when it is not there.
func findCalendar(l *link, namespace, name string) (found *job.Calendar, err error) {
	err = l.each(qCalendar, []any{namespace, name}, func(rows *sql.Rows) error {
		c, _, err := scanCalendar(rows)
		found = &c
		return err
	})
	return found, err
}

// addCalendars gives definitions the calendars that they name, those that known has not yet read from the link's snapshot.
func addCalendars(l *link, known store.KnownCalendars, all ...*job.Definition) (err error) {
	for _, at := range known.Missing(all...) {
		if known[at], err = findCalendar(l, at.Namespace, at.Name); err != nil {
			return err
		}
	}
	known.Fill(all...)
	return nil
}

// putCalendars writes the calendars of a set, or finds all that are refused.
func putCalendars(w *link, all []store.PutCalendar, refused *job.SetError) (out []store.AppliedCalendar, err error) {
	for i := range all {
		var done store.AppliedCalendar
		if err = store.CheckPutCalendar(&all[i]); err == nil {
			done, err = putCalendar(w, all[i])
		}
		if e, ok := errors.AsType[*job.Error](err); ok {
			refused.AddCalendar(i, e)
		} else if err != nil {
			return nil, err
		}
		out = append(out, done)
	}
	return out, nil
}

// putCalendar writes one calendar and tells the jobs that name it. A refusal leaves the transaction usable.
func putCalendar(w *link, p store.PutCalendar) (out store.AppliedCalendar, err error) {
	c := p.Calendar
	labels, err := encodeSome(len(c.Labels) > 0, c.Labels)
	if err != nil {
		return out, err
	}
	spec, err := encode(c.Spec)
	if err != nil {
		return out, err
	}
	old, err := findCalendar(w, c.Namespace, c.Name)
	if err != nil {
		return out, err
	}
	have := int64(0)
	out.Action, out.Before = store.ActionCreated, old
	if old != nil {
		have, out.Action = old.Revision, store.ActionChanged
	}
	if err := store.MayPutCalendar(c.Name, p.IfRevision, have); err != nil {
		return out, err
	}
	if old != nil {
		var oldLabels, oldSpec sql.NullString
		text, _ := labels.(string)
		if _, err := w.one(qCalendarDocument, []any{c.Namespace, c.Name, have}, &oldLabels, &oldSpec); err != nil {
			return out, err
		}
		if oldSpec.String == spec && oldLabels.String == text {
			out.Action, out.Calendar = store.ActionUnchanged, *old
			return out, nil
		}
	}
	if err := nextCalendarRevision(w, c.Namespace, c.Name, labels, spec, p.At, p.Change); err != nil {
		return out, err
	}
	now, err := findCalendar(w, c.Namespace, c.Name)
	if err != nil {
		return out, err
	}
	out.Calendar = *now
	out.Jobs, out.Written, err = tellNamers(w, c.Namespace, c.Name, p.At)
	return out, err
}

// nextCalendarRevision writes it; without a spec it is the deletion.
func nextCalendarRevision(w *link, namespace, name string, labels, spec any, at job.Instant, by job.Change) error {
	var revision, there int64
	if _, err := w.one(qCalendarRow, []any{namespace, name}, &revision, &there); err != nil {
		return err
	}
	revision++
	if _, err := w.exec(qCalendarPut, namespace, name, revision, flag(spec != nil), int64(at)); err != nil {
		return err
	}
	_, err := w.exec(qCalendarRevision, namespace, name, revision, labels, spec, int64(at), by.By, by.Reason)
	return err
}

// tellNamers puts an entry about each job that names a calendar into the inbox of its planner.
func tellNamers(w *link, namespace, name string, at job.Instant) (n int, last []store.Written, err error) {
	type namer struct {
		uid     job.UID
		planner int
	}
	var all []namer
	if err := w.each(qNamers, []any{namespace, name}, func(rows *sql.Rows) error {
		var uid sql.RawBytes
		var x namer
		err := rows.Scan(&uid, &x.planner)
		copy(x.uid[:], uid)
		all = append(all, x)
		return err
	}); err != nil {
		return 0, nil, err
	}
	var receipts store.LastWritten
	for _, x := range all {
		receipt, err := addEntry(w, x.planner, namespace, entryRest, engine.Entry{Kind: engine.EntryJobChanged, Job: x.uid}, payload{At: at})
		if err != nil {
			return 0, nil, err
		}
		receipts.Add(receipt)
	}
	return len(all), receipts.All(), nil
}

// nameCalendars keeps which calendars a revision names, and refuses one that names a calendar which is not there or does
// not fit.
func nameCalendars(w *link, old, now *job.Definition) error {
	if err := addCalendars(w, store.KnownCalendars{}, now); err != nil {
		return err
	}
	if err := now.CheckCalendars(); err != nil {
		return err
	}
	names := now.Spec.Calendars()
	if old != nil && len(old.Spec.Calendars()) > 0 {
		if _, err := w.exec(qUnnamed, now.UID[:]); err != nil {
			return err
		}
	}
	for _, name := range names {
		if _, err := w.exec(qNamed, now.Namespace, name, now.Name, now.UID[:]); err != nil {
			return err
		}
	}
	return nil
}

// DeleteCalendar implements store.Calendars.
func (s *Store) DeleteCalendar(ctx context.Context, d store.DeleteCalendar) (job.Calendar, error) {
	if err := store.CheckDeleteCalendar(&d); err != nil {
		return job.Calendar{}, err
	}
	var out job.Calendar
	err := s.write(ctx, rankPeople, "delete calendar", func(w *link) error {
		c, err := findCalendar(w, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if c == nil {
			return store.NoCalendar(d.Namespace, d.Name)
		}
		if err := store.MayPutCalendar(d.Name, d.IfRevision, c.Revision); err != nil {
			return err
		}
		named, err := namers(w, d.Namespace, d.Name, "", store.NamersShown)
		if err != nil {
			return err
		}
		if len(named) > 0 {
			return store.CalendarInUse(d.Name, named[:min(len(named), store.NamersShown)], len(named) > store.NamersShown)
		}
		out = *c
		return nextCalendarRevision(w, d.Namespace, d.Name, nil, nil, d.At, d.Change)
	})
	if err != nil {
		return job.Calendar{}, err
	}
	return out, nil
}
