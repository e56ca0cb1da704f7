package control

import (
	"context"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// AskRequest is about one execution.
type AskRequest struct {
	Namespace string
	Execution job.ExecutionID
	Note      string // what the person says; ≤ MaxNote bytes
}

// Cancel asks that an execution ends: what waits is cancelled, what runs is told to stop. Cancelling
// one that is being cancelled, or was, changes nothing. Errors: KindNotFound; KindConflict
// "execution_ended".
func (c *Control) Cancel(ctx context.Context, r AskRequest) (Effect, error) {
	e, err := c.asked(ctx, r)
	if err != nil {
		return "", err
	}
	switch {
	case e.State == job.ExecutionCancelled || e.State == job.ExecutionCancelling:
		return Effective, nil
	case e.State.Ended():
		return "", job.Errorf(job.KindConflict, "execution_ended", "the execution has ended (%s)", e.State).WithField("path.id").
			WithHint("there is nothing left to cancel")
	}
	return c.ask(ctx, engine.EntryCancel, r)
}

// Rerun asks that the shards of an ended execution that did not succeed run again. Errors:
// KindNotFound; KindConflict "execution_live", "nothing_to_rerun" or "job_deleted".
func (c *Control) Rerun(ctx context.Context, r AskRequest) (Effect, error) {
	e, err := c.asked(ctx, r)
	if err != nil {
		return "", err
	}
	switch {
	case !e.State.Ended():
		return "", job.Errorf(job.KindConflict, "execution_live", "the execution has not ended (%s)", e.State).WithField("path.id").
			WithHint("wait for its end, or cancel it first")
	case e.State == job.ExecutionSucceeded:
		return "", job.Errorf(job.KindConflict, "nothing_to_rerun", "every shard has succeeded").WithField("path.id").
			WithHint("trigger the job for a new execution")
	}
	if err := c.stillThere(ctx, &e); err != nil {
		return "", err
	}
	return c.ask(ctx, engine.EntryRerun, r)
}

// stillThere refuses what would run for a job that was deleted.
func (c *Control) stillThere(ctx context.Context, e *job.Execution) error {
	row, err := c.read.Job(ctx, e.Namespace, e.Job)
	if err != nil && job.KindOf(err) != job.KindNotFound {
		return err
	}
	if err != nil || row.Definition.UID != e.JobUID {
		return job.Errorf(job.KindConflict, "job_deleted", "the job %q that made the execution was deleted", e.Job).WithField("path.id").
			WithHint("apply the job again and trigger it")
	}
	return nil
}

func (c *Control) asked(ctx context.Context, r AskRequest) (job.Execution, error) {
	if err := checkNote(r.Note); err != nil {
		return job.Execution{}, err
	}
	return c.read.Execution(ctx, r.Namespace, r.Execution)
}

func checkNote(note string) error {
	if len(note) <= MaxNote && utf8.ValidString(note) {
		return nil
	}
	return job.Errorf(job.KindInvalid, "note_too_long", "the note is longer than %d bytes", MaxNote).WithField("note").
		WithHint("keep it to a sentence")
}

func (c *Control) ask(ctx context.Context, kind engine.EntryKind, r AskRequest) (Effect, error) {
	w, err := c.write.Ask(ctx, store.Ask{Kind: kind, Namespace: r.Namespace, Execution: r.Execution, Note: r.Note, At: c.instant()})
	if err != nil {
		return "", err
	}
	return c.effect(ctx, w), nil
}
