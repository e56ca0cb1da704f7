package control

import (
	"context"
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// MaxDelay bounds how far ahead an execution may be asked for.
const MaxDelay = 3660 * 24 * time.Hour

// When says at which instant an execution is asked for; the zero value: now.
type When struct {
	At time.Time
	In time.Duration // by the clock of the server that takes the request in
}

// String is the part of a request that its key stands for; "" for now.
func (w When) String() string {
	switch {
	case !w.At.IsZero():
		return fmt.Sprintf("at %d", job.InstantOf(w.At))
	case w.In != 0:
		return fmt.Sprintf("in %d", w.In.Milliseconds())
	}
	return ""
}

// due is what When comes to.
type due struct {
	at      job.Instant
	delayed bool
	past    bool // what was asked for has passed
}

func (w When) due(now job.Instant) (due, error) {
	field, at := "at", job.InstantOf(w.At)
	switch {
	case !w.At.IsZero() && w.In != 0:
		return due{}, job.Errorf(job.KindInvalid, "at_and_in", "both an instant and a length of time are given").WithField("in").
			WithHint("give at or in, not both")
	case w.At.IsZero():
		field, at = "in", now.Add(w.In)
	}
	switch {
	case w.In < 0 || w.In > MaxDelay || at > now.Add(MaxDelay):
		return due{}, job.Errorf(job.KindInvalid, "instant_too_far", "the instant does not lie within the next ten years").WithField(field).
			WithHint("ask for an instant at most ten years ahead, such as 2026-12-01T09:00:00+08:00, or for a length of time such as 30m")
	case at > now:
		return due{at: at, delayed: true}, nil
	}
	return due{at: now, past: at < now}, nil
}

// RescheduleRequest asks that an execution which waits for its instant gets another one.
type RescheduleRequest struct {
	AskRequest
	When When // the zero value: now
}

// Rescheduled is the answer to a RescheduleRequest.
type Rescheduled struct {
	PlannedAt job.Instant
	Past      bool // the instant that was asked for has passed: it runs now
	Effect    Effect
}

// Reschedule moves an execution that waits for its instant to another one. It keeps its id and its request key. Errors:
// KindNotFound; KindInvalid; KindConflict "execution_not_scheduled" when it waits no more.
func (c *Control) Reschedule(ctx context.Context, r RescheduleRequest) (Rescheduled, error) {
	if err := checkNote(r.Note); err != nil {
		return Rescheduled{}, err
	}
	now := c.instant()
	d, err := r.When.due(now)
	if err != nil {
		return Rescheduled{}, err
	}
	w, err := c.write.Ask(ctx, store.Ask{Kind: engine.EntryReschedule, Namespace: r.Namespace, Execution: r.Execution, Note: r.Note, At: now, Due: d.at})
	if err != nil {
		return Rescheduled{}, err
	}
	out := Rescheduled{PlannedAt: d.at, Past: d.past, Effect: c.effect(ctx, w)}
	if out.Effect != Effective {
		return out, nil
	}
	// It may have come due before its owner took this in.
	if e, err := c.read.Execution(ctx, r.Namespace, r.Execution); err == nil && e.PlannedAt != d.at && e.State != job.ExecutionScheduled {
		return Rescheduled{}, store.MayReschedule(e.State, e.Reason)
	}
	return out, nil
}

// Requested finds the execution that a trigger of a job with the given key made. Errors: KindNotFound "request_not_found";
// KindInvalid.
func (c *Control) Requested(ctx context.Context, namespace, name, key string) (job.ExecutionID, error) {
	if err := checkKey(key); err != nil {
		return job.ExecutionID{}, err
	}
	return c.write.Requested(ctx, store.RequestKey{Namespace: namespace, Operation: store.TriggerOperation(name), Key: key})
}
