package postgres

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	// Servers change sets at the same time: each locks the jobs of its set, and those that it may prune, in the order of
	// their names, so that none waits for another that waits for it. While a set prunes a namespace nobody else makes a job
	// there: it would have to be locked out of turn.
	qNamesShare = statement(`SELECT pg_advisory_xact_lock_shared($1, $2)`)
	qNamesHold  = statement(`SELECT pg_advisory_xact_lock($1, $2)`)
	qJobsLock   = statement(`SELECT count(*) FROM (SELECT 1 FROM jobs WHERE (namespace, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		OR namespace = ANY($3::text[]) ORDER BY namespace, name FOR UPDATE) AS held`)
	qJobsOfNamespace = statement(`SELECT ` + definitionColumns + `, j.partition
		FROM jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision WHERE j.namespace = $1 ORDER BY j.name`)
	qFailing  = statement(`SELECT 1 FROM cursors WHERE job = $1 AND failures > 0 LIMIT 1`)
	qJobPause = statement(`UPDATE jobs SET pause = $1 WHERE namespace = $2 AND name = $3`)
	qJobBury  = statement(`INSERT INTO deleted_jobs (uid, namespace, name, revision, partition, home, created_at, pause, deletion, deleted_at)
		SELECT uid, namespace, name, revision, partition, home, created_at, pause, $1, $2 FROM jobs WHERE namespace = $3 AND name = $4`)
	qJobRemove = statement(`DELETE FROM jobs WHERE namespace = $1 AND name = $2`)
	qKeysOfJob = statement(`DELETE FROM request_keys WHERE namespace = $1 AND operation = $2`)
	qLiveOf    = statement(`SELECT count(*) FROM (SELECT 1 FROM executions
		WHERE namespace = $1 AND job = $2 AND job_uid = $3
		UNION ALL SELECT 1 FROM lots l CROSS JOIN LATERAL generate_series(1, l.remaining)
		WHERE l.namespace = $1 AND l.job = $2 AND l.job_uid = $3 LIMIT $4) AS live`)
	qCancelJob = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, payload) SELECT id, $1, $2, $3, $4, $5 FROM partitions ORDER BY id`)

	qUID        = statement(`SELECT uid FROM jobs WHERE namespace = $1 AND name = $2`)
	qUIDDeleted = statement(`SELECT uid FROM deleted_jobs WHERE namespace = $1 AND name = $2 ORDER BY deleted_at DESC, uid LIMIT 1`)
	qRevisions  = statement(`SELECT ` + anyDefinitionColumns + `, r.author, r.reason
		FROM job_revisions r CROSS JOIN (SELECT * FROM all_jobs WHERE uid = $1) j
		WHERE r.uid = $1 AND r.revision < $2 ORDER BY r.revision DESC LIMIT $3`)
	qRevisionOf = statement(`SELECT ` + anyDefinitionColumns + `, r.author, r.reason FROM all_jobs j JOIN job_revisions r ON r.uid = j.uid
		WHERE j.uid = $1 AND r.revision = $2`)
)

// undo is returned by a transaction that did its work and shall leave nothing behind.
var undo = job.Errorf(job.KindInternal, "undo", "nothing shall be written")

// ApplyJobs implements store.Jobs.
func (s *Store) ApplyJobs(ctx context.Context, a store.ApplyJobs) (store.AppliedSet, error) {
	var refused job.SetError
	var out store.AppliedSet
	err := s.write(ctx, "apply jobs", func(w *link) (err error) {
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
	if err := lockSet(w, a); err != nil {
		return out, err
	}
	if out.Calendars, err = putCalendars(w, a.Calendars, refused); err != nil || len(refused.Items) > 0 {
		return out, err
	}
	if len(a.Items) > 0 {
		out.Jobs = make([]store.AppliedJob, len(a.Items))
	}
	for _, i := range byName(a.Items) {
		err := store.CheckPutJob(&a.Items[i])
		if err == nil {
			out.Jobs[i], err = putJob(w, a.Items[i])
		}
		if e, ok := errors.AsType[*job.Error](err); ok {
			refused.Add(i, e)
		} else if err != nil {
			return out, err
		}
	}
	slices.SortFunc(refused.Items, func(a, b job.ItemError) int { return a.Index - b.Index })
	if len(refused.Items) > 0 {
		return out, nil
	}
	if err := linkSet(w, out.Jobs, refused); err != nil || len(refused.Items) > 0 {
		return out, err
	}
	for i := range out.Jobs {
		if err := tellOwner(w, &a.Items[i], &out.Jobs[i]); err != nil {
			return out, err
		}
	}
	if a.Prune == nil {
		return out, nil
	}
	pruned, err := prune(w, a.Prune, a.Items)
	out.Jobs = append(out.Jobs, pruned...)
	return out, err
}

// namesClass is of the advisory locks of the names of namespaces, which share namesStripes of them: a set may name many.
const (
	namesClass   = 0x6a6f62
	namesStripes = 64
)

func stripeOf(namespace string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(namespace))      // cannot fail
	return int32(h.Sum32() % namesStripes) //nolint:gosec // small
}

// lockNames is what comes first where jobs may be made.
func lockNames(w *link, items []store.PutJob, p *store.Prune) error {
	stripes := map[int32]query{}
	for i := range items {
		stripes[stripeOf(items[i].Definition.Namespace)] = qNamesShare
	}
	if p != nil {
		for _, namespace := range p.Namespaces {
			stripes[stripeOf(namespace)] = qNamesHold
		}
	}
	for _, n := range slices.Sorted(maps.Keys(stripes)) {
		if _, err := w.exec(stripes[n], int32(namesClass), n); err != nil {
			return err
		}
	}
	return nil
}

// lockSet locks what is there of the set and of the namespaces that it prunes.
func lockSet(w *link, a *store.ApplyJobs) error {
	if err := lockNames(w, a.Items, a.Prune); err != nil {
		return err
	}
	var namespaces, names []string
	var pruned []string
	if a.Prune != nil {
		pruned = a.Prune.Namespaces
	}
	if err := lockDependencies(w, append(dependent(a.Items), pruned...)...); err != nil {
		return err
	}
	for i := range a.Items {
		if store.CheckPutJob(&a.Items[i]) == nil {
			namespaces, names = append(namespaces, a.Items[i].Definition.Namespace), append(names, a.Items[i].Definition.Name)
		}
	}
	if err := lockCalendars(w, a.Calendars, a.Items); err != nil {
		return err
	}
	var n int64
	_, err := w.one(qJobsLock, []any{namespaces, names, pruned}, &n)
	return err
}

// byName are the places of the set in the order in which rows are locked.
func byName(items []store.PutJob) []int {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &items[a].Definition, &items[b].Definition
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return order
}

// putJob writes one job in a transaction, but for what its owner is told. A refusal leaves the transaction usable.
func putJob(w *link, p store.PutJob) (store.AppliedJob, error) {
	labels, err := encodeSome(len(p.Definition.Labels) > 0, p.Definition.Labels)
	if err != nil {
		return store.AppliedJob{}, err
	}
	spec, err := encode(p.Definition.Spec)
	if err != nil {
		return store.AppliedJob{}, err
	}
	for {
		out, done, err := putHeld(w, p, labels, spec)
		if err != nil || done {
			return out, err
		}
	}
}

// putHeld is not done when another server made the job meanwhile.
func putHeld(w *link, p store.PutJob, labels *string, spec string) (out store.AppliedJob, done bool, err error) {
	old, planner, err := holdJob(w, p.Definition.Namespace, p.Definition.Name)
	if err != nil {
		return out, false, err
	}
	if err := mayPut(p, old); err != nil {
		return out, false, err
	}
	out = store.AppliedJob{Action: store.ActionCreated, Before: old, Written: store.Written{Partition: p.Partition}}
	if old != nil {
		out.Action, out.Written.Partition = store.ActionChanged, planner
		same, err := sameDocument(w, old, labels, spec)
		if err != nil {
			return out, false, err
		}
		if same {
			out.Action, out.Definition = store.ActionUnchanged, *old
			return out, true, nil
		}
	}
	next := p.Definition
	if old != nil {
		next.UID, next.CreatedAt = old.UID, old.CreatedAt
	}
	if err := nameCalendars(w, old, &next); err != nil {
		return out, false, err
	}
	if done, err = putRevision(w, p, old, labels, spec); err != nil || !done {
		return out, false, err
	}
	now, _, err := findJob(w, p.Definition.Namespace, p.Definition.Name)
	if err == nil {
		out.Definition = *now
	}
	return out, true, err
}

// prune deletes the jobs that p chooses and the set does not name.
func prune(w *link, p *store.Prune, set []store.PutJob) ([]store.AppliedJob, error) {
	keep := map[[2]string]bool{}
	for i := range set {
		keep[[2]string{set[i].Definition.Namespace, set[i].Definition.Name}] = true
	}
	var gone []*job.Definition
	for _, namespace := range p.Namespaces {
		if err := w.each(qJobsOfNamespace, []any{namespace}, func(rows pgx.Rows) error {
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
	err := s.write(ctx, "delete job", func(w *link) (err error) {
		if err = lockDependencies(w, d.Namespace); err != nil {
			return err
		}
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
	old, planner, err := holdJob(w, d.Namespace, d.Name)
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
		{qKeysOfJob, []any{d.Namespace, d.Forget}},
		{qUnnamed, []any{old.UID[:]}},
		{qUnlink, []any{old.UID[:]}},
	} {
		if _, err := w.exec(x.q, x.args...); err != nil {
			return out, err
		}
	}
	if _, err := w.one(qLiveOf, []any{d.Namespace, d.Name, old.UID[:], store.MaxLive}, &out.Live); err != nil {
		return out, err
	}
	if err := endBackfills(w, old.UID, &deletion); err != nil {
		return out, err
	}
	entry := engine.Entry{Kind: engine.EntryJobDeleted, Job: old.UID}
	said := payload{At: deletion.At, Note: deletion.Reason}
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
	err = s.write(ctx, "pause job", func(w *link) error {
		d, planner, err := holdJob(w, p.Namespace, p.Name)
		if err != nil {
			return err
		}
		if d == nil {
			return noJob(p.Namespace, p.Name)
		}
		receipt = store.Written{Partition: planner}
		var one int64
		failing, err := w.one(qFailing, []any{[16]byte(d.UID)}, &one)
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
