package takt

import "time"

// Explanation is the answer to "why did it (not) run at T?".
type Explanation struct {
	Job      string    `json:"job"`
	At       time.Time `json:"at" doc:"The planned instant, with the offset of the schedule's time zone; of one that is spread, where the spread moved it."`
	Verdict  string    `json:"verdict" enum:"ran,running,waits,not_run,skipped,missed,blocked,held,due,will_run,not_planned,closed,disabled,not_created,deleted,not_in_force,swept,unexplained,follows_others,used_up"`
	Text     string    `json:"text" doc:"The verdict and its reason in one sentence."`
	Reason   string    `json:"reason,omitempty"`
	Revision int64     `json:"revision,omitempty" doc:"That was in force; absent: none of the newest job of the name was, and what the verdict tells is of an earlier one."`
	Schedule string    `json:"schedule,omitempty" doc:"That has the instant; several are joined by commas."`
	TimeZone string    `json:"timeZone"`
	Note     string    `json:"note,omitempty" doc:"What a step of the clock, a calendar or the spread did to it."`

	Execution *Execution `json:"execution,omitempty" doc:"Of the instant."`
	LateMs    *int64     `json:"lateMs,omitempty" doc:"From the instant to the first lease of its execution."`
	Decisions []Decision `json:"decisions,omitempty" doc:"Whose ranges hold the instant."`
	Backfill  string     `json:"backfill,omitempty" doc:"That has it in its range and has not ended."`
	Previous  *time.Time `json:"previous,omitempty" doc:"Around an instant that is none: the one before."`
	Next      *time.Time `json:"next,omitempty" doc:"Likewise: the one after."`
}

// Upcoming is a planned instant to come.
type Upcoming struct {
	Fire
	Job  string `json:"job"`
	Held string `json:"held,omitempty" doc:"By what pause; it will be recorded as skipped unless that ends before."`
}

// UpcomingList is a page of instants to come, in their order.
type UpcomingList struct {
	Items []Upcoming `json:"items" nullable:"false"`
	Next  string     `json:"next,omitempty"`
	// Complete is set when there were too many schedules to look at.
	Complete *time.Time `json:"complete,omitempty" doc:"The list is complete up to here only: name a job, or a shorter time. Absent: it is complete."`
	// Paused are on the first page of the list of all jobs.
	Paused     []PausedJob `json:"paused,omitempty" doc:"Jobs with schedules that are paused now, by name, at most 100. Their instants are left out up to the end of the pause. On the first page, of all jobs."`
	PausedMore bool        `json:"pausedMore,omitempty" doc:"Other jobs may be paused, too."`
}

// PausedJob is a job whose schedules do not fire.
type PausedJob struct {
	Job  string `json:"job"`
	Held string `json:"held" doc:"By what pause, and until when."`
}

// BackfillRequest asks that a job runs for the planned instants of a range of the past.
type BackfillRequest struct {
	From        string `json:"from" maxLength:"64" doc:"RFC 3339, or 2026-03-08T02:30 on the clocks of the job's time zone, or 2026-03-08T02:30[Asia/Shanghai]; included."`
	To          string `json:"to" maxLength:"64" doc:"Likewise; included, and not in the future."`
	Reverse     bool   `json:"reverse,omitempty" doc:"The newest instant first."`
	MaxParallel int    `json:"maxParallel,omitempty" minimum:"0" maximum:"100" doc:"Executions at a time; default 1."`
	DryRun      bool   `json:"dryRun,omitempty" doc:"Tell how many instants there are, and write nothing."`
	Author      string `json:"author,omitempty" maxLength:"256" doc:"Who asks, such as user@host."`
	Reason      string `json:"reason,omitempty" maxLength:"1024" doc:"Why."`
}

// CancelBackfillRequest asks for the end of a backfill.
type CancelBackfillRequest struct {
	Running bool   `json:"running,omitempty" doc:"Cancel its executions that have not ended, too; else they run to their end."`
	Author  string `json:"author,omitempty" maxLength:"256" doc:"Who asks, such as user@host."`
	Reason  string `json:"reason,omitempty" maxLength:"1024" doc:"Why."`
}

// Backfill runs a job for the planned instants of a range of the past: each that has no succeeded execution.
type Backfill struct {
	ID          string     `json:"id,omitempty" doc:"Absent with dryRun."`
	Job         string     `json:"job"`
	Revision    int64      `json:"revision" doc:"That it runs: the newest when it was asked for."`
	From        time.Time  `json:"from"`
	To          time.Time  `json:"to"`
	Reverse     bool       `json:"reverse,omitempty"`
	MaxParallel int        `json:"maxParallel"`
	State       string     `json:"state,omitempty" enum:"pending,running,cancelling,done,cancelled"`
	Total       int64      `json:"total" doc:"Planned instants of the range."`
	Succeeded   int64      `json:"succeeded"`
	Failed      int64      `json:"failed" doc:"Ended otherwise, or could not be run: executions that the job left behind in another partition."`
	Skipped     int64      `json:"skipped" doc:"Had succeeded before."`
	Running     []string   `json:"running,omitempty" doc:"Executions that have not ended."`
	Cursor      *time.Time `json:"cursor,omitempty" doc:"The newest instant that was looked at."`
	Author      string     `json:"author,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	At          *time.Time `json:"at,omitempty" doc:"When it was asked for."`
	StartedAt   *time.Time `json:"startedAt,omitempty"`
	EndedAt     *time.Time `json:"endedAt,omitempty"`
	EndReason   string     `json:"endReason,omitempty"`
	Cancelled   string     `json:"cancelled,omitempty" doc:"By whom and why, when somebody asked for its end."`
	Effect      string     `json:"effect,omitempty" enum:"effective,pending" doc:"Of the request that this answers."`
	Note        string     `json:"note,omitempty" doc:"What of the request that this answers has no effect; with dryRun, also what would refuse it now."`

	Schedules []BackfillSchedule `json:"schedules,omitempty" doc:"With dryRun: what each schedule that has planned instants in the range has there."`
}

// BackfillSchedule is what one schedule has in the range of a backfill.
type BackfillSchedule struct {
	Name  string    `json:"name"`
	Total int64     `json:"total" doc:"Planned instants."`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Ended tells whether the backfill has come to its end.
func (b *Backfill) Ended() bool { return b.State == "done" || b.State == "cancelled" }

// BackfillList is a page of backfills, newest first.
type BackfillList struct {
	Items []Backfill `json:"items" nullable:"false"`
	Next  string     `json:"next,omitempty"`
}

// Counts are numbers of what is in the database, each counted up to 100,000.
type Counts struct {
	Jobs      int            `json:"jobs"`
	Live      map[string]int `json:"live" doc:"Executions that have not ended, by state."`
	Decisions int            `json:"decisions"`
	Backfills int            `json:"backfills" doc:"That have not ended."`
}
