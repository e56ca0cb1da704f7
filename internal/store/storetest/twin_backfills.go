package storetest

import (
	"bytes"
	"context"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func byBackfill(a, b job.Backfill) int { return bytes.Compare(a.ID[:], b.ID[:]) }

func (w *twin) PutBackfill(_ context.Context, p store.PutBackfill, partition func(job.Definition) int) (job.Backfill, store.Written, error) {
	if err := store.CheckPutBackfill(&p); err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	b := p.Backfill
	j, known := w.jobs[jobName{b.Namespace, b.Job}]
	if !known {
		return job.Backfill{}, store.Written{}, refuse(job.KindNotFound, "job_not_found")
	}
	d := w.filled(j.revisions[len(j.revisions)-1])
	n, err := p.Count(d)
	if err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	if err := store.MayBackfill(&b, &d, w.cursorsOf(d.UID), w.backfillsOf(d.UID)); err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	b.Spec.Total, b.JobUID, b.Revision, b.Partition = n, d.UID, d.Revision, partition(d)
	b.Progress = job.BackfillProgress{ID: b.ID, State: job.BackfillPending}
	return b, w.keepBackfill(b), nil
}

// keepBackfill writes a row and tells its owner.
func (w *twin) keepBackfill(b job.Backfill) store.Written {
	if w.backfills == nil {
		w.backfills = map[job.ExecutionID]job.Backfill{}
	}
	w.backfills[b.ID] = b
	out := w.addEntry(b.Partition, b.Namespace, false, engine.Entry{Kind: engine.EntryBackfill, Job: b.JobUID, Execution: b.ID})
	w.inbox[len(w.inbox)-1].revision = b.Revision
	return out
}

// backfillsOf are those of a job that have not ended.
func (w *twin) backfillsOf(uid job.UID) (all []job.Backfill) {
	for _, b := range ordered(w.backfills, byBackfill) {
		if b.JobUID == uid && !b.Progress.State.Ended() {
			all = append(all, b)
		}
	}
	return all
}

func (w *twin) CancelBackfill(_ context.Context, c store.CancelBackfill) (job.Backfill, store.Written, error) {
	if err := store.CheckCancelBackfill(&c); err != nil {
		return job.Backfill{}, store.Written{}, err
	}
	b, known := w.backfills[c.ID]
	if !known || b.Namespace != c.Namespace {
		return job.Backfill{}, store.Written{}, refuse(job.KindNotFound, "backfill_not_found")
	}
	more, err := store.MayCancelBackfill(&b, &c.Cancel)
	if err != nil || !more {
		return b, store.Written{Partition: b.Partition}, err
	}
	b.Cancel = &c.Cancel
	return b, w.keepBackfill(b), nil
}

// endBackfills asks for the end of those of a job that is deleted.
func (w *twin) endBackfills(uid job.UID, d job.Deletion) {
	for _, b := range w.backfillsOf(uid) {
		b.Cancel = &job.BackfillCancel{At: d.At, Running: d.Cancel, By: d.By, Reason: job.ReasonJobDeleted, Note: d.Reason}
		w.keepBackfill(b)
	}
}

func (w *twin) Backfill(_ context.Context, namespace string, id job.ExecutionID) (job.Backfill, error) {
	b, known := w.backfills[id]
	if !known || b.Namespace != namespace {
		return job.Backfill{}, refuse(job.KindNotFound, "backfill_not_found")
	}
	return b, nil
}

func (w *twin) Backfills(_ context.Context, namespace, name string, p store.Page) ([]job.Backfill, string, error) {
	all := ordered(w.backfills, func(a, b job.Backfill) int { return byBackfill(b, a) })
	keep := func(b job.Backfill) bool { return b.Namespace == namespace && (name == "" || b.Job == name) }
	return list(all, "backfills", p, keep, func(b job.Backfill) string { return b.ID.String() })
}

// mayProgress tells whether a partition may write how far some backfills are.
func (w *twin) mayProgress(partition int, b *engine.Batch) bool {
	writes := map[job.ExecutionID]bool{}
	for _, p := range b.Backfills {
		of, known := w.backfills[p.ID]
		if writes[p.ID] = true; known && of.Progress.State != job.BackfillPending && of.Partition != partition {
			return false
		}
	}
	return !slices.ContainsFunc(b.SentBackfills, func(s engine.SentBackfill) bool {
		of := w.backfills[s.ID]
		return !writes[s.ID] && (of.Progress.State == job.BackfillPending || of.Partition != partition)
	})
}

func (w *twin) progress(partition int, b *engine.Batch) {
	for _, p := range b.Backfills {
		if of, known := w.backfills[p.ID]; known {
			of.Progress, of.Partition = p, partition
			w.backfills[p.ID] = of
		}
	}
}

// loadedBackfills are those that a partition has begun and not ended.
func (w *twin) loadedBackfills(partition int) (all []engine.Backfill) {
	for _, b := range ordered(w.backfills, byBackfill) {
		if s := b.Progress.State; b.Partition == partition && (s == job.BackfillRunning || s == job.BackfillCancelling) {
			all = append(all, engine.Backfill{Backfill: b, Definition: w.definition(b.JobUID, b.Revision), Home: w.home(b.JobUID, b.Revision, partition)})
		}
	}
	return all
}

func (w *twin) DecisionsIn(_ context.Context, uid job.UID, schedules []string, from, to job.Instant) (all []job.Decision, err error) {
	for _, s := range schedules {
		var first *job.Decision
		for i := range w.decisions {
			d := &w.decisions[i]
			if d.Job == uid && d.Schedule == s && d.From <= to && from <= d.To && (first == nil || d.To < first.To) {
				first = d
			}
		}
		if first != nil {
			all = append(all, *first)
		}
	}
	return all, nil
}

func (w *twin) Upcoming(_ context.Context, namespace string, until job.Instant, limit int) (rows []store.DueRow, more bool, err error) {
	for _, c := range w.cursors {
		d := w.definition(c.Job, 0)
		if d != nil && d.Deleted == nil && d.Namespace == namespace && !d.Spec.Disabled && c.Next > 0 && c.Next <= until {
			rows = append(rows, store.DueRow{Definition: *d, Cursor: c.Cursor})
		}
	}
	slices.SortFunc(rows, store.CompareDue)
	if len(rows) > limit {
		return rows[:limit], true, nil
	}
	return rows, false, nil
}

func (w *twin) ZonesChanged(context.Context, int64, job.Instant) (int, error) { return 0, nil } // its case has no twin

func (w *twin) Counts(context.Context) (store.Counts, error) {
	out := store.Counts{Jobs: len(w.jobs), Live: map[job.ExecutionState]int{}, Decisions: len(w.decisions)}
	for _, e := range w.live {
		out.Live[e.State]++
	}
	for _, b := range w.backfills {
		if !b.Progress.State.Ended() {
			out.Backfills++
		}
	}
	return out, nil
}
