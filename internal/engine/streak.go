package engine

import (
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// Streak counts executions of a job that ended: Failed more in a row; or, Reset, none any more. It changes Cursor.Failures
// of all cursors that the partition has of the job; no other write of an existing cursor does, so that the owner need not
// know the cursors of a job to count for it.
type Streak struct {
	Job    job.UID
	Failed int
	Reset  bool // in place of Failed
	Most   int  // of Reset: so many or more stay, for a success does not resume a job that is paused; 0: no bound
}

// Next is the count behind s.
func (s *Streak) Next(failures int) int {
	switch {
	case !s.Reset:
		return failures + s.Failed
	case s.Most > 0 && failures >= s.Most:
		return failures
	default:
		return 0
	}
}

// ended counts an execution that has ended, when its job has an AutoPause, and lets what its job owes be looked at.
func (e *Engine) ended(x *execution) {
	u := x.row.JobUID
	e.due.debts.unblock(u)
	if x.def == nil || x.def.Spec.AutoPause.AfterFailures == 0 || !e.knownToAll(levelTime) {
		return
	}
	if failed, counts := x.def.Spec.AutoPause.Failed(x.row.State); failed && counts {
		e.streak(Streak{Job: u, Failed: 1})
	} else if counts {
		e.streak(Streak{Job: u, Reset: true, Most: x.def.Spec.AutoPause.AfterFailures})
	}
}

// streakOn tells that a page behind seq shows an old count.
func (e *Engine) streakOn(u job.UID, seq int64) bool {
	return e.pages.streakChanged(u, seq) || !e.pages.off && slices.ContainsFunc(e.step.batch.Streaks, func(s Streak) bool { return s.Job == u })
}

// streak notes a change of the count, in the order in which they come.
func (e *Engine) streak(s Streak) {
	all := &e.step.batch.Streaks
	if last := len(*all) - 1; last >= 0 && (*all)[last].Job == s.Job && !(*all)[last].Reset && !s.Reset {
		(*all)[last].Failed += s.Failed
	} else {
		*all = append(*all, s)
	}
	for _, d := range e.due.jobs[s.Job] {
		d.cursor.Failures = s.Next(d.cursor.Failures)
	}
}
