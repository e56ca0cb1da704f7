package sqlite

import (
	"context"
	"database/sql"
	"math"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// uidOf finds the life that a name means: the job's, else that of the last one that was deleted.
func uidOf(r *link, namespace, name string) ([]byte, error) {
	for _, q := range []query{qUID, qUIDDeleted} {
		var uid []byte
		if found, err := r.one(q, []any{namespace, name}, &uid); err != nil || found {
			return uid, err
		}
	}
	return nil, noJob(namespace, name)
}

func scanRevision(rows *sql.Rows) (store.Revision, error) {
	var v store.Revision
	d, err := scanDefinition(rows, &v.Change.By, &v.Change.Reason)
	if err == nil {
		v.Definition = *d
	}
	return v, err
}

// Revision implements store.Jobs.
func (s *Store) Revision(ctx context.Context, namespace, name string, revision int64) (store.Revision, error) {
	var out *store.Revision
	err := s.look(ctx, "read revision", func(r *link) error {
		uid, err := uidOf(r, namespace, name)
		if err != nil {
			return err
		}
		if err := r.each(qRevisionOf, []any{uid, revision}, func(rows *sql.Rows) error {
			v, err := scanRevision(rows)
			out = &v
			return err
		}); err != nil {
			return err
		}
		if out == nil {
			return job.Errorf(job.KindNotFound, "revision_not_found", "the job %q has no revision %d", name, revision)
		}
		return addCalendars(r, store.KnownCalendars{}, &out.Definition)
	})
	if err != nil {
		return store.Revision{}, err
	}
	return *out, nil
}

// Revisions implements store.Jobs.
func (s *Store) Revisions(ctx context.Context, namespace, name string, p store.Page) ([]store.Revision, string, error) {
	after := int64(math.MaxInt64)
	if _, err := store.ParseAfter(listRevisions, p.After, &after); err != nil {
		return nil, "", err
	}
	all := store.Pageful[store.Revision]{Limit: p.Rows()}
	err := s.look(ctx, "list revisions", func(r *link) error {
		uid, err := uidOf(r, namespace, name)
		if err != nil {
			return err
		}
		if err := r.each(qRevisions, []any{uid, after, int64(p.Rows()) + 1}, func(rows *sql.Rows) error {
			v, err := scanRevision(rows)
			if err != nil {
				return err
			}
			return all.Add(v, store.SizeOfDefinition(&v.Definition))
		}); err != nil {
			return err
		}
		known := store.KnownCalendars{}
		for i := range all.Rows {
			if err := addCalendars(r, known, &all.Rows[i].Definition); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(listRevisions, func(v store.Revision) any { return v.Definition.Revision }), nil
}
