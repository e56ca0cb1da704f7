package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qInbox = statement(`SELECT ` + entryColumns + `, items, taken FROM inbox
		WHERE partition BETWEEN $1 AND $1 AND rank BETWEEN $2 AND $2 ORDER BY partition, rank, id LIMIT $3`)
	qPlaces = statement(`SELECT j.uid, ` + plannerOf + `, j.partition FROM unnest($1::uuid[]) u (uid)` + eachOf("j", `SELECT * FROM all_jobs WHERE uid = u.uid`))

	qQueuedOf = statement(`SELECT id FROM executions
		WHERE namespace BETWEEN $1 AND $1 AND job BETWEEN $2 AND $2 AND job_uid = $3 AND partition = $4 AND state IN ('queued', 'scheduled')
		ORDER BY namespace, job, id LIMIT $5`)
)

// InboxPage implements store.Engine.
func (s *Store) InboxPage(ctx context.Context, partition, limit int) (engine.InboxPage, error) {
	var out engine.InboxPage
	err := s.read(ctx, "read inbox", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		found := store.Pageful[entry]{Limit: limit}
		for _, rank := range []int64{entryFirst, entryRest} {
			if err := r.each(qInbox, []any{partition, rank, limit + 1 - len(found.Rows)}, func(rows pgx.Rows) error {
				return eachEntry(rows, func(e entry) error { return found.Add(e, store.SizeOfEntry(&e.Entry)) })
			}); err != nil {
				return err
			}
			if found.More {
				break
			}
		}
		out.Partial = found.More
		out.Entries, err = joined(r, partition, found.Rows)
		return err
	})
	if err != nil {
		return engine.InboxPage{}, err
	}
	return out, nil
}

// joined adds to entries what they refer to: the revision that each is about, cursors and places of its job, deleted or not.
func joined(r *link, partition int, entries []entry) (all []engine.Entry, err error) {
	known, cursors, places := noDefinitions(), map[job.UID][]job.Cursor{}, map[job.UID]engine.Entry{}
	if err := joinSets(r, entries, known, cursors, places); err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		if !e.Job.IsZero() {
			e.Definition, e.Cursors = known.of[version{e.Job, e.revision}], slices.Clone(cursors[e.Job])
			e.Planner, e.Place = places[e.Job].Planner, places[e.Job].Place
			if e.Before, err = before(r, known, e.Definition, e.Cursors); err != nil {
				return nil, err
			}
			if err := store.JoinRunning(&e.Entry, func(id job.ExecutionID) (bool, error) {
				var one int
				return r.one(qLives, []any{[16]byte(id)}, &one)
			}); err != nil {
				return nil, err
			}
			if e.Kind == engine.EntryBackfill {
				if e.Backfill, err = findBackfill(r, e.Execution); err != nil {
					return nil, err
				}
			}
			if e.Kind == engine.EntryCancelJob && e.Definition != nil {
				if err := queued(r, partition, e); err != nil {
					return nil, err
				}
			}
		}
		all = append(all, e.Entry)
	}
	return all, nil
}

// joinSets reads what a page of entries refers to, in a query each.
func joinSets(r *link, entries []entry, known definitions, cursors map[job.UID][]job.Cursor, places map[job.UID]engine.Entry) error {
	var uids [][16]byte
	var versions []version
	for i := range entries {
		if uid := entries[i].Job; !uid.IsZero() {
			versions = append(versions, version{uid, entries[i].revision})
			if _, seen := cursors[uid]; !seen {
				cursors[uid] = nil
				uids = append(uids, uid)
			}
		}
	}
	if len(uids) == 0 {
		return nil
	}
	if err := known.fetch(r, versions); err != nil {
		return err
	}
	if err := r.each(qCursorsOf, []any{uids}, func(rows pgx.Rows) error {
		c, err := scanCursor(rows)
		cursors[c.Job] = append(cursors[c.Job], c)
		return err
	}); err != nil {
		return err
	}
	return r.each(qPlaces, []any{uids}, func(rows pgx.Rows) error {
		var uid job.UID
		var e engine.Entry
		err := rows.Scan((*[16]byte)(&uid), &e.Planner, &e.Place)
		places[uid] = e
		return err
	})
}

func queued(r *link, partition int, e *entry) error {
	args := []any{e.Definition.Namespace, e.Definition.Name, [16]byte(e.Job), partition, engine.QueuedMax}
	return r.each(qQueuedOf, args, func(rows pgx.Rows) error {
		var id job.ExecutionID
		err := rows.Scan((*[16]byte)(&id))
		e.Queued = append(e.Queued, id)
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
