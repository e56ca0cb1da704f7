package store

import (
	"context"

	"github.com/taktsched/takt/internal/job"
)

// Revision is one revision of a job with who made it and why.
type Revision struct {
	Definition job.Definition
	Change     job.Change
}

// Action is what became of a job in a set.
type Action string

// The actions.
const (
	ActionCreated   Action = "created"
	ActionChanged   Action = "changed"
	ActionUnchanged Action = "unchanged"
	ActionPruned    Action = "pruned"
)

// ApplyJobs creates and changes a set of jobs and calendars, all of it or nothing. Jobs may name calendars of the set.
type ApplyJobs struct {
	Calendars []PutCalendar // none twice

	Items  []PutJob // no job twice
	Prune  *Prune   // nil: no job is deleted
	DryRun bool     // judge everything, write nothing
}

// Prune deletes jobs that are not in the set; their executions run to their end.
type Prune struct {
	Namespaces []string
	Match      func(job.Definition) bool
	Deletion   job.Deletion
	Forget     func(job.Definition) string // as DeleteJob.Forget
}

// AppliedSet is what became of a set.
type AppliedSet struct {
	Calendars []AppliedCalendar // in their order
	Jobs      []AppliedJob
}

// Unwritten is the set as a dry run answers it.
func (s AppliedSet) Unwritten() AppliedSet {
	for i := range s.Calendars {
		s.Calendars[i].Written = nil
	}
	for i := range s.Jobs {
		s.Jobs[i].Written.Entry = 0
	}
	return s
}

// AppliedJob is what became of one job of a set: first the items in their order, then the pruned ones by
// namespace and name.
type AppliedJob struct {
	Action     Action
	Before     *job.Definition // newest revision before; nil when there was none
	Definition job.Definition  // newest revision now; of a pruned job its last one
	Written    Written
}

// DeleteJob ends a job's life. Its revisions stay readable for what it started.
type DeleteJob struct {
	Namespace  string
	Name       string
	IfRevision int64 // > 0: only if the newest revision is this one
	Deletion   job.Deletion
	Forget     string // operation whose request keys go with it
}

// DeletedJob is the receipt of a DeleteJob.
type DeletedJob struct {
	Written
	Definition job.Definition // the last revision, with Deleted set
	Live       int            // executions that had begun to wait or run and had not ended, as far as MaxLive
}

// MaxLive is how far the executions of a deleted job are counted.
const MaxLive = 10_000

// PauseJob pauses a job, or ends its pause. It makes no revision.
type PauseJob struct {
	Namespace string
	Name      string
	Pause     *job.Pause // nil: resume
	At        job.Instant
}

// Jobs is used by the use cases that change jobs and look at their past.
type Jobs interface {
	// ApplyJobs writes all of a set or nothing. A refused set is a *job.SetError with every calendar that is refused, or
	// when none is, with every item, each as PutJob would: KindConflict "revision_changed". Entries for the jobs that named
	// a changed calendar come before those of the items.
	ApplyJobs(ctx context.Context, a ApplyJobs) (AppliedSet, error)
	// DeleteJob: KindNotFound; KindConflict "revision_changed". Behind the entry for the planner there is, with
	// Deletion.Cancel, an entry cancel_job for each partition, the receipt's too: executions of a job that moved may be
	// anywhere, and those that wait may be many; their owners cancel them in steps.
	DeleteJob(ctx context.Context, d DeleteJob) (DeletedJob, error)
	// PauseJob: KindNotFound. Resuming a job that is not paused writes nothing: then Entry is 0. The entry of a resume is
	// job_resumed when failures of the job are counted.
	PauseJob(ctx context.Context, p PauseJob) (job.Definition, Written, error)
	// Revision of a job, or of the last one of that name that was deleted. KindNotFound "job_not_found",
	// "revision_not_found".
	Revision(ctx context.Context, namespace, name string, revision int64) (Revision, error)
	// Revisions lists them, newest first, of the job or of the last one of that name that was deleted.
	Revisions(ctx context.Context, namespace, name string, p Page) (rows []Revision, next string, err error)
}

// CheckDeleteJob refuses a request with a text that cannot be kept.
func CheckDeleteJob(d *DeleteJob) error {
	return texts("request", d.Namespace, d.Name, d.Deletion.By, d.Deletion.Reason, d.Forget)
}

// CheckPauseJob refuses a request with a text that cannot be kept.
func CheckPauseJob(p *PauseJob) error {
	if p.Pause == nil {
		return texts("request", p.Namespace, p.Name)
	}
	return texts("request", p.Namespace, p.Name, p.Pause.By, p.Pause.Reason)
}
