package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qJobsOfNamespace = statement(`SELECT ` + definitionColumns + `, j.partition
		FROM jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision WHERE j.namespace = ? ORDER BY j.name`)
	qFailing  = statement(`SELECT 1 FROM cursors WHERE job = ? AND failures > 0 LIMIT 1`)
	qJobPause = statement(`UPDATE jobs SET pause = ? WHERE namespace = ? AND name = ?`)
	qJobBury  = statement(`INSERT INTO deleted_jobs (uid, namespace, name, revision, partition, home, created_at, pause, deletion, deleted_at)
		SELECT uid, namespace, name, revision, partition, home, created_at, pause, ?, ? FROM jobs WHERE namespace = ? AND name = ?`)
	qJobRemove = statement(`DELETE FROM jobs WHERE namespace = ? AND name = ?`)
	qKeysOf    = statement(`DELETE FROM request_keys WHERE namespace = ? AND operation = ?`)
	qLiveOf    = statement(`SELECT count(*) FROM (SELECT 1 FROM executions INDEXED BY executions_job
		WHERE namespace = ? AND job = ? AND job_uid = ? LIMIT ?)`)
	qCancelJob = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, payload) SELECT id, ?, ?, ?, ?, ? FROM partitions ORDER BY id`)

	qUID        = statement(`SELECT uid FROM jobs WHERE namespace = ? AND name = ?`)
	qUIDDeleted = statement(`SELECT uid FROM deleted_jobs WHERE namespace = ? AND name = ? ORDER BY deleted_at DESC, uid LIMIT 1`)
	qRevisions  = statement(`SELECT ` + anyDefinitionColumns + `, r.author, r.reason
		FROM job_revisions r CROSS JOIN (SELECT * FROM all_jobs WHERE uid = ?1) j
		WHERE r.uid = ?1 AND r.revision < ?2 ORDER BY r.revision DESC LIMIT ?3`)
	qRevisionOf = statement(`SELECT ` + anyDefinitionColumns + `, r.author, r.reason FROM all_jobs j JOIN job_revisions r ON r.uid = j.uid
		WHERE j.uid = ? AND r.revision = ?`)
)

// undo is returned by a transaction that did its work and shall leave nothing behind.
var undo = job.Errorf(job.KindInternal, "undo", "nothing shall be written")

// ApplyJobs implements store.Jobs.
func (s *Store) ApplyJobs(ctx context.Context, a store.ApplyJobs) (store.AppliedSet, error) {
	var refused job.SetError
	var out store.AppliedSet
	err := s.write(ctx, rankPeople, "apply jobs", func(w *link) (err error) {
		refused.Items = nil
		if out, err = applyJobs(w, &a, &refused); err != nil {
			return err
		}
		if len(refused.Items) > 0 && !s.skip.wholeSet || a.DryRun {
			return undo
		}
		return nil
	})
	switch {
	case len(refused.Items) > 0 && (err == nil || errors.Is(err, undo)):
		return store.AppliedSet{}, &refused
	case a.DryRun && errors.Is(err, undo):
		return out.Unwritten(), nil
	case err != nil:
		return store.AppliedSet{}, err
	}
	return out, nil
}

// applyJobs writes the set, or finds all in it that is refused.
func applyJobs(w *link, a *store.ApplyJobs, refused *job.SetError) (out store.AppliedSet, err error) {
	if out.Calendars, err = putCalendars(w, a.Calendars, refused); err != nil || len(refused.Items) > 0 {
		return out, err
	}
	for i := range a.Items {
		var done store.AppliedJob
		err := store.CheckPutJob(&a.Items[i])
		if err == nil {
			done, err = putJob(w, a.Items[i])
		}
		if e, ok := errors.AsType[*job.Error](err); ok {
			refused.Add(i, e)
		} else if err != nil {
			return out, err
		}
		out.Jobs = append(out.Jobs, done)
	}
	if len(refused.Items) == 0 {
		err = linkSet(w, out.Jobs, refused)
	}
	if len(refused.Items) > 0 || a.Prune == nil || err != nil {
		return out, err
	}
	pruned, err := prune(w, a.Prune, a.Items)
	out.Jobs = append(out.Jobs, pruned...)
	return out, err
}

// putJob writes one job in a transaction. A refusal leaves the transaction usable.
func putJob(w *link, p store.PutJob) (store.AppliedJob, error) {
	labels, err := encodeSome(len(p.Definition.Labels) > 0, p.Definition.Labels)
	if err != nil {
		return store.AppliedJob{}, err
	}
	spec, err := encode(p.Definition.Spec)
	if err != nil {
		return store.AppliedJob{}, err
	}
	old, planner, err := findJob(w, p.Definition.Namespace, p.Definition.Name)
	if err != nil {
		return store.AppliedJob{}, err
	}
	if err := mayPut(p, old); err != nil {
		return store.AppliedJob{}, err
	}
	out := store.AppliedJob{Action: store.ActionCreated, Before: old}
	if old != nil {
		out.Action = store.ActionChanged
		same, err := sameDocument(w, old, labels, spec)
		if err != nil {
			return out, err
		}
		if same {
			out.Action, out.Definition, out.Written = store.ActionUnchanged, *old, store.Written{Partition: planner}
			return out, nil
		}
	}
	next := p.Definition
	if old != nil {
		next.UID, next.CreatedAt = old.UID, old.CreatedAt
	}
	if err := nameCalendars(w, old, &next); err != nil {
		return out, err
	}
	if out.Written, err = putRevision(w, p, old, planner, labels, spec); err != nil {
		return out, err
	}
	now, _, err := findJob(w, p.Definition.Namespace, p.Definition.Name)
	if err == nil {
		out.Definition = *now
	}
	return out, err
}

// prune deletes the jobs that p chooses and the set does not name.
func prune(w *link, p *store.Prune, set []store.PutJob) ([]store.AppliedJob, error) {
	keep := map[[2]string]bool{}
	for i := range set {
		keep[[2]string{set[i].Definition.Namespace, set[i].Definition.Name}] = true
	}
	var gone []*job.Definition
	for _, namespace := range p.Namespaces {
		if err := w.each(qJobsOfNamespace, []any{namespace}, func(rows *sql.Rows) error {
			var partition int
			d, err := scanDefinition(rows, &partition)
			if err == nil && !keep[[2]string{namespace, d.Name}] && p.Match(*d) {
				gone = append(gone, d)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if err := addCalendars(w, store.KnownCalendars{}, gone...); err != nil {
		return nil, err
	}
	var out []store.AppliedJob
	for _, d := range gone {
		deleted, err := deleteJob(w, store.DeleteJob{Namespace: d.Namespace, Name: d.Name, Deletion: p.Deletion, Forget: p.Forget(*d)})
		if err != nil {
			return nil, err
		}
		out = append(out, store.AppliedJob{Action: store.ActionPruned, Before: d, Definition: deleted.Definition, Written: deleted.Written})
	}
	return out, checkChildless(w, gone...)
}

// DeleteJob implements store.Jobs.
func (s *Store) DeleteJob(ctx context.Context, d store.DeleteJob) (store.DeletedJob, error) {
	if err := store.CheckDeleteJob(&d); err != nil {
		return store.DeletedJob{}, err
	}
	var out store.DeletedJob
	err := s.write(ctx, rankPeople, "delete job", func(w *link) (err error) {
		if out, err = deleteJob(w, d); err == nil {
			err = checkChildless(w, &out.Definition)
		}
		return err
	})
	if err != nil {
		return store.DeletedJob{}, err
	}
	return out, nil
}

func deleteJob(w *link, d store.DeleteJob) (store.DeletedJob, error) {
	var out store.DeletedJob
	old, planner, err := findJob(w, d.Namespace, d.Name)
	if err != nil {
		return out, err
	}
	if old == nil {
		return out, noJob(d.Namespace, d.Name)
	}
	if d.IfRevision > 0 && d.IfRevision != old.Revision {
		return out, revisionChanged(d.Name, old.Revision)
	}
	deletion := d.Deletion
	out.Definition = *old
	out.Definition.Deleted = &deletion
	text, err := encode(deletion)
	if err != nil {
		return out, err
	}
	for _, x := range []struct {
		q    query
		args []any
	}{
		{qJobBury, []any{text, int64(deletion.At), d.Namespace, d.Name}},
		{qJobRemove, []any{d.Namespace, d.Name}},
		{qKeysOf, []any{d.Namespace, d.Forget}},
		{qUnnamed, []any{old.UID[:]}},
		{qUnlink, []any{old.UID[:]}},
	} {
		if _, err := w.exec(x.q, x.args...); err != nil {
			return out, err
		}
	}
	if _, err := w.one(qLiveOf, []any{d.Namespace, d.Name, old.UID[:], int64(store.MaxLive)}, &out.Live); err != nil {
		return out, err
	}
	if err := endBackfills(w, old.UID, &deletion); err != nil {
		return out, err
	}
	said := payload{At: deletion.At, Note: deletion.Reason}
	entry := engine.Entry{Kind: engine.EntryJobDeleted, Job: old.UID}
	if out.Written, err = addEntry(w, planner, d.Namespace, entryFirst, entry, said); err != nil || !deletion.Cancel {
		return out, err
	}
	note, err := encode(said) // executions of a job that moved may be anywhere
	if err == nil {
		_, err = w.exec(qCancelJob, entryFirst, string(engine.EntryCancelJob), d.Namespace, old.UID[:], note)
	}
	return out, err
}

// PauseJob implements store.Jobs.
func (s *Store) PauseJob(ctx context.Context, p store.PauseJob) (job.Definition, store.Written, error) {
	if err := store.CheckPauseJob(&p); err != nil {
		return job.Definition{}, store.Written{}, err
	}
	text, err := encodeSome(p.Pause != nil, p.Pause)
	if err != nil {
		return job.Definition{}, store.Written{}, err
	}
	var out job.Definition
	var receipt store.Written
	err = s.write(ctx, rankPeople, "pause job", func(w *link) error {
		d, planner, err := findJob(w, p.Namespace, p.Name)
		if err != nil {
			return err
		}
		if d == nil {
			return noJob(p.Namespace, p.Name)
		}
		receipt = store.Written{Partition: planner}
		var one int64
		failing, err := w.one(qFailing, []any{d.UID[:]}, &one)
		if err != nil {
			return err
		}
		if d.Pause != nil || p.Pause != nil || failing {
			if _, err := w.exec(qJobPause, text, p.Namespace, p.Name); err != nil {
				return err
			}
			entry := engine.Entry{Kind: engine.EntryJobChanged, Job: d.UID}
			if failing && p.Pause == nil {
				entry.Kind = engine.EntryJobResumed
			}
			if receipt, err = addEntry(w, planner, p.Namespace, entryFirst, entry, payload{At: p.At}); err != nil {
				return err
			}
		}
		out, out.Pause = *d, nil
		if p.Pause != nil {
			pause := *p.Pause
			out.Pause = &pause
		}
		return nil
	})
	if err != nil {
		return job.Definition{}, store.Written{}, err
	}
	return out, receipt, nil
}
