package takt

import (
	"encoding/json"
	"time"
)

// NamedSchedule is one of several schedules of a job; exactly one of cron, every and at.
type NamedSchedule struct {
	Name      string     `json:"name" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Unique in the job; main is the name of spec.schedule. Renaming one starts it anew."`
	Cron      string     `json:"cron,omitempty" maxLength:"256" doc:"As in spec.schedule, like all that follows."`
	Dialect   string     `json:"dialect,omitempty" enum:"unix5,seconds6,quartz"`
	TimeZone  string     `json:"timeZone,omitempty" maxLength:"64" doc:"IANA name for cron; default UTC."`
	DST       *DSTSpec   `json:"dst,omitempty"`
	Every     Duration   `json:"every,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Fixed rate counted from the job's creation; at least 1s."`
	Phase     *Duration  `json:"phase,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$"`
	Delay     Duration   `json:"delay,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$"`
	At        *time.Time `json:"at,omitempty" doc:"Once, at this instant."`
	StartAt   *time.Time `json:"startAt,omitempty"`
	EndAt     *time.Time `json:"endAt,omitempty"`
	Jitter    Duration   `json:"jitter,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$"`
	Calendars []string   `json:"calendars,omitempty" maxItems:"8"`
	Closed    string     `json:"closed,omitempty" enum:"skip,next,previous"`
	MaxRuns   int64      `json:"maxRuns,omitempty" minimum:"1" maximum:"1000000000"`
}

// Schedule is s without its name.
func (s *NamedSchedule) Schedule() ScheduleSpec {
	return ScheduleSpec{Cron: s.Cron, Dialect: s.Dialect, TimeZone: s.TimeZone, DST: s.DST, Every: s.Every, Phase: s.Phase, Delay: s.Delay, At: s.At,
		StartAt: s.StartAt, EndAt: s.EndAt, Jitter: s.Jitter, Calendars: s.Calendars, Closed: s.Closed, MaxRuns: s.MaxRuns}
}

// Named is s with a name.
func (s *ScheduleSpec) Named(name string) NamedSchedule {
	return NamedSchedule{Name: name, Cron: s.Cron, Dialect: s.Dialect, TimeZone: s.TimeZone, DST: s.DST, Every: s.Every, Phase: s.Phase, Delay: s.Delay, At: s.At,
		StartAt: s.StartAt, EndAt: s.EndAt, Jitter: s.Jitter, Calendars: s.Calendars, Closed: s.Closed, MaxRuns: s.MaxRuns}
}

// AfterSpec is a job whose execution has to have ended before one of this job runs.
type AfterSpec struct {
	Job      string   `json:"job" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Name of the other job, of the same namespace."`
	On       string   `json:"on,omitempty" enum:"succeeded,failed,finished" doc:"How it has to have ended. failed: also timed out and succeeded in part. Default succeeded."`
	Match    string   `json:"match,omitempty" enum:"planned,latest,day" doc:"Which of its executions counts. planned (default): that of the same planned instant. latest: the one with the newest planned instant that has ended. day: the newest of the same date in timeZone; for a job with a schedule."`
	TimeZone string   `json:"timeZone,omitempty" maxLength:"64" doc:"Of match day: whose date, as an IANA name; default UTC."`
	Within   Duration `json:"within,omitempty" pattern:"^([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))*([0-9]*[1-9][0-9]*(\\.[0-9]{1,6})?|[0-9]{1,9}\\.[0-9]*[1-9][0-9]*)(ms|s|m|h|d|w)([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))*$" patternDescription:"a length of time above 0" doc:"How long an execution waits for it; then it ends cancelled, reason upstream_missing (or upstream_failed). Default 24h."`
}

// ParentExecution is an execution of a job that another one runs after.
type ParentExecution struct {
	Job       string     `json:"job"`
	Execution string     `json:"execution,omitempty" doc:"Absent: there is none yet."`
	State     string     `json:"state,omitempty"`
	PlannedAt *time.Time `json:"plannedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// JobPause tells that a job is paused: its schedules do not fire, requests still run.
type JobPause struct {
	At     time.Time  `json:"at"`
	Until  *time.Time `json:"until,omitempty" doc:"It ends by itself then; absent: when a person resumes the job."`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// PauseRequest pauses a job. Planned instants from now on are recorded as skipped (paused).
type PauseRequest struct {
	Until  *time.Time `json:"until,omitempty" doc:"The pause ends by itself at this instant, which must lie ahead."`
	Author string     `json:"author,omitempty" maxLength:"256" doc:"Who asks, such as user@host."`
	Reason string     `json:"reason,omitempty" maxLength:"1024"`
}

// ApplyRequest creates and changes jobs and calendars, all of them or none. Jobs may name calendars of the set.
type ApplyRequest struct {
	Calendars []ApplyCalendar `json:"calendars,omitempty" maxItems:"1000"`
	Documents []ApplyDocument `json:"documents" maxItems:"1000" nullable:"false"`
	Namespace string          `json:"namespace,omitempty" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Of documents that name none; default \"default\"."`
	DryRun    bool            `json:"dryRun,omitempty" doc:"Judge everything, write nothing."`
	Prune     string          `json:"prune,omitempty" maxLength:"1024" doc:"Label selector such as app=billing: jobs with these labels that are not among the documents are deleted, in the namespaces of the documents. Their executions run to their end."`
	Author    string          `json:"author,omitempty" maxLength:"256" doc:"Who makes the revisions, such as user@host."`
	Reason    string          `json:"reason,omitempty" maxLength:"1024" doc:"Why."`
}

// ApplyDocument is one document of a set.
type ApplyDocument struct {
	Job        Job   `json:"job"`
	IfRevision int64 `json:"ifRevision,omitempty" minimum:"0" doc:"Refuse the set unless the job stands at this revision; 0: no guard."`
}

// ApplyResult is the answer to an ApplyRequest: the documents in their order, then the pruned jobs.
type ApplyResult struct {
	Calendars []AppliedCalendar `json:"calendars,omitempty" doc:"In their order."`
	Items     []AppliedJob      `json:"items" nullable:"false"`
	DryRun    bool              `json:"dryRun,omitempty"`
}

// AppliedJob is what becomes of one job of a set.
type AppliedJob struct {
	Action      string        `json:"action" enum:"created,changed,unchanged,pruned"`
	Job         Job           `json:"job" doc:"As it is now; a pruned one as it was."`
	Changes     []FieldChange `json:"changes,omitempty"`
	Fires       []Fire        `json:"fires,omitempty" doc:"The next five."`
	FiresBefore []Fire        `json:"firesBefore,omitempty" doc:"The next five under the revision before."`
	Silence     string        `json:"silence,omitempty" doc:"Why none of its schedules fires: the job is disabled or paused, failures in a row hold it, or all runs of maxRuns are made."`
	Effect      string        `json:"effect,omitempty" enum:"effective,pending"`

	Warnings []ProblemError `json:"warnings,omitempty" doc:"What was taken and is probably not meant, such as an instant that has passed."`
}

// FieldChange is one field of a document that differs between two revisions.
type FieldChange struct {
	Field  string          `json:"field" doc:"Path such as spec.shards.count."`
	Before json.RawMessage `json:"before,omitempty" doc:"Absent: the field was not there."`
	After  json.RawMessage `json:"after,omitempty" doc:"Absent: the field is not there any more."`
}

// Fire is a planned instant to come.
type Fire struct {
	At       time.Time `json:"at" doc:"With the offset of the time zone."`
	TimeZone string    `json:"timeZone"`
	Schedule string    `json:"schedule" doc:"Name of the schedule; several that are due together are joined by commas and make one execution."`
	Note     string    `json:"note,omitempty" doc:"What a step of the clock does to it."`
}

// JobRevision is one revision of a job.
type JobRevision struct {
	Revision int64         `json:"revision"`
	At       time.Time     `json:"at"`
	Author   string        `json:"author,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Changes  []FieldChange `json:"changes,omitempty" doc:"Against the revision before; absent for the first, and for the last of a page."`
	Job      Job           `json:"job"`
}

// JobRevisionList is a page of revisions, newest first.
type JobRevisionList struct {
	Items []JobRevision `json:"items" nullable:"false"`
	Next  string        `json:"next,omitempty"`
}

// RollbackRequest makes a new revision that says what an older one said.
type RollbackRequest struct {
	To     int64  `json:"to" minimum:"1" doc:"The older revision."`
	Author string `json:"author,omitempty" maxLength:"256" doc:"Who asks, such as user@host."`
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Default: rollback to revision N."`
}

// DeletedJob is the answer to a deletion. What the job has done stays readable.
type DeletedJob struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Revision  int64  `json:"revision" doc:"The last one."`
	Running   string `json:"running" enum:"finish,cancel" doc:"What becomes of executions that have not ended."`
	Live      int    `json:"live" doc:"How many there were."`
	Effect    string `json:"effect" enum:"effective,pending"`
}
