package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func (w *twin) addEntry(partition int, namespace string, overtakes bool, e engine.Entry) store.Written {
	w.lastEntry++
	e.ID = w.lastEntry
	w.inbox = append(w.inbox, twinEntry{partition: partition, namespace: namespace, overtakes: overtakes, Entry: e})
	return store.Written{Partition: partition, Entry: e.ID}
}

func (w *twin) PutJob(_ context.Context, p store.PutJob) (job.Definition, store.Written, error) {
	before := w.save()
	d, written, err := w.putJob(p)
	if err == nil && written.Entry != 0 {
		if err = w.checkAfter(&d); err != nil {
			w.restore(before)
			return job.Definition{}, store.Written{}, err
		}
	}
	return d, written, err
}

// putJob does not look at the other jobs.
func (w *twin) putJob(p store.PutJob) (job.Definition, store.Written, error) {
	if err := store.CheckPutJob(&p); err != nil {
		return job.Definition{}, store.Written{}, err
	}
	d := p.Definition
	at := jobName{d.Namespace, d.Name}
	j, known := w.jobs[at]
	home, planner := p.Partition, p.Partition
	have := int64(len(j.revisions))
	if p.IfRevision > 0 && p.IfRevision != have || p.IfRevision == -1 && known {
		return job.Definition{}, store.Written{}, refuse(job.KindConflict, "revision_changed")
	}
	d.Revision, d.CreatedAt, d.UpdatedAt = have+1, p.At, p.At
	if known {
		newest := j.revisions[have-1]
		d.UID, d.CreatedAt, d.Pause = newest.UID, newest.CreatedAt, newest.Pause
		home, planner = j.home, w.planner(d.UID)
		if sameJob(newest, d) {
			return w.filled(newest), store.Written{Partition: planner}, nil
		}
	}
	d = w.filled(d)
	for _, name := range d.Spec.Calendars() {
		if d.Calendars[name] == nil {
			return job.Definition{}, store.Written{}, refuse(job.KindInvalid, "calendar_not_found")
		}
	}
	w.jobs[at] = twinJob{p.Partition, home, append(slices.Clone(j.revisions), d), append(slices.Clone(j.changes), p.Change)}
	return d, w.addEntry(planner, d.Namespace, false, engine.Entry{Kind: engine.EntryJobChanged, Job: d.UID}), nil
}

func (w *twin) Trigger(_ context.Context, t store.Trigger, partition func(job.Definition) int) (store.Triggered, error) {
	if err := store.CheckTrigger(&t); err != nil {
		return store.Triggered{}, err
	}
	j, known := w.jobs[jobName{t.Namespace, t.Job}]
	if !known {
		return store.Triggered{}, refuse(job.KindNotFound, "job_not_found")
	}
	d := j.revisions[len(j.revisions)-1]
	out := store.Triggered{Written: store.Written{Partition: partition(d)}, Execution: t.Execution}
	if t.Key.Key != "" {
		k := t.Key
		k.Hash = ""
		made, repeated := w.keys[k]
		if repeated && made.hash != t.Key.Hash {
			return store.Triggered{}, refuse(job.KindConflict, "idempotency_key_reused")
		}
		if repeated {
			out.Execution, out.Repeated = made.id, true
			if e, pending := w.pendingTrigger(made.id); pending {
				out.Written = store.Written{Partition: e.partition, Entry: e.ID}
			}
			return out, nil
		}
		w.keys[k] = twinKey{t.Key.Hash, t.Execution, t.Request.At}
	}
	request := t.Request
	if t.Merge != nil {
		request.Params, _ = t.Merge(d) // histories have merges that refuse nothing
	}
	out.Written = w.addEntry(out.Partition, t.Namespace, false, engine.Entry{
		Kind: request.TriggerKind(), Job: d.UID, Execution: t.Execution, Request: &request,
	})
	w.inbox[len(w.inbox)-1].revision = d.Revision
	return out, nil
}

func (w *twin) Triggers(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) ([]store.Triggered, error) {
	inbox, last, keys := slices.Clone(w.inbox), w.lastEntry, maps.Clone(w.keys)
	out := make([]store.Triggered, 0, len(all))
	for i := range all {
		one, err := w.Trigger(ctx, all[i], partition)
		if e, ok := errors.AsType[*job.Error](err); ok {
			w.inbox, w.lastEntry, w.keys = inbox, last, keys
			return nil, &job.SetError{Items: []job.ItemError{{Index: i, Err: e}}}
		}
		out = append(out, one)
	}
	return out, nil
}

func (w *twin) Ask(_ context.Context, a store.Ask) (store.Written, error) {
	if err := store.CheckAsk(&a); err != nil {
		return store.Written{}, err
	}
	entry := engine.Entry{Kind: a.Kind, Execution: a.Execution, Note: a.Note}
	if a.Kind == engine.EntryReschedule {
		entry.Request = &engine.Request{At: a.Due}
		if err := w.reschedule(a); err != nil {
			return store.Written{}, err
		}
	}
	if e, ok := w.find(a.Execution); ok && e.Namespace == a.Namespace {
		return w.addEntry(e.Partition, a.Namespace, a.Kind == engine.EntryCancel, entry), nil
	}
	if e, ok := w.pendingTrigger(a.Execution); ok && e.namespace == a.Namespace {
		return w.addEntry(e.partition, a.Namespace, false, entry), nil
	}
	return store.Written{}, refuse(job.KindNotFound, "execution_not_found")
}

// reschedule keeps the key for the new instant, if the execution waits for one.
func (w *twin) reschedule(a store.Ask) error {
	state, why := job.ExecutionState(""), job.ReasonNone
	if e, ok := w.find(a.Execution); ok && e.Namespace == a.Namespace {
		state, why = e.State, e.Reason
	} else if e, ok := w.pendingTrigger(a.Execution); ok && e.namespace == a.Namespace {
		state, why = store.AskedState(e.Request)
	}
	if state == "" {
		return nil // nobody finds it
	}
	for k, made := range w.keys {
		if made.id == a.Execution && state == job.ExecutionScheduled && why == job.WaitDelay {
			made.at = max(made.at, a.Due)
			w.keys[k] = made
		}
	}
	return store.MayReschedule(state, why)
}

func (w *twin) Requested(_ context.Context, k store.RequestKey) (job.ExecutionID, error) {
	k.Hash = ""
	made, ok := w.keys[k]
	if !ok {
		return job.ExecutionID{}, refuse(job.KindNotFound, "request_not_found")
	}
	return made.id, nil
}

func (w *twin) EntryPending(_ context.Context, entry int64) (bool, error) {
	return slices.ContainsFunc(w.inbox, func(e twinEntry) bool { return e.ID == entry }), nil
}

// SweepRequestKeys takes the oldest first.
func (w *twin) SweepRequestKeys(_ context.Context, before job.Instant, limit int) (int, error) {
	var old []store.RequestKey
	for k, made := range w.keys {
		if made.at < before {
			old = append(old, k)
		}
	}
	slices.SortFunc(old, func(a, b store.RequestKey) int { return int(w.keys[a].at - w.keys[b].at) })
	old = old[:min(limit, len(old))]
	for _, k := range old {
		delete(w.keys, k)
	}
	return len(old), nil
}
