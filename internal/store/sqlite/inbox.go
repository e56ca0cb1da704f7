package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qInbox    = statement(`SELECT id, kind, job, execution, payload, items, taken FROM inbox WHERE partition = ? AND rank = ? ORDER BY id LIMIT ?`)
	qPlaces   = statement(`SELECT ` + plannerOf + `, j.partition, j.revision FROM all_jobs j WHERE j.uid = ?`)
	qQueuedOf = statement(`SELECT id FROM executions INDEXED BY executions_job
		WHERE namespace = ? AND job = ? AND job_uid = ? AND partition = ? AND state IN ('queued', 'scheduled') ORDER BY id LIMIT ?`)
)

// InboxPage implements store.Engine.
func (s *Store) InboxPage(ctx context.Context, partition, limit int) (engine.InboxPage, error) {
	var out engine.InboxPage
	err := s.readNear(ctx, "read inbox", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		found := store.Pageful[entry]{Limit: limit}
		for _, rank := range []int64{entryFirst, entryRest} {
			left := limit + 1 - len(found.Rows)
			if err := r.each(qInbox, []any{int64(partition), rank, int64(left)}, func(rows *sql.Rows) error {
				return eachEntry(rows, func(e entry) error { return found.Add(e, store.SizeOfEntry(&e.Entry)) })
			}); err != nil && !errors.Is(err, store.ErrEnough) {
				return err
			}
			if found.More {
				break
			}
		}
		out.Partial = found.More
		j := joiner{link: r, partition: partition, known: noDefinitions(), of: map[job.UID]engine.Entry{}, newest: map[job.UID]int64{}}
		for i := range found.Rows {
			if err := j.join(&found.Rows[i]); err != nil {
				return err
			}
			out.Entries = append(out.Entries, found.Rows[i].Entry)
		}
		n, err := j.pasts(out.Entries)
		out.Partial = out.Partial || n < len(out.Entries)
		out.Entries = out.Entries[:n]
		return err
	})
	if err != nil {
		return engine.InboxPage{}, err
	}
	return out, nil
}

// joiner adds to entries what they refer to.
type joiner struct {
	*link
	partition int
	known     definitions
	of        map[job.UID]engine.Entry // cursors and places
	newest    map[job.UID]int64
}

// join adds to an entry the revision that it is about, and the cursors of its job, deleted or not.
func (r *joiner) join(e *entry) (err error) {
	if e.Job.IsZero() {
		return nil
	}
	if e.Definition, err = r.known.get(r.link, version{e.Job, e.revision}); err != nil {
		return err
	}
	of, ok := r.of[e.Job]
	if !ok {
		if of.Cursors, err = cursorsOf(r.link, e.Job); err != nil {
			return err
		}
		var newest int64
		if _, err = r.one(qPlaces, []any{e.Job[:]}, &of.Planner, &of.Place, &newest); err != nil {
			return err
		}
		r.of[e.Job], r.newest[e.Job] = of, newest
	}
	e.Cursors, e.Planner, e.Place = slices.Clone(of.Cursors), of.Planner, of.Place
	if e.Before, err = before(r.link, r.known, e.Definition, of.Cursors); err != nil {
		return err
	}
	if e.Kind.Triggers() && e.Definition != nil && e.Definition.Revision != r.newest[e.Job] {
		if e.Pool, err = newestPool(r.link, r.known, e.Job); err != nil {
			return err
		}
	}
	if e.Kind == engine.EntryBackfill {
		if err = joinBackfill(r.link, r.known, e); err != nil {
			return err
		}
	}
	if err := store.JoinRunning(&e.Entry, func(id job.ExecutionID) (bool, error) {
		var one int64
		return r.one(qExecutionExists, []any{id[:]}, &one)
	}); err != nil {
		return err
	}
	if e.Kind == engine.EntryCancelJob && e.Definition != nil {
		err = r.queued(e)
	}
	return err
}

func (r *joiner) queued(e *entry) error {
	args := []any{e.Definition.Namespace, e.Definition.Name, e.Job[:], int64(r.partition), int64(engine.QueuedMax)}
	return r.each(qQueuedOf, args, func(rows *sql.Rows) error {
		var id sql.RawBytes
		err := rows.Scan(&id)
		e.Queued = append(e.Queued, job.ExecutionID(id))
		return err
	})
}

// before is the revision under which instants are held back by a pause or owed, when d is a newer one.
func before(r *link, known definitions, d *job.Definition, cursors []job.Cursor) (old *job.Definition, err error) {
	for _, c := range cursors {
		if d != nil && (c.Held != 0 || c.Owed != 0) && c.Revision != d.Revision {
			if old, err = known.get(r, version{d.UID, c.Revision}); err != nil {
				return nil, err
			}
		}
	}
	return old, nil
}

// pasts adds what the jobs of entries and their calendars said before. n: for how many entries there was room.
func (r *joiner) pasts(entries []engine.Entry) (n int, err error) {
	past := store.PastOf{Calendars: func(namespace, name string) (all []job.Calendar, err error) {
		return pastCalendars(r.link, namespace, name)
	}}
	for i := range entries {
		e := &entries[i]
		if !e.WantsPast() {
			continue
		}
		if err := past.Put(e, func(revision int64) (*job.Definition, error) { return r.known.get(r.link, version{e.Job, revision}) }); err != nil {
			return 0, err
		}
		if past.Full() {
			return i + 1, nil
		}
	}
	return len(entries), nil
}

func pastCalendars(r *link, namespace, name string) (all []job.Calendar, err error) {
	bytes := 0
	err = calendarRevisions(r, namespace, name, math.MaxInt64, engine.CalendarsMax, func(v store.CalendarRevision) error {
		if v.Deleted {
			return nil
		}
		return store.AddPast(&all, &v.Calendar, &bytes)
	})
	return all, err
}
