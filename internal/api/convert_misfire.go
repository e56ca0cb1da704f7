package api

import (
	"fmt"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// fromMisfire is what becomes of missed instants, as documents write it.
func fromMisfire(s *job.Spec, d *takt.JobSpec) {
	if m := s.Misfire; m != (job.Misfire{}) {
		d.Misfire = &takt.MisfireSpec{Policy: string(m.Policy), Grace: takt.Duration(m.Grace), Window: takt.Duration(m.Window), Limit: m.Limit}
	}
	if a := s.AutoPause; a.AfterFailures != 0 {
		d.AutoPause = &takt.AutoPauseSpec{AfterFailures: a.AfterFailures}
	}
}

// progress tells what the cursors of a job say beside its instants.
func progress(r *store.JobRow, st *takt.JobStatus) {
	spec := &r.Definition.Spec
	failures := 0
	var from, to job.Instant
	for _, c := range r.Cursors {
		failures = max(failures, c.Failures)
		for _, r := range c.OwedRanges() {
			if to = max(to, r.To); from == 0 || r.From < from {
				from = r.From
			}
		}
		for i := range spec.Schedules {
			if s := &spec.Schedules[i]; s.ID == c.Schedule && s.MaxRuns > 0 {
				st.Schedules = append(st.Schedules, takt.ScheduleStatus{Name: s.ID, Runs: c.Runs, MaxRuns: s.MaxRuns, UsedUp: s.UsedUp(c.Runs)})
			}
		}
	}
	if spec.AutoPause.Paused(failures) {
		st.NextPlannedAt = nil
		st.AutoPaused = &takt.AutoPaused{Failures: failures,
			Text: fmt.Sprintf("its schedules are paused: %d executions in a row have failed; `takt resume %s` lets them fire again", failures, r.Definition.Name)}
	}
	if from != 0 {
		st.CatchingUp = &takt.CatchingUp{From: from.Time(), To: to.Time()}
	}
}
