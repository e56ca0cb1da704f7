package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

var qInbox = statement(`SELECT id, kind, job, execution, payload FROM inbox WHERE partition = $1 AND rank = $2 ORDER BY id LIMIT $3`)

// InboxPage implements store.Engine.
func (s *Store) InboxPage(ctx context.Context, partition, limit int) (engine.InboxPage, error) {
	var out engine.InboxPage
	err := s.read(ctx, "read inbox", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		var found []entry
		for _, rank := range []int64{entryFirst, entryRest} {
			if err := r.each(qInbox, []any{int64(partition), rank, int64(limit - len(found))}, func(rows pgx.Rows) error {
				e, err := scanEntry(rows)
				found = append(found, e)
				return err
			}); err != nil {
				return err
			}
		}
		out.Entries, err = joined(r, found)
		return err
	})
	if err != nil {
		return engine.InboxPage{}, err
	}
	return out, nil
}

// joined adds the revision that it is about and the cursors of its job, deleted or not, to each entry.
func joined(r *link, entries []entry) (all []engine.Entry, err error) {
	known, cursors := definitions{}, map[job.UID][]job.Cursor{}
	for _, e := range entries {
		if !e.Job.IsZero() {
			if e.Definition, err = known.get(r, version{e.Job, e.revision}); err != nil {
				return nil, err
			}
			c, ok := cursors[e.Job]
			if !ok {
				if c, err = cursorsOf(r, e.Job); err != nil {
					return nil, err
				}
				cursors[e.Job] = c
			}
			e.Cursors = slices.Clone(c)
			if e.Before, err = before(r, known, e.Definition, c); err != nil {
				return nil, err
			}
		}
		all = append(all, e.Entry)
	}
	return all, nil
}

// before is the revision under which a pause held instants back, when d is a newer one.
func before(r *link, known definitions, d *job.Definition, cursors []job.Cursor) (old *job.Definition, err error) {
	for _, c := range cursors {
		if d != nil && c.Held != 0 && c.Revision != d.Revision {
			if old, err = known.get(r, version{d.UID, c.Revision}); err != nil {
				return nil, err
			}
		}
	}
	return old, nil
}
