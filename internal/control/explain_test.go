package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

func moment(t *testing.T, text string) job.Instant {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return job.InstantOf(at)
}

// TestExplainVerdicts: for each instant one verdict, from what is known alone.
func TestExplainVerdicts(t *testing.T) {
	t.Parallel()
	at := func(text string) job.Instant { return moment(t, "2026-11-"+text+"Z") }
	revision := func(n int64, written string, spec job.Spec) *job.Definition {
		return &job.Definition{UID: job.UID{1}, Namespace: "ns", Name: "j", Revision: n, CreatedAt: at("01T00:00:30"), UpdatedAt: at(written), Spec: spec}
	}
	hourly := job.Spec{Pool: "p", Handler: "h", Schedules: []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "0 * * * *"}}}}
	one := revision(1, "01T00:00:30", hourly)
	off := hourly
	off.Disabled = true
	paused := *revision(1, "01T00:00:30", hourly)
	paused.Pause = &job.Pause{At: at("10T09:30:00"), By: "ann", Reason: "move"}
	gone := *revision(1, "01T00:00:30", hourly)
	gone.Deleted = &job.Deletion{At: at("09T12:00:00"), By: "bob"}
	spread := hourly
	spread.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "0 * * * *", Jitter: 10 * time.Minute}}}
	closed := hourly
	closed.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "0 * * * *", Calendars: []string{"cn"}}}}
	shut := *revision(1, "01T00:00:30", closed)
	shut.Calendars = map[string]*job.Calendar{"cn": {Name: "cn", Revision: 1, Spec: job.CalendarSpec{Calendar: schedule.Calendar{Weekly: []string{"mon"}}}}}
	reopened := *revision(1, "01T00:00:30", closed) // a moment before the instant
	reopened.Calendars = map[string]*job.Calendar{"cn": {Name: "cn", Revision: 2, UpdatedAt: at("10T07:59:58")}}
	opened := *revision(1, "01T00:00:30", closed)
	opened.Calendars = map[string]*job.Calendar{"cn": {Name: "cn", Revision: 3, UpdatedAt: at("01T00:00:00")}}
	rate := closed
	rate.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: time.Hour, TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}}}}
	fair := *revision(1, "01T00:00:30", rate)
	fair.Calendars = map[string]*job.Calendar{"cn": {Name: "cn", Revision: 4, Spec: job.CalendarSpec{Calendar: schedule.Calendar{Closed: []schedule.Dates{{From: "2026-11-10", Name: "fair"}}}}}}
	closedRange := []job.Decision{{Schedule: "main", Kind: job.DecisionMissed, Reason: job.ReasonMissedDown, From: at("09T22:00:00"), To: at("16T02:00:00"), Count: 5, At: at("16T05:10:00")}}
	twice := hourly
	twice.Schedules = []job.Schedule{{ID: "main", MaxRuns: 2, Spec: schedule.Spec{Cron: "0 * * * *"}}}
	bound := revision(1, "01T00:00:30", twice)
	wary := hourly
	wary.AutoPause.AfterFailures = 3
	failing := revision(1, "01T00:00:30", wary)
	after := hourly
	after.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Delay: time.Minute}}}
	slow := revision(1, "01T00:00:30", after)
	pair := hourly
	pair.Schedules = append(slices.Clone(hourly.Schedules), job.Schedule{ID: "second", Spec: schedule.Spec{Cron: "0 * * * *"}})
	both := revision(1, "01T00:00:30", pair)
	pair.Schedules = pair.Schedules[1:]
	less := revision(2, "10T10:00:00", pair)
	now := at("10T10:20:00")
	spent := func(runs int64, last string, next job.Instant) []job.Cursor {
		return []job.Cursor{{Schedule: "main", Revision: 1, Last: at(last), Next: next, Runs: runs}}
	}
	caught := func(last, next string) []job.Cursor {
		return []job.Cursor{{Job: job.UID{1}, Schedule: "main", Revision: 1, Last: at(last), Next: at(next)}}
	}
	missed := []job.Decision{{Schedule: "main", Kind: job.DecisionMissed, Reason: job.ReasonMissedDown, From: at("09T01:00:00"), To: at("09T05:00:00"), Count: 5, At: at("09T05:10:00")}}
	run := func(state job.ExecutionState, trigger job.Trigger, started, ended string) *control.ExecutionView {
		v := &control.ExecutionView{Execution: job.Execution{ID: job.ExecutionID{7}, Trigger: trigger, State: state, PlannedAt: at("10T08:00:00")}}
		if started != "" {
			v.StartedAt = at(started)
		}
		if ended != "" {
			v.EndedAt = at(ended)
		}
		return v
	}
	waits := run(job.ExecutionQueued, job.TriggerSchedule, "", "")
	waits.Waits = job.WaitNoWorker
	chained := revision(1, "01T00:00:30", job.Spec{Pool: "p", Handler: "h", After: []job.After{{Job: "parent"}}})
	upstream := run(job.ExecutionCancelled, job.TriggerAfter, "", "10T08:01:00")
	upstream.Reason = job.ReasonUpstreamMissing
	alone := func(kind job.DecisionKind, why job.Reason) []job.Decision {
		return []job.Decision{{Kind: kind, Reason: why, From: at("10T08:00:00"), To: at("10T08:00:00"), Count: 1, At: at("10T08:00:03")}}
	}

	for name, c := range map[string]struct {
		ev   control.Evidence
		want control.Verdict
		says string
	}{
		"ran":                {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: one, Execution: run(job.ExecutionSucceeded, job.TriggerSchedule, "10T08:00:02", "10T08:00:09")}, "ran", "succeeded; it began 2s after its instant and took 7s"},
		"failed":             {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: one, Execution: run(job.ExecutionFailed, job.TriggerCatchUp, "10T08:30:00", "10T08:30:01")}, "ran", "ran when it was caught up as execution"},
		"runs":               {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: one, Execution: run(job.ExecutionRunning, job.TriggerSchedule, "10T08:00:02", "")}, "running", "it began 2s after"},
		"waits":              {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: one, Execution: waits}, "waits", "no live worker in the pool"},
		"never began":        {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: one, Execution: run(job.ExecutionCancelled, job.TriggerSchedule, "", "10T08:01:00")}, "not_run", "ended cancelled before it began"},
		"ended upstream":     {control.Evidence{At: at("10T08:00:00"), Newest: chained, InForce: chained, Execution: upstream}, "not_run", "before it began: a job that it runs after did not end in time"},
		"began, cancelled":   {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: one, Execution: run(job.ExecutionCancelled, job.TriggerSchedule, "10T08:00:02", "10T08:01:00")}, "ran", "cancelled; it began 2s after"},
		"follows":            {control.Evidence{At: at("10T08:00:00"), Newest: chained, InForce: chained}, "follows_others", "runs after other jobs, and has no execution of this instant"},
		"follows, blocked":   {control.Evidence{At: at("10T08:00:00"), Newest: chained, InForce: chained, Decisions: alone(job.DecisionBlocked, job.ReasonOverlapFull)}, "blocked", "as many executions of the job waited as overlap.maxQueued lets; decided at 2026-11-10T08:00:03Z, 3s after it"},
		"follows, paused":    {control.Evidence{At: at("10T08:00:00"), Newest: chained, InForce: chained, Decisions: alone(job.DecisionSkipped, job.ReasonPaused)}, "skipped", "decided at"},
		"missed":             {control.Evidence{At: at("09T03:00:00"), Newest: one, InForce: one, Decisions: missed}, "missed", "nobody planned it in time; with 4 others from 2026-11-09T01:00:00Z to 2026-11-09T05:00:00Z"},
		"missed and run":     {control.Evidence{At: at("09T03:00:00"), Newest: one, InForce: one, Decisions: missed, Execution: run(job.ExecutionSucceeded, job.TriggerBackfill, "10T08:00:02", "10T08:00:09")}, "ran", "; then ran by a backfill as execution"},
		"in a range":         {control.Evidence{At: at("09T03:30:00"), Newest: one, InForce: one, Decisions: missed}, "not_planned", "the one before is 2026-11-09T03:00:00Z; the one after is 2026-11-09T04:00:00Z"},
		"before the job":     {control.Evidence{At: at("01T00:00:00"), Newest: one}, "not_created", "created at 2026-11-01T00:00:30Z"},
		"behind its end":     {control.Evidence{At: at("09T13:00:00"), Newest: &gone, InForce: &gone}, "deleted", "by bob"},
		"before its end":     {control.Evidence{At: at("09T03:00:00"), Newest: &gone, InForce: &gone, Decisions: missed}, "missed", "nobody planned it"},
		"disabled":           {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: revision(3, "08T00:00:00", off)}, "disabled", "revision 3"},
		"due":                {control.Evidence{At: at("10T10:00:00"), Newest: one, InForce: one, Cursors: caught("10T09:00:00", "10T10:00:00"), Unowned: "no server owns its partition at the moment"}, "due", "20m after its time: no server owns"},
		"due, moving":        {control.Evidence{At: at("10T10:00:00"), Newest: one, InForce: one, Cursors: caught("10T09:00:00", "10T10:00:00"), Moving: "the job moves", Unowned: "no server"}, "due", "20m after its time: the job moves"},
		"held":               {control.Evidence{At: at("10T10:00:00"), Newest: &paused, InForce: &paused, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Held: at("10T10:00:00")}}}, "held", "by ann (move), until it is resumed"},
		"will be held":       {control.Evidence{At: at("10T11:00:00"), Newest: &paused, InForce: &paused}, "held", "will be recorded as skipped"},
		"will run":           {control.Evidence{At: at("10T11:00:00"), Newest: one, InForce: one, Cursors: caught("10T10:00:00", "10T11:00:00")}, "will_run", "in 40m"},
		"will run, moving":   {control.Evidence{At: at("10T11:00:00"), Newest: one, InForce: one, Cursors: caught("10T10:00:00", "10T11:00:00"), Moving: "the job moves"}, "will_run", "in 40m; the job moves"},
		"owed":               {control.Evidence{At: at("10T07:00:00"), Newest: one, InForce: one, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Owed: at("10T06:00:00"), OwedTo: at("10T08:00:00"), Next: at("10T11:00:00")}}}, "due", "caught up"},
		"owed by the other":  {control.Evidence{At: at("10T07:00:00"), Newest: both, InForce: both, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Last: at("10T09:00:00"), Next: at("10T11:00:00")}, {Schedule: "second", Revision: 1, Owed: at("10T06:00:00"), OwedTo: at("10T08:00:00"), Next: at("10T11:00:00")}}}, "due", "caught up"},
		"due for the other":  {control.Evidence{At: at("10T10:00:00"), Newest: both, InForce: both, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Last: at("10T09:00:00")}, {Schedule: "second", Revision: 1, Last: at("10T09:00:00"), Next: at("10T10:00:00")}}, Unowned: "no server owns its partition at the moment"}, "due", "no server owns"},
		"of one taken away":  {control.Evidence{At: at("10T07:00:00"), Newest: less, InForce: both, Cursors: []job.Cursor{{Schedule: "second", Revision: 2, Owed: at("10T06:00:00"), OwedTo: at("10T08:00:00"), Next: at("10T11:00:00")}}}, "due", "caught up"},
		"swept":              {control.Evidence{At: at("02T08:00:00"), Newest: one, InForce: one, Cursors: caught("10T10:00:00", "10T11:00:00"), Kept: at("03T00:00:00")}, "swept", "not kept so long"},
		"not in force":       {control.Evidence{At: at("01T01:00:00"), Newest: one, InForce: revision(1, "01T00:59:58", hourly)}, "not_in_force", "written 2s before"},
		"unexplained":        {control.Evidence{At: at("09T08:00:00"), Newest: one, InForce: one, Cursors: caught("10T10:00:00", "10T11:00:00")}, "unexplained", "should not be"},
		"manual":             {control.Evidence{At: at("09T08:00:00"), Newest: one, InForce: revision(1, "01T00:00:30", job.Spec{})}, "not_planned", "has no schedule"},
		"spread":             {control.Evidence{At: at("11T08:00:00"), Newest: one, InForce: revision(1, "01T00:00:30", spread)}, "not_planned", "the one after is 2026-11-11T08:0"},
		"closed":             {control.Evidence{At: at("10T08:00:00"), Newest: &shut, InForce: &shut}, "closed", "closed by calendar cn, revision 1; schedule main would have this instant; the one before is 2026-11-09T23:00:00Z"},
		"closed, a rate":     {control.Evidence{At: at("10T09:00:30"), Newest: &fair, InForce: &fair}, "closed", "closed by calendar cn, revision 4 (fair); schedule main would have"},
		"none of a rate":     {control.Evidence{At: at("10T09:00:31"), Newest: &fair, InForce: &fair}, "not_planned", "has this instant; calendar cn, revision 4 (fair) is closed then, for schedule main; the one before is"},
		"closed, in a range": {control.Evidence{At: at("10T08:00:00"), Newest: &shut, InForce: &shut, Decisions: closedRange}, "closed", "calendar cn, revision 1"},
		"just opened":        {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: &reopened}, "not_in_force", "revision 2 of calendar cn was written 2s before"},
		"opened for long":    {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: &opened}, "unexplained", "should not be"},
		"closed since":       {control.Evidence{At: at("10T08:00:00"), Newest: one, InForce: &opened, Today: &shut}, "closed", "revision 1 with calendar cn, revision 3, which was in force, has it"},
		"used up":            {control.Evidence{At: at("09T08:00:00"), Newest: one, InForce: bound, Cursors: spent(2, "09T07:00:00", 0)}, "used_up", "main had made all its runs"},
		"lost within them":   {control.Evidence{At: at("09T06:00:00"), Newest: bound, InForce: bound, Cursors: spent(2, "09T07:00:00", 0)}, "unexplained", "should not be"},
		"used up long ago":   {control.Evidence{At: at("10T11:00:00"), Newest: bound, InForce: bound, Cursors: spent(2, "09T07:00:00", 0)}, "used_up", "will have made all"},
		"its last run":       {control.Evidence{At: at("10T12:00:00"), Newest: bound, InForce: bound, Cursors: spent(0, "10T10:00:00", at("10T11:00:00"))}, "will_run", "in 1h40m"},
		"behind its last":    {control.Evidence{At: at("10T13:00:00"), Newest: bound, InForce: bound, Cursors: spent(0, "10T10:00:00", at("10T11:00:00"))}, "used_up", "will have made all"},
		"auto-paused":        {control.Evidence{At: at("10T11:00:00"), Newest: failing, InForce: failing, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Failures: 3, Next: at("10T11:00:00")}}}, "held", "3 executions in a row have failed"},
		"held by failures":   {control.Evidence{At: at("10T10:00:00"), Newest: failing, InForce: failing, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Failures: 3, Held: at("10T09:00:00")}}}, "held", "recorded as skipped then"},
		"after a delay":      {control.Evidence{At: at("10T10:21:00"), Newest: slow, InForce: slow, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Next: at("10T10:21:00")}}}, "will_run", "in 1m"},
		"not after a delay":  {control.Evidence{At: at("10T10:22:00"), Newest: slow, InForce: slow, Cursors: []job.Cursor{{Schedule: "main", Revision: 1, Next: at("10T10:21:00")}}}, "not_planned", "has this instant"},
		"a backfill comes":   {control.Evidence{At: at("09T03:00:00"), Newest: one, InForce: one, Decisions: missed, Backfill: job.ExecutionID{9}}, "missed", "has it in its range and has not come to it yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.ev.Now = now
			got := c.ev.Explain()
			if got.Verdict != c.want || !strings.Contains(got.Text, c.says) {
				t.Errorf("%s: %s\nwant %s: …%s…", got.Verdict, got.Text, c.want, c.says)
			}
		})
	}
}
