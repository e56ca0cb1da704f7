package engine

import (
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// Streak counts the executions of a job that ended: Reset first, then Failed more. It changes Cursor.Failures of all
// cursors that the partition has of the job; no other write of an existing cursor does, so that the owner need not know
// the cursors of a job to count for it.
type Streak struct {
	Job    job.UID
	Reset  bool // one has succeeded, or a person resumed the job
	Failed int
}

// ended counts an execution that has ended, when its job has an AutoPause, and lets what its job owes be looked at.
func (e *Engine) ended(x *execution) {
	u := x.row.JobUID
	e.due.debts.unblock(u)
	if x.def == nil || x.def.Spec.AutoPause.AfterFailures == 0 || !e.knownToAll(levelTime) {
		return
	}
	if failed, counts := x.def.Spec.AutoPause.Failed(x.row.State); counts {
		e.streak(u, failed)
	}
}

// streakOn tells that a page behind seq shows an old count.
func (e *Engine) streakOn(u job.UID, seq int64) bool {
	return e.pages.streakChanged(u, seq) || !e.pages.off && slices.ContainsFunc(e.step.batch.Streaks, func(s Streak) bool { return s.Job == u })
}

// streak counts one more failure, or ends the row of them.
func (e *Engine) streak(u job.UID, failed bool) {
	all := e.step.batch.Streaks
	var s *Streak
	for i := range all {
		if all[i].Job == u {
			s = &all[i]
		}
	}
	if s == nil {
		all = append(all, Streak{Job: u})
		e.step.batch.Streaks, s = all, &all[len(all)-1]
	}
	if s.Failed++; !failed {
		s.Failed, s.Reset = 0, true
	}
	for _, d := range e.due.jobs[u] {
		if d.cursor.Failures++; !failed {
			d.cursor.Failures = 0
		}
	}
}
