package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// uidOf finds the life that a name means: the job's, else that of the last one that was deleted.
func uidOf(r *link, namespace, name string) (uid job.UID, err error) {
	if !store.Clean(namespace) || !store.Clean(name) {
		return uid, noJob(namespace, name)
	}
	for _, q := range []query{qUID, qUIDDeleted} {
		if found, err := r.one(q, []any{namespace, name}, (*[16]byte)(&uid)); err != nil || found {
			return uid, err
		}
	}
	return uid, noJob(namespace, name)
}

func scanRevision(rows pgx.Rows) (store.Revision, error) {
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
		if err := r.each(qRevisionOf, []any{uid[:], revision}, func(rows pgx.Rows) error {
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
		if err := inPieces(p.Rows()+1, &all.More, func(limit int) (n int, err error) {
			err = r.each(qRevisions, []any{uid[:], after, limit}, func(rows pgx.Rows) error {
				v, err := scanRevision(rows)
				if err != nil {
					return err
				}
				n, after = n+1, v.Definition.Revision
				return all.Add(v, store.SizeOfDefinition(&v.Definition))
			})
			return n, err
		}); err != nil {
			return err
		}
		definitions := column(all.Rows, func(v *store.Revision) *job.Definition { return &v.Definition })
		return addCalendars(r, store.KnownCalendars{}, definitions...)
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(listRevisions, func(v store.Revision) any { return v.Definition.Revision }), nil
}
