package store

import (
	"context"
	"encoding/json"

	"github.com/taktsched/takt/internal/job"
)

// PutBackfill asks for a backfill.
type PutBackfill struct {
	Backfill job.Backfill // ID, Namespace, Job, From, To, Spec, At; the rest is filled in the transaction
	// Count judges the newest revision of the job, in the transaction that pins it, and tells how many instants the range has.
	Count func(job.Definition) (int64, error)
}

// CancelBackfill asks for the end of a backfill.
type CancelBackfill struct {
	Namespace string
	ID        job.ExecutionID
	Cancel    job.BackfillCancel
}

// Backfills is used by the use cases that run the past. Each write makes the people's row and an inbox entry in one
// transaction (R10).
type Backfills interface {
	// PutBackfill: KindNotFound "job_not_found"; KindConflict "range_not_planned" when a schedule of the job has yet to plan
	// something up to To, or the owner has yet to take in the newest revision, "backfill_live" when a backfill of the job that
	// has not ended has a part of the range; and what Count says.
	PutBackfill(ctx context.Context, p PutBackfill, partition func(job.Definition) int) (job.Backfill, Written, error)
	// CancelBackfill: KindNotFound "backfill_not_found"; KindConflict "backfill_ended". Asking again may add Running to what
	// was asked; else it writes nothing: then Entry is 0.
	CancelBackfill(ctx context.Context, c CancelBackfill) (job.Backfill, Written, error)
	// Backfill: KindNotFound "backfill_not_found".
	Backfill(ctx context.Context, namespace string, id job.ExecutionID) (job.Backfill, error)
	// Backfills lists them, newest first; name "" for all jobs.
	Backfills(ctx context.Context, namespace, name string, p Page) (rows []job.Backfill, next string, err error)
}

// CheckPutBackfill refuses a request with a text that cannot be kept.
func CheckPutBackfill(p *PutBackfill) error {
	b := &p.Backfill
	return texts("request", b.Namespace, b.Job, b.Spec.By, b.Spec.Reason)
}

// CheckCancelBackfill refuses a request with a text that cannot be kept.
func CheckCancelBackfill(c *CancelBackfill) error {
	return texts("request", c.Namespace, c.Cancel.By, c.Cancel.Note)
}

// MayBackfill judges a request by the job's newest revision, its cursors and its backfills that have not ended.
func MayBackfill(b *job.Backfill, d *job.Definition, cursors []job.Cursor, live []job.Backfill) error {
	for _, s := range d.Spec.Schedules {
		known := false
		for _, c := range cursors {
			known = known || c.Schedule == s.ID && c.Revision == d.Revision
		}
		if !known {
			return job.Errorf(job.KindConflict, "range_not_planned", "the newest revision of job %q is not in force yet", b.Job).
				WithHint("ask again in a moment")
		}
	}
	for _, c := range cursors {
		if c.Next != 0 && c.Next <= b.To {
			return job.Errorf(job.KindConflict, "range_not_planned", "the schedule %q has yet to plan %s, which lies in the range", c.Schedule, c.Next).
				WithField("to").WithHint("ask again in a moment, or end the range before it")
		}
	}
	for _, c := range cursors {
		for _, r := range c.OwedRanges() {
			if r.From <= b.To && b.From <= r.To {
				return job.Errorf(job.KindConflict, "range_not_planned", "the schedule %q is catching up from %s to %s, which lies in the range", c.Schedule, r.From, r.To).
					WithField("to").WithHint("ask again when it has")
			}
		}
	}
	for i := range live {
		if o := &live[i]; o.From <= b.To && b.From <= o.To {
			return job.Errorf(job.KindConflict, "backfill_live", "backfill %s of the job has a part of the range and has not ended", o.ID).
				WithHint("wait for it or cancel it: takt get backfills")
		}
	}
	return nil
}

// MayCancelBackfill judges a request to end b. more: there is something to write.
func MayCancelBackfill(b *job.Backfill, c *job.BackfillCancel) (more bool, err error) {
	if b.Progress.State.Ended() {
		return false, job.Errorf(job.KindConflict, "backfill_ended", "the backfill has ended (%s)", b.Progress.State).WithField("path.id").
			WithHint("there is nothing left to cancel")
	}
	return b.Cancel == nil || c.Running && !b.Cancel.Running, nil
}

// BackfillEnd is when a backfill ended; of one whose progress cannot be read, when it was asked for.
func BackfillEnd(b *job.Backfill) job.Instant { return max(b.Progress.Ended, b.At) }

// NoBackfill says that there is none.
func NoBackfill(namespace string, id job.ExecutionID) error {
	return job.Errorf(job.KindNotFound, "backfill_not_found", "there is no backfill %s in namespace %q", id, namespace).
		WithHint("takt get backfills lists them")
}

// ReadBackfill completes the row of a backfill with what is stored as JSON, and marks one that cannot be used.
func ReadBackfill(b *job.Backfill, spec, cancel, progress []byte) {
	state := b.Progress.State
	for _, part := range []struct {
		name string
		text []byte
		into any
	}{{"spec", spec, &b.Spec}, {"cancel", cancel, &b.Cancel}, {"progress", progress, &b.Progress}} {
		if len(part.text) == 0 {
			continue
		}
		if err := json.Unmarshal(part.text, part.into); err != nil {
			b.Unfit = unreadable(part.name, err)
		}
	}
	b.Progress.ID, b.Progress.State = b.ID, state
	if state == "" {
		b.Progress.State = job.BackfillPending
	}
}
