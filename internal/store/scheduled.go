package store

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// TriggerOperation is the operation of request keys of a job.
func TriggerOperation(name string) string { return "trigger/" + name }

// RequestKeyOf is the key of the request that made an execution; its Key is "" when it had none.
func RequestKeyOf(e *job.Execution) RequestKey {
	return RequestKey{Namespace: e.Namespace, Operation: TriggerOperation(e.Job), Key: e.RequestKey}
}

// MayReschedule refuses (see Control.Ask) what does not wait for its instant.
func MayReschedule(state job.ExecutionState, why job.Reason) error {
	if state == job.ExecutionScheduled && why == job.WaitDelay {
		return nil
	}
	e := job.Errorf(job.KindConflict, "execution_not_scheduled", "the execution does not wait for its instant any more (%s)", state)
	if state == job.ExecutionScheduled {
		e = job.Errorf(job.KindConflict, "execution_not_scheduled", "the execution does not wait for its instant: %s", why.Text())
	}
	return e.WithField("path.id").WithHint("only what is scheduled for a later instant can be rescheduled; trigger the job for another execution")
}

// AskedState is the state of what a trigger asks for and its owner has not taken in yet.
func AskedState(r *engine.Request) (job.ExecutionState, job.Reason) {
	if r.Delayed {
		return job.ExecutionScheduled, job.WaitDelay
	}
	return job.ExecutionQueued, job.ReasonNone
}

// ReasonAsked is why what a trigger asks for waits, as far as its owner has not taken it in; AskedAt is when it was asked
// for, if the request says.
func ReasonAsked(r *engine.Request) job.Reason {
	_, why := AskedState(r)
	return why
}

// AskedAt is when a request was made; 0 when it does not say.
func AskedAt(r *engine.Request) job.Instant {
	if r.Delayed {
		return 0
	}
	return r.At
}

// Instant is what the entry of an ask carries.
func (a *Ask) Instant() job.Instant {
	if a.Kind == engine.EntryReschedule {
		return a.Due
	}
	return a.At
}

// NoRequest tells that a key is not kept.
func NoRequest(k RequestKey) error {
	return job.Errorf(job.KindNotFound, "request_not_found", "no request with the key %q is known", k.Key).WithField("path.key").
		WithHint("a key is kept for 24 hours behind the instant that its execution was asked for")
}

// PlaceOf is the place of a row in the order of planned instants.
func PlaceOf(e *job.Execution) engine.Place { return engine.Place{At: e.PlannedAt, ID: e.ID} }
