package postgres

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const listBackfills = "backfills"

const backfillColumns = `b.id, coalesce(p.partition, b.partition), b.namespace, b.job, b.uid, b.revision, b."from", b."to", b.spec, b.at, b.cancel, p.state, p.progress`

const (
	ofBackfills   = ` FROM backfills b LEFT JOIN backfill_progress p ON p.id = b.id`
	backfillLives = `(p.state IS NULL OR p.state IN ('running', 'cancelling'))`
)

var (
	qBackfill       = statement(`SELECT ` + backfillColumns + ofBackfills + ` WHERE b.id = $1`)
	qBackfillInsert = statement(`INSERT INTO backfills (id, partition, namespace, job, uid, revision, "from", "to", spec, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`)
	qBackfillHold   = statement(`SELECT 1 FROM backfills WHERE id = $1 FOR UPDATE`)
	qBackfillCancel = statement(`UPDATE backfills SET cancel = $1 WHERE id = $2`)
	qBackfillsOf    = statement(`SELECT ` + backfillColumns + ofBackfills + ` WHERE b.uid = $1 AND ` + backfillLives + ` ORDER BY b.id`)
	qBackfillsLive  = statement(`SELECT ` + backfillColumns + ` FROM backfill_progress p` + eachOf("b", `SELECT * FROM backfills WHERE id = p.id`) + `
		WHERE p.partition BETWEEN $1 AND $1 AND p.state IN ('running', 'cancelling') ORDER BY p.partition`)
	qBackfills = statement(`SELECT ` + backfillColumns + ofBackfills + ` WHERE (b.namespace, b.id) < ($1, $2::uuid) AND b.namespace >= $1 AND ($3 = '' OR b.job = $3)
		ORDER BY b.namespace DESC, b.id DESC LIMIT $4`)
	qProgressPut = statement(`WITH done AS (INSERT INTO backfill_progress AS k (id, partition, state, progress) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET state = $3, progress = $4 WHERE k.partition = $2 RETURNING id)` + guard(guardBackfill, `1`, `$1::text`))
)

func scanBackfill(rows pgx.Rows) (job.Backfill, error) {
	var b job.Backfill
	var spec, cancel, progress []byte
	var state *string
	err := rows.Scan((*[16]byte)(&b.ID), &b.Partition, &b.Namespace, &b.Job, (*[16]byte)(&b.JobUID), &b.Revision, (*int64)(&b.From), (*int64)(&b.To), &spec,
		(*int64)(&b.At), &cancel, &state, &progress)
	if err != nil {
		return b, err
	}
	if state != nil {
		b.Progress.State = job.BackfillState(*state)
	}
	store.ReadBackfill(&b, spec, cancel, progress)
	return b, nil
}

// PutBackfill implements store.Backfills.
func (s *Store) PutBackfill(ctx context.Context, p store.PutBackfill, partition func(job.Definition) int) (job.Backfill, store.Written, error) {
	if err := store.CheckPutBackfill(&p); err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	var out job.Backfill
	var receipt store.Written
	err := s.write(ctx, "put backfill", func(w *link) error {
		out = p.Backfill
		d, _, err := holdJob(w, out.Namespace, out.Job)
		if err != nil {
			return err
		}
		if d == nil {
			return noJob(out.Namespace, out.Job)
		}
		if out.Spec.Total, err = p.Count(*d); err != nil {
			return err
		}
		if err := mayBackfill(w, &out, d); err != nil {
			return err
		}
		out.JobUID, out.Revision, out.Partition, out.Progress.State = d.UID, d.Revision, partition(*d), job.BackfillPending
		out.Progress.ID = out.ID
		spec, err := encode(out.Spec)
		if err != nil {
			return err
		}
		if _, err := w.exec(qBackfillInsert, out.ID[:], out.Partition, out.Namespace, out.Job, out.JobUID[:], out.Revision,
			int64(out.From), int64(out.To), spec, int64(out.At)); err != nil {
			return err
		}
		receipt, err = tellBackfill(w, &out, entryRest)
		return err
	})
	if err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	return out, receipt, nil
}

func mayBackfill(w *link, b *job.Backfill, d *job.Definition) error {
	cursors, err := cursorsOf(w, d.UID)
	if err != nil {
		return err
	}
	live, err := backfillsOf(w, d.UID)
	if err != nil {
		return err
	}
	return store.MayBackfill(b, d, cursors, live)
}

// backfillsOf are those of a job that have not ended.
func backfillsOf(l *link, uid job.UID) (all []job.Backfill, err error) {
	err = l.each(qBackfillsOf, []any{uid[:]}, func(rows pgx.Rows) error {
		b, err := scanBackfill(rows)
		all = append(all, b)
		return err
	})
	return all, err
}

// tellBackfill puts a backfill into the inbox of its owner.
func tellBackfill(w *link, b *job.Backfill, rank int64) (store.Written, error) {
	return addEntry(w, b.Partition, b.Namespace, rank, engine.Entry{Kind: engine.EntryBackfill, Job: b.JobUID, Execution: b.ID},
		payload{At: b.At, Revision: b.Revision})
}

func findBackfill(l *link, id job.ExecutionID) (found *job.Backfill, err error) {
	err = l.each(qBackfill, []any{id[:]}, func(rows pgx.Rows) error {
		b, err := scanBackfill(rows)
		found = &b
		return err
	})
	return found, err
}

// CancelBackfill implements store.Backfills.
func (s *Store) CancelBackfill(ctx context.Context, c store.CancelBackfill) (job.Backfill, store.Written, error) {
	if err := store.CheckCancelBackfill(&c); err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	var out job.Backfill
	var receipt store.Written
	err := s.write(ctx, "cancel backfill", func(w *link) error {
		receipt = store.Written{}
		var one int
		if _, err := w.one(qBackfillHold, []any{c.ID[:]}, &one); err != nil {
			return err
		}
		b, err := findBackfill(w, c.ID)
		if err != nil {
			return err
		}
		if b == nil || b.Namespace != c.Namespace {
			return store.NoBackfill(c.Namespace, c.ID)
		}
		out, receipt = *b, store.Written{Partition: b.Partition}
		more, err := store.MayCancelBackfill(b, &c.Cancel)
		if err != nil || !more {
			return err
		}
		receipt, err = cancelBackfill(w, &out, c.Cancel)
		return err
	})
	if err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	return out, receipt, nil
}

func cancelBackfill(w *link, b *job.Backfill, c job.BackfillCancel) (store.Written, error) {
	b.Cancel = &c
	text, err := encode(c)
	if err != nil {
		return store.Written{}, err
	}
	if _, err := w.exec(qBackfillCancel, text, b.ID[:]); err != nil {
		return store.Written{}, err
	}
	return tellBackfill(w, b, entryRest)
}

// endBackfills asks for the end of what runs the past of a job that is deleted.
func endBackfills(w *link, uid job.UID, d *job.Deletion) error {
	all, err := backfillsOf(w, uid)
	if err != nil {
		return err
	}
	for i := range all {
		if _, err := cancelBackfill(w, &all[i], job.BackfillCancel{At: d.At, Running: d.Cancel, By: d.By, Reason: job.ReasonJobDeleted, Note: d.Reason}); err != nil {
			return err
		}
	}
	return nil
}

// Backfill implements store.Backfills.
func (s *Store) Backfill(ctx context.Context, namespace string, id job.ExecutionID) (job.Backfill, error) {
	var out job.Backfill
	err := s.look(ctx, "read backfill", func(r *link) error {
		b, err := findBackfill(r, id)
		if err == nil && (b == nil || b.Namespace != namespace) {
			err = store.NoBackfill(namespace, id)
		}
		if err == nil {
			out = *b
		}
		return err
	})
	return out, err
}

// Backfills implements store.Backfills.
func (s *Store) Backfills(ctx context.Context, namespace, name string, p store.Page) ([]job.Backfill, string, error) {
	var after job.ExecutionID
	more, err := store.ParseAfter(listBackfills, p.After, &after)
	if err != nil {
		return nil, "", err
	}
	if !store.Clean(namespace) || !store.Clean(name) { // no row has such a name
		return nil, "", nil
	}
	if !more {
		copy(after[:], bytes.Repeat([]byte{0xff}, len(after)))
	}
	all := store.Pageful[job.Backfill]{Limit: p.Rows()}
	err = s.look(ctx, "list backfills", func(r *link) error {
		return r.each(qBackfills, []any{namespace, after[:], name, p.Rows() + 1}, func(rows pgx.Rows) error {
			b, err := scanBackfill(rows)
			if err != nil {
				return err
			}
			return all.Add(b, store.RowBytes)
		})
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(listBackfills, func(b job.Backfill) any { return b.ID }), nil
}

// joinBackfill adds to an entry the backfill that it is about, and the pool that its job has by now.
func joinBackfill(r *link, known definitions, e *entry) (err error) {
	if e.Backfill, err = findBackfill(r, e.Execution); err != nil {
		return err
	}
	e.Pool, err = newestPool(r, known, e.Job)
	return err
}

// newestPool is the pool in the newest revision of a job.
func newestPool(r *link, known definitions, uid job.UID) (string, error) {
	d, err := known.get(r, version{uid, 0})
	if err != nil || d == nil {
		return "", err
	}
	return d.Spec.Pool, nil
}

// backfills writes how far backfills have come.
func (c *commit) backfills() error {
	for i := range c.batch.Backfills {
		p := &c.batch.Backfills[i]
		text, err := encode(p)
		if err != nil {
			return err
		}
		c.add(qProgressPut, p.ID[:], c.fence.Partition, string(p.State), text)
	}
	return nil
}
