package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const calendarColumns = `c.namespace, c.name, r.revision, r.labels, c.created_at, r.at, r.spec`

// Who changes jobs or calendars locks the rows of calendars first, in the order of their names, then those of jobs: FOR UPDATE
// the calendars of a set that changes some, FOR SHARE those that jobs only name, so that nobody deletes them. (The other way
// round, a job that is made after a set has locked those that were there would be locked behind its calendars.)
var (
	qNamedCalendars = statement(`SELECT ` + calendarColumns + ` FROM unnest($1::text[], $2::text[]) u (namespace, name)` +
		eachOf("c", `SELECT * FROM calendars WHERE namespace = u.namespace AND name = u.name`) +
		eachOf("r", `SELECT * FROM calendar_revisions WHERE namespace = c.namespace AND name = c.name AND revision = c.revision`) + ` WHERE c.there`)
	qCalendars = statement(`SELECT ` + calendarColumns + ` FROM calendars c
		JOIN calendar_revisions r ON r.namespace = c.namespace AND r.name = c.name AND r.revision = c.revision
		WHERE c.namespace = $1 AND c.name > $2 AND c.there ORDER BY c.name LIMIT $3`)
	qCalendarRow       = statement(`SELECT revision FROM calendars WHERE namespace = $1 AND name = $2`)
	qCalendarRevisions = statement(`SELECT ` + calendarColumns + `, r.author, r.reason FROM calendars c
		JOIN calendar_revisions r ON r.namespace = c.namespace AND r.name = c.name
		WHERE c.namespace = $1 AND c.name = $2 AND r.revision < $3 ORDER BY r.revision DESC LIMIT $4`)
	qCalendarDocument = statement(`SELECT labels, spec FROM calendar_revisions WHERE namespace = $1 AND name = $2 AND revision = $3`)
	qCalendarMake     = statement(`INSERT INTO calendars (namespace, name, revision, there, created_at)
		SELECT namespace, name, 0, false, 0 FROM unnest($1::text[], $2::text[]) u (namespace, name)
		ORDER BY namespace COLLATE "C", name COLLATE "C" ON CONFLICT DO NOTHING`)
	qCalendarPut = statement(`UPDATE calendars SET revision = $3, there = $4, created_at = CASE WHEN there THEN created_at ELSE $5 END
		WHERE namespace = $1 AND name = $2`)
	qCalendarRevision = statement(`INSERT INTO calendar_revisions (namespace, name, revision, labels, spec, at, author, reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`)
	qCalendarsHold    = statement(`SELECT count(*) FROM (SELECT 1 FROM calendars WHERE (namespace, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY namespace, name FOR UPDATE) AS held`)
	qCalendarsShare = statement(`SELECT count(*) FROM (SELECT 1 FROM calendars WHERE (namespace, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY namespace, name FOR SHARE) AS held`)

	qNamed      = statement(`INSERT INTO job_calendars (namespace, calendar, name, job) SELECT $1, u.calendar, $3, $4 FROM unnest($2::text[]) u (calendar)`)
	qUnnamed    = statement(`DELETE FROM job_calendars WHERE job = $1`)
	qTellNamers = statement(`WITH told AS (INSERT INTO inbox (partition, rank, kind, namespace, job, payload)
		SELECT ` + plannerOf + `, $3, $4, j.namespace, j.uid, $5 FROM job_calendars n JOIN jobs j ON j.uid = n.job
		WHERE n.namespace = $1 AND n.calendar = $2 ORDER BY n.name RETURNING partition, id)
		SELECT partition, max(id), count(*) FROM told GROUP BY partition`)
	qNamedFor = statement(`SELECT name FROM job_calendars WHERE namespace = $1 AND calendar = $2 AND name > $3 ORDER BY name LIMIT $4`)
)

// scanCalendar reads calendarColumns and whatever follows them; deleted tells of the revision that is a deletion.
func scanCalendar(rows pgx.Rows, more ...any) (c job.Calendar, deleted bool, err error) {
	var labels, spec []byte
	dest := append([]any{&c.Namespace, &c.Name, &c.Revision, &labels, (*int64)(&c.CreatedAt), (*int64)(&c.UpdatedAt), &spec}, more...)
	if err := rows.Scan(dest...); err != nil {
		return c, false, err
	}
	store.ReadCalendar(&c, spec, labels)
	return c, spec == nil, nil
}

// addCalendars gives definitions the calendars that they name, those that known has not yet read from the link's snapshot.
func addCalendars(l *link, known store.KnownCalendars, all ...*job.Definition) error {
	err := readCalendars(l, known, known.Missing(all...))
	known.Fill(all...)
	return err
}

func readCalendars(l *link, known store.KnownCalendars, missing []store.CalendarName) error {
	if len(missing) == 0 {
		return nil
	}
	q := calendarsNamed(known, missing)
	return l.each(q.q, q.args, q.row)
}

// calendarsNamed asks for calendars.
func calendarsNamed(known store.KnownCalendars, missing []store.CalendarName) question {
	namespaces, names := columnsOf(missing)
	return question{qNamedCalendars, []any{namespaces, names}, func(rows pgx.Rows) error {
		c, _, err := scanCalendar(rows)
		known[store.CalendarName{Namespace: c.Namespace, Name: c.Name}] = &c
		return err
	}}
}

func columnsOf(all []store.CalendarName) (namespaces, names []string) {
	return column(all, func(n *store.CalendarName) string { return n.Namespace }), column(all, func(n *store.CalendarName) string { return n.Name })
}

// findCalendar is nil when it is not there.
func findCalendar(l *link, namespace, name string) (*job.Calendar, error) {
	known, at := store.KnownCalendars{}, store.CalendarName{Namespace: namespace, Name: name}
	if !store.Clean(namespace) || !store.Clean(name) {
		return nil, nil //nolint:nilnil // no row has such a name
	}
	err := readCalendars(l, known, []store.CalendarName{at})
	return known[at], err
}

// lockCalendars locks the calendars that a set writes or names.
func lockCalendars(w *link, calendars []store.PutCalendar, items []store.PutJob) error {
	var written, named []store.CalendarName
	for i := range calendars {
		if c := &calendars[i].Calendar; store.CheckPutCalendar(&calendars[i]) == nil {
			written = append(written, store.CalendarName{Namespace: c.Namespace, Name: c.Name})
		}
	}
	for i := range items {
		if store.CheckPutJob(&items[i]) == nil {
			named = append(named, store.NamedCalendars(&items[i].Definition)...)
		}
	}
	lock := qCalendarsShare
	if len(written) > 0 {
		namespaces, names := columnsOf(written)
		if _, err := w.exec(qCalendarMake, namespaces, names); err != nil {
			return err
		}
		lock = qCalendarsHold // all of them in one order
	}
	return holdCalendars(w, lock, append(written, named...))
}

func holdCalendars(w *link, lock query, all []store.CalendarName) error {
	if len(all) == 0 {
		return nil
	}
	namespaces, names := columnsOf(all)
	var n int64
	_, err := w.one(lock, []any{namespaces, names}, &n)
	return err
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

// putCalendar writes one calendar, whose row is held, and tells the jobs that name it. A refusal leaves the transaction
// usable.
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
		var oldLabels, oldSpec *string
		if _, err := w.one(qCalendarDocument, []any{c.Namespace, c.Name, have}, &oldLabels, &oldSpec); err != nil {
			return out, err
		}
		if equalText(oldSpec, &spec) && equalText(oldLabels, labels) {
			out.Action, out.Calendar = store.ActionUnchanged, *old
			return out, nil
		}
	}
	if err := nextCalendarRevision(w, c.Namespace, c.Name, labels, &spec, p.At, p.Change); err != nil {
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

func equalText(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// nextCalendarRevision writes it; without a spec it is the deletion.
func nextCalendarRevision(w *link, namespace, name string, labels, spec *string, at job.Instant, by job.Change) error {
	var revision int64
	if _, err := w.one(qCalendarRow, []any{namespace, name}, &revision); err != nil {
		return err
	}
	revision++
	if _, err := w.exec(qCalendarPut, namespace, name, revision, spec != nil, int64(at)); err != nil {
		return err
	}
	_, err := w.exec(qCalendarRevision, namespace, name, revision, labels, spec, int64(at), by.By, by.Reason)
	return err
}

// tellNamers puts an entry about each job that names a calendar into the inbox of its planner. A job that is deleted
// meanwhile makes its entry one about nothing.
func tellNamers(w *link, namespace, name string, at job.Instant) (n int, last []store.Written, err error) {
	said, err := encode(payload{At: at})
	if err != nil {
		return 0, nil, err
	}
	var receipts store.LastWritten
	err = w.each(qTellNamers, []any{namespace, name, entryRest, string(engine.EntryJobChanged), said}, func(rows pgx.Rows) error {
		var receipt store.Written
		var told int
		err := rows.Scan(&receipt.Partition, &receipt.Entry, &told)
		receipts.Add(receipt)
		n += told
		return err
	})
	return n, receipts.All(), err
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
	if old != nil && len(old.Spec.Calendars()) > 0 {
		if _, err := w.exec(qUnnamed, now.UID[:]); err != nil {
			return err
		}
	}
	names := now.Spec.Calendars()
	if len(names) == 0 {
		return nil
	}
	_, err := w.exec(qNamed, now.Namespace, names, now.Name, now.UID[:])
	return err
}

// DeleteCalendar implements store.Calendars.
func (s *Store) DeleteCalendar(ctx context.Context, d store.DeleteCalendar) (job.Calendar, error) {
	if err := store.CheckDeleteCalendar(&d); err != nil {
		return job.Calendar{}, err
	}
	var out job.Calendar
	err := s.write(ctx, "delete calendar", func(w *link) error {
		if err := holdCalendars(w, qCalendarsHold, []store.CalendarName{{Namespace: d.Namespace, Name: d.Name}}); err != nil {
			return err
		}
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
