package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// namers are one more than limit of the jobs that name a calendar.
func namers(l *link, namespace, name, after string, limit int) (names []string, err error) {
	err = l.each(qNamedFor, []any{namespace, name, after, limit + 1}, func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// Calendar implements store.Calendars.
func (s *Store) Calendar(ctx context.Context, namespace, name string) (job.Calendar, error) {
	var out job.Calendar
	err := s.look(ctx, "read calendar", func(r *link) error {
		c, err := findCalendar(r, namespace, name)
		if err == nil && c == nil {
			err = store.NoCalendar(namespace, name)
		}
		if err == nil {
			out = *c
		}
		return err
	})
	return out, err
}

// Calendars implements store.Calendars.
func (s *Store) Calendars(ctx context.Context, namespace string, p store.Page) ([]job.Calendar, string, error) {
	var after string
	if _, err := store.ParseAfter(store.ListCalendars, p.After, &after); err != nil {
		return nil, "", err
	}
	if !store.Clean(namespace) || !store.Clean(after) { // no row has such a name
		return nil, "", nil
	}
	all := store.Pageful[job.Calendar]{Limit: p.Rows()}
	err := s.look(ctx, "list calendars", func(r *link) error {
		return inPieces(p.Rows()+1, &all.More, func(limit int) (n int, err error) {
			err = r.each(qCalendars, []any{namespace, after, limit}, func(rows pgx.Rows) error {
				c, _, err := scanCalendar(rows)
				if err != nil {
					return err
				}
				n, after = n+1, c.Name
				return all.Add(c, store.SizeOfCalendar(&c))
			})
			return n, err
		})
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(store.ListCalendars, func(c job.Calendar) any { return c.Name }), nil
}

// CalendarJobs implements store.Calendars.
func (s *Store) CalendarJobs(ctx context.Context, namespace, name string, p store.Page) ([]string, string, error) {
	var after string
	if _, err := store.ParseAfter(store.ListNamers, p.After, &after); err != nil {
		return nil, "", err
	}
	if !store.Clean(namespace) || !store.Clean(name) || !store.Clean(after) {
		return nil, "", nil
	}
	all := store.Pageful[string]{Limit: p.Rows()}
	err := s.look(ctx, "list jobs of a calendar", func(r *link) error {
		names, err := namers(r, namespace, name, after, p.Rows())
		for _, n := range names {
			all.Take(n, store.RowBytes)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(store.ListNamers, func(name string) any { return name }), nil
}

func calendarRevisions(r *link, namespace, name string, before int64, limit int, take func(store.CalendarRevision) error) error {
	return r.each(qCalendarRevisions, []any{namespace, name, before, limit}, func(rows pgx.Rows) (err error) {
		var v store.CalendarRevision
		if v.Calendar, v.Deleted, err = scanCalendar(rows, &v.Change.By, &v.Change.Reason); err != nil {
			return err
		}
		return take(v)
	})
}

// CalendarRevision implements store.Calendars.
func (s *Store) CalendarRevision(ctx context.Context, namespace, name string, revision int64) (store.CalendarRevision, error) {
	var out *store.CalendarRevision
	if !store.Clean(namespace) || !store.Clean(name) {
		return store.CalendarRevision{}, store.NoCalendar(namespace, name)
	}
	err := s.look(ctx, "read revision of a calendar", func(r *link) error {
		return calendarRevisions(r, namespace, name, min(revision, math.MaxInt64-1)+1, 1, func(v store.CalendarRevision) error {
			out = &v
			return nil
		})
	})
	return store.CalendarRevisionOf(out, namespace, name, revision, err)
}

// CalendarRevisions implements store.Calendars.
func (s *Store) CalendarRevisions(ctx context.Context, namespace, name string, p store.Page) ([]store.CalendarRevision, string, error) {
	after := int64(math.MaxInt64)
	if _, err := store.ParseAfter(store.ListCalendarRevisions, p.After, &after); err != nil {
		return nil, "", err
	}
	if !store.Clean(namespace) || !store.Clean(name) {
		return nil, "", store.NoCalendar(namespace, name)
	}
	all := store.Pageful[store.CalendarRevision]{Limit: p.Rows()}
	err := s.look(ctx, "list revisions of a calendar", func(r *link) error {
		if err := inPieces(p.Rows()+1, &all.More, func(limit int) (n int, err error) {
			err = calendarRevisions(r, namespace, name, after, limit, func(v store.CalendarRevision) error {
				n, after = n+1, v.Calendar.Revision
				return all.Add(v, store.SizeOfCalendar(&v.Calendar))
			})
			return n, err
		}); err != nil || len(all.Rows) > 0 || p.After != "" {
			return err
		}
		return store.NoCalendar(namespace, name)
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(store.ListCalendarRevisions, func(v store.CalendarRevision) any { return v.Calendar.Revision }), nil
}
