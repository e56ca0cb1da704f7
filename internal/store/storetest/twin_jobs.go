package storetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// copyOfControl is what ApplyJobs may change, so that a refused set can be taken back.
type copyOfControl struct {
	jobs      map[jobName]twinJob
	deleted   []twinJob
	calendars map[jobName]*twinCalendar
	keys      map[store.RequestKey]twinKey
	inbox     []twinEntry
	lastEntry int64
}

func (w *twin) save() copyOfControl {
	return copyOfControl{maps.Clone(w.jobs), slices.Clone(w.deleted), maps.Clone(w.calendars), maps.Clone(w.keys), slices.Clone(w.inbox), w.lastEntry}
}

func (w *twin) restore(c copyOfControl) {
	w.jobs, w.deleted, w.calendars, w.keys, w.inbox, w.lastEntry = c.jobs, c.deleted, c.calendars, c.keys, c.inbox, c.lastEntry
}

func (w *twin) ApplyJobs(ctx context.Context, a store.ApplyJobs) (store.AppliedSet, error) {
	var refused job.SetError
	var set store.AppliedSet
	before := w.save()
	for i, p := range a.Calendars {
		done, err := w.putCalendar(p)
		if e, bad := errors.AsType[*job.Error](err); bad {
			refused.AddCalendar(i, e)
		}
		set.Calendars = append(set.Calendars, done)
	}
	if len(refused.Items) > 0 {
		w.restore(before)
		return store.AppliedSet{}, &refused
	}
	out := make([]store.AppliedJob, 0, len(a.Items))
	for i, p := range a.Items {
		done := store.AppliedJob{Action: store.ActionCreated}
		if row, err := w.Job(ctx, p.Definition.Namespace, p.Definition.Name); err == nil {
			done.Action, done.Before = store.ActionChanged, &row.Definition
		}
		var err error
		done.Definition, done.Written, err = w.putJob(p)
		if e, bad := errors.AsType[*job.Error](err); bad {
			refused.Add(i, e)
		} else if done.Written.Entry == 0 {
			done.Action = store.ActionUnchanged
		}
		out = append(out, done)
	}
	if len(refused.Items) == 0 {
		w.checkSet(out, &refused)
	}
	if len(refused.Items) > 0 {
		w.restore(before)
		return store.AppliedSet{}, &refused
	}
	if a.Prune != nil {
		pruned, err := w.prune(ctx, a)
		if err != nil {
			w.restore(before)
			return store.AppliedSet{}, err
		}
		out = append(out, pruned...)
	}
	if len(out) > 0 {
		set.Jobs = out
	}
	if a.DryRun {
		w.restore(before)
		return set.Unwritten(), nil
	}
	return set, nil
}

func (w *twin) prune(ctx context.Context, a store.ApplyJobs) (out []store.AppliedJob, err error) {
	var gone []jobName
	for at, j := range w.jobs {
		named := slices.ContainsFunc(a.Items, func(p store.PutJob) bool {
			return p.Definition.Namespace == at.namespace && p.Definition.Name == at.name
		})
		if slices.Contains(a.Prune.Namespaces, at.namespace) && !named && a.Prune.Match(j.revisions[len(j.revisions)-1]) {
			gone = append(gone, at)
		}
	}
	slices.SortFunc(gone, func(a, b jobName) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	if err := w.checkChildless(gone...); err != nil {
		return nil, err
	}
	for _, at := range gone {
		row, _ := w.Job(ctx, at.namespace, at.name)
		d, _ := w.deleteJob(store.DeleteJob{Namespace: at.namespace, Name: at.name, Deletion: a.Prune.Deletion, Forget: a.Prune.Forget(row.Definition)})
		out = append(out, store.AppliedJob{Action: store.ActionPruned, Before: &row.Definition, Definition: d.Definition, Written: d.Written})
	}
	return out, nil
}

func (w *twin) DeleteJob(_ context.Context, d store.DeleteJob) (store.DeletedJob, error) {
	at := jobName{d.Namespace, d.Name}
	if j, known := w.jobs[at]; known && (d.IfRevision <= 0 || d.IfRevision == int64(len(j.revisions))) && store.CheckDeleteJob(&d) == nil {
		if err := w.checkChildless(at); err != nil {
			return store.DeletedJob{}, err
		}
	}
	return w.deleteJob(d)
}

// deleteJob does not look at the other jobs.
func (w *twin) deleteJob(d store.DeleteJob) (store.DeletedJob, error) {
	if err := store.CheckDeleteJob(&d); err != nil {
		return store.DeletedJob{}, err
	}
	at := jobName{d.Namespace, d.Name}
	j, known := w.jobs[at]
	if !known {
		return store.DeletedJob{}, refuse(job.KindNotFound, "job_not_found")
	}
	last := j.revisions[len(j.revisions)-1]
	if d.IfRevision > 0 && d.IfRevision != last.Revision {
		return store.DeletedJob{}, refuse(job.KindConflict, "revision_changed")
	}
	delete(w.jobs, at)
	j.revisions = slices.Clone(j.revisions)
	for i := range j.revisions {
		deletion := d.Deletion
		j.revisions[i].Deleted = &deletion
	}
	w.deleted = append(w.deleted, j)
	maps.DeleteFunc(w.keys, func(k store.RequestKey, _ twinKey) bool {
		return k.Namespace == d.Namespace && k.Operation == d.Forget
	})
	out := store.DeletedJob{Definition: w.filled(j.revisions[len(j.revisions)-1])}
	for _, e := range ordered(w.live, byPlanned) {
		if e.JobUID == last.UID {
			out.Live++
		}
	}
	w.endBackfills(last.UID, d.Deletion)
	out.Written = w.addEntry(w.planner(last.UID), d.Namespace, true, engine.Entry{Kind: engine.EntryJobDeleted, Job: last.UID, Note: d.Deletion.Reason})
	if d.Deletion.Cancel {
		for p := range w.parts {
			w.addEntry(p, d.Namespace, true, engine.Entry{Kind: engine.EntryCancelJob, Job: last.UID, Note: d.Deletion.Reason})
		}
	}
	return out, nil
}

func (w *twin) PauseJob(_ context.Context, p store.PauseJob) (job.Definition, store.Written, error) {
	if err := store.CheckPauseJob(&p); err != nil {
		return job.Definition{}, store.Written{}, err
	}
	at := jobName{p.Namespace, p.Name}
	j, known := w.jobs[at]
	if !known {
		return job.Definition{}, store.Written{}, refuse(job.KindNotFound, "job_not_found")
	}
	j.revisions = slices.Clone(j.revisions)
	was := j.revisions[0].Pause
	for i := range j.revisions {
		j.revisions[i].Pause = p.Pause
	}
	w.jobs[at] = j
	d := w.filled(j.revisions[len(j.revisions)-1])
	kind := engine.EntryJobChanged
	if p.Pause == nil && slices.ContainsFunc(w.cursorsOf(d.UID), func(c job.Cursor) bool { return c.Failures > 0 }) {
		kind = engine.EntryJobResumed
	}
	if was == nil && p.Pause == nil && kind != engine.EntryJobResumed {
		return d, store.Written{Partition: w.planner(d.UID)}, nil
	}
	return d, w.addEntry(w.planner(d.UID), p.Namespace, true, engine.Entry{Kind: kind, Job: d.UID}), nil
}

// lifeOf is the job of a name, or the last one of it that was deleted.
func (w *twin) lifeOf(namespace, name string) (twinJob, bool) {
	if j, ok := w.jobs[jobName{namespace, name}]; ok {
		return j, true
	}
	var found twinJob
	var at job.Instant
	for _, j := range w.deleted {
		if d := j.revisions[0]; d.Namespace == namespace && d.Name == name && d.Deleted.At >= at {
			found, at = j, d.Deleted.At
		}
	}
	return found, len(found.revisions) > 0
}

func (w *twin) Revision(_ context.Context, namespace, name string, revision int64) (store.Revision, error) {
	j, ok := w.lifeOf(namespace, name)
	if !ok {
		return store.Revision{}, refuse(job.KindNotFound, "job_not_found")
	}
	if revision < 1 || revision > int64(len(j.revisions)) {
		return store.Revision{}, refuse(job.KindNotFound, "revision_not_found")
	}
	return store.Revision{Definition: w.filled(j.revisions[revision-1]), Change: j.changes[revision-1]}, nil
}

func (w *twin) Revisions(_ context.Context, namespace, name string, p store.Page) ([]store.Revision, string, error) {
	j, ok := w.lifeOf(namespace, name)
	if !ok {
		return nil, "", refuse(job.KindNotFound, "job_not_found")
	}
	var all []store.Revision
	for i, d := range slices.Backward(j.revisions) {
		all = append(all, store.Revision{Definition: w.filled(d), Change: j.changes[i]})
	}
	return list(all, "revisions", p, func(store.Revision) bool { return true }, func(v store.Revision) string { return string(rune(v.Definition.Revision)) })
}

func sameJob(a, b job.Definition) bool {
	return reflect.DeepEqual(a.Spec, b.Spec) && maps.Equal(a.Labels, b.Labels)
}
