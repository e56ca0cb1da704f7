package takt

import (
	"encoding/json"
	"time"
)

// APIVersion is the version of job documents.
const APIVersion = "takt/v1"

// Job is a job document: what a job file, the API and the CLI speak.
type Job struct {
	APIVersion string      `json:"apiVersion" enum:"takt/v1" doc:"Version of the document."`
	Kind       string      `json:"kind" enum:"Job" doc:"Kind of the document."`
	Metadata   JobMetadata `json:"metadata"`
	Spec       JobSpec     `json:"spec"`
	Status     *JobStatus  `json:"status,omitempty" readOnly:"true" doc:"Set by the server; ignored in requests."`
}

// JobMetadata names a job.
type JobMetadata struct {
	Name      string            `json:"name" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Unique in the namespace."`
	Namespace string            `json:"namespace,omitempty" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Given by the path; when set it must agree."`
	Labels    map[string]string `json:"labels,omitempty" maxProperties:"32"`
	UID       string            `json:"uid,omitempty" readOnly:"true"`
	Revision  int64             `json:"revision,omitempty" readOnly:"true" doc:"Rises with each change; If-Match guards edits."`
	CreatedAt *time.Time        `json:"createdAt,omitempty" readOnly:"true"`
	UpdatedAt *time.Time        `json:"updatedAt,omitempty" readOnly:"true"`
}

// JobSpec says what to run, where and when. Absent fields mean their default, which is not written back.
type JobSpec struct {
	Title       string          `json:"title,omitempty" maxLength:"256" doc:"For people, in any language."`
	Owner       string          `json:"owner,omitempty" maxLength:"256" doc:"Who answers for it, such as an address."`
	Description string          `json:"description,omitempty" maxLength:"4096" doc:"What it does and what to do when it fails."`
	Pool        string          `json:"pool" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Group of workers that run it."`
	Handler     string          `json:"handler" pattern:"^[A-Za-z0-9_.:/-]{1,128}$" doc:"Name of the function in the workers."`
	Params      json.RawMessage `json:"params,omitempty" doc:"Any JSON value, at most 256 KiB; a trigger's own object is laid over it key by key. Below names such as password, secret, token or apiKey people read (masked), workers the value."`
	Schedule    *ScheduleSpec   `json:"schedule,omitempty" doc:"Absent: manual, runs on request only."`
	Schedules   []NamedSchedule `json:"schedules,omitempty" maxItems:"32" doc:"More schedules, each with a name; those that are due at one instant make one execution."`
	Shards      *ShardsSpec     `json:"shards,omitempty"`
	Retry       *RetrySpec      `json:"retry,omitempty"`
	Timeout     *TimeoutSpec    `json:"timeout,omitempty"`
	After       []AfterSpec     `json:"after,omitempty" maxItems:"32" doc:"Jobs of the namespace that have to have ended: all of them. Without a schedule their ends make the executions, one per planned instant (or per set of latest executions); with one, an execution waits for them at its own instants. What a person triggers does not wait."`
	Overlap     *OverlapSpec    `json:"overlap,omitempty" doc:"What becomes of an execution that comes while another one of the job has not ended. Absent: those of schedules queue, at most one of them (1000 of a job that runs after others); requests run at once."`
	Misfire     *MisfireSpec    `json:"misfire,omitempty"`
	AutoPause   *AutoPauseSpec  `json:"autoPause,omitempty"`
	Enabled     *bool           `json:"enabled,omitempty" doc:"Default true. False: the schedule does not fire; requests still run."`
}

// ScheduleSpec says when; exactly one of cron, every, delay and at.
type ScheduleSpec struct {
	Cron      string     `json:"cron,omitempty" maxLength:"256" doc:"Five fields (minute first), six (second first), or Quartz; a macro such as @daily; H is a value that the job's name chooses."`
	Dialect   string     `json:"dialect,omitempty" enum:"unix5,seconds6,quartz" doc:"Of cron; default: 5 fields unix5, 7 quartz, 6 seconds6 unless it can only be Quartz (? L W #)."`
	TimeZone  string     `json:"timeZone,omitempty" maxLength:"64" doc:"IANA name for cron, and of the days of calendars; default UTC."`
	DST       *DSTSpec   `json:"dst,omitempty" doc:"What steps of the clock do to times of day; for cron."`
	Every     Duration   `json:"every,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Fixed rate counted from the job's creation; at least 1s."`
	Phase     *Duration  `json:"phase,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Of every, at most one period: it counts from 1970-01-01T00:00:00Z plus this, not from the job's creation. 0s and a whole period are the same, and read back as a whole period."`
	Delay     Duration   `json:"delay,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Fixed delay after the end of the last execution that the schedule made, the first one after the job's creation; at least 1s."`
	At        *time.Time `json:"at,omitempty" doc:"Once, at this instant."`
	StartAt   *time.Time `json:"startAt,omitempty" doc:"Nothing is due before."`
	EndAt     *time.Time `json:"endAt,omitempty" doc:"Nothing is due after."`
	Jitter    Duration   `json:"jitter,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Each instant moves later by up to this, always by the same for one job and instant; at most 1h."`
	Calendars []string   `json:"calendars,omitempty" maxItems:"8" doc:"Names of calendars of the namespace: nothing is due outside of what all of them have open."`
	MaxRuns   int64      `json:"maxRuns,omitempty" minimum:"1" maximum:"1000000000" doc:"How many executions it makes, over all revisions; then it fires no more. Instants that became none (skipped, missed) do not count. Default: no bound."`
	Closed    string     `json:"closed,omitempty" enum:"skip,next,previous" doc:"Of instants on a day that a calendar closes: skip (default) leaves them out, next and previous move them to the same time of the next or previous open day. Outside of the hours of an open day they are always left out."`
}

// OverlapSpec says what becomes of an execution that comes while another one of its job has not ended. A job that declares
// it lets requests obey it too; a rerun always waits for its turn, unless the policy is allow.
type OverlapSpec struct {
	Policy    string `json:"policy,omitempty" enum:"queue,skip,replace,allow" doc:"queue (default): it waits for its turn, in the order of planned time; skip: it is dropped; replace: the other one is cancelled, and it starts when that one has really stopped or its lease has run out; allow: it starts at once. What is dropped is a decision (blocked) when a schedule made it, else an execution that ends cancelled."`
	MaxQueued *int   `json:"maxQueued,omitempty" minimum:"0" maximum:"1000" doc:"Of queue: how many may wait, default 1, and 1000 for a job that runs after others; what comes then is dropped. Reruns are not counted, catch-up and backfill wait until there is room."`
}

// DSTSpec is what steps of a wall clock do to an expression that names times of day. Expressions with * or / in their
// minutes or hours fire at every matching reading that a clock shows, whatever this says.
type DSTSpec struct {
	Gap     string `json:"gap,omitempty" enum:"next,shift,skip" doc:"Of times that a clock skips: next (default) fires them once at the first instant after the step, shift fires each later by the length of the step, skip leaves them out."`
	Overlap string `json:"overlap,omitempty" enum:"first,last,both" doc:"Of times that a clock shows twice: when they fire. Default first."`
}

// ShardsSpec cuts an execution into parts.
type ShardsSpec struct {
	Count int `json:"count" minimum:"1" maximum:"10000" doc:"Number of shards, fixed for the execution."`
}

// RetrySpec says what happens after an attempt failed by the handler's fault.
type RetrySpec struct {
	MaxAttempts int          `json:"maxAttempts,omitempty" minimum:"1" maximum:"100" doc:"Default 1: no retry."`
	Backoff     *BackoffSpec `json:"backoff,omitempty"`
}

// BackoffSpec is the pause before attempt n+1: min(max, initial × factor^(n−1)), with jitter.
type BackoffSpec struct {
	Initial Duration `json:"initial,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Default 10s."`
	Factor  float64  `json:"factor,omitempty" minimum:"1" maximum:"10" doc:"Default 2."`
	Max     Duration `json:"max,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Default 10m."`
	Jitter  string   `json:"jitter,omitempty" enum:"full,none" doc:"full (default): between 0 and the pause; none."`
}

// TimeoutSpec bounds an attempt.
type TimeoutSpec struct {
	Attempt Duration `json:"attempt,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"From the grant; default none."`
	Stall   Duration `json:"stall,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Without progress or checkpoint, although the worker beats; default none."`
	Grace   Duration `json:"grace,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"For a handler to confirm a stop; default 10s."`
}

// JobStatus is what the server knows of a job.
type JobStatus struct {
	NextPlannedAt *time.Time       `json:"nextPlannedAt,omitempty" doc:"Next planned instant."`
	LastPlannedAt *time.Time       `json:"lastPlannedAt,omitempty" doc:"Newest planned instant that was decided."`
	Paused        *JobPause        `json:"paused,omitempty" doc:"Present while the job is paused."`
	AutoPaused    *AutoPaused      `json:"autoPaused,omitempty" doc:"Present while failures in a row hold its schedules."`
	CatchingUp    *CatchingUp      `json:"catchingUp,omitempty" doc:"Present while missed instants wait for their turn."`
	Schedules     []ScheduleStatus `json:"schedules,omitempty" doc:"Those that have a maxRuns."`
	Unfit         string           `json:"unfit,omitempty" doc:"Why what is stored of the job cannot be used, as hands or damage made it: it does not run, or one of its schedules does not fire, until it is applied again."`
	Children      []string         `json:"children,omitempty" doc:"Jobs that run after this one."`
	Effect        string           `json:"effect,omitempty" enum:"effective,pending" doc:"Of a write: whether the owner has taken it in yet."`
	Live          *JobLive         `json:"live,omitempty" doc:"Of one job: what runs of it and what waits for that, as far as it obeys the overlap policy; absent when nothing does, or it is not known (incomplete)."`
	Incomplete    string           `json:"incomplete,omitempty" doc:"Of one job: why it is not known now what runs of it, in words: an owner did not answer. Empty: it is known."`

	Warnings []ProblemError `json:"warnings,omitempty" doc:"Of a write: what was taken and is probably not meant, such as an instant that has passed."`
}

// JobLive is what obeys the overlap policy of a job and has not ended.
type JobLive struct {
	Running      []string   `json:"running" nullable:"false" doc:"Executions that are queued or under way, at most ten."`
	Waiting      int        `json:"waiting" doc:"How many wait for those to end."`
	WaitingSince *time.Time `json:"waitingSince,omitempty" doc:"Planned instant of the oldest one that waits."`
	Moving       bool       `json:"moving,omitempty" doc:"The job has another pool now, decided elsewhere: it moves when these have ended."`
}

// JobList is a page of jobs.
type JobList struct {
	Items []Job  `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Pass as after to get the next page."`
}

// TriggerRequest asks for an execution: now, or at a later instant.
type TriggerRequest struct {
	At     *time.Time      `json:"at,omitempty" doc:"Not before this instant, at most 10 years ahead; one that has passed means now."`
	In     Duration        `json:"in,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Not before so much time from now, such as 30m; at most 10 years. Instead of at."`
	Params json.RawMessage `json:"params,omitempty" doc:"Laid over the job's params key by key when both are objects, taken instead when neither is one; one object alone is refused."`
}

// Triggered is the answer to a trigger.
type Triggered struct {
	Execution string `json:"execution" doc:"Id of the execution."`
	Repeated  bool   `json:"repeated,omitempty" doc:"The Idempotency-Key was known: this is the execution it made."`
	Effect    string `json:"effect" enum:"effective,pending"`

	PlannedAt *time.Time `json:"plannedAt,omitempty" doc:"The instant that it is planned for."`
	Past      bool       `json:"past,omitempty" doc:"The instant that was asked for has passed: it runs now."`
}

// TriggerManyRequest asks for many executions at once, all of them or none.
type TriggerManyRequest struct {
	Items []TriggerItem `json:"items" minItems:"1" maxItems:"1000" nullable:"false"`
}

// TriggerItem asks for one execution of a job: now, or at a later instant.
type TriggerItem struct {
	At     *time.Time      `json:"at,omitempty" doc:"Not before this instant, at most 10 years ahead; one that has passed means now."`
	In     Duration        `json:"in,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Not before so much time from now, such as 30m; at most 10 years. Instead of at."`
	Job    string          `json:"job" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Name of the job."`
	Key    string          `json:"key,omitempty" pattern:"^[!-~]{1,128}$" doc:"Idempotency key: until 24 hours behind the instant asked for the same key of the same job leads to the same execution; with other params it is refused, idempotency_key_reused."`
	Params json.RawMessage `json:"params,omitempty" doc:"Laid over the job's params key by key when both are objects, taken instead when neither is one; one object alone is refused."`
}

// TriggeredMany is the answer to a TriggerManyRequest, in the order of its items.
type TriggeredMany struct {
	Items  []TriggeredItem `json:"items" nullable:"false"`
	Effect string          `json:"effect" enum:"effective,pending" doc:"Of all items together."`
}

// TriggeredItem is the execution of one item.
type TriggeredItem struct {
	Execution string `json:"execution" doc:"Id of the execution."`
	Repeated  bool   `json:"repeated,omitempty" doc:"The key was known: this is the execution it made."`

	PlannedAt *time.Time `json:"plannedAt,omitempty" doc:"The instant that it is planned for; absent when it was repeated."`
	Past      bool       `json:"past,omitempty" doc:"The instant that was asked for has passed: it runs now."`
}

// Asked is the answer to a cancel or rerun.
type Asked struct {
	Execution string `json:"execution"`
	Effect    string `json:"effect" enum:"effective,pending"`
}

// AskRequest carries what the person says about a cancel or rerun.
type AskRequest struct {
	Note string `json:"note,omitempty" maxLength:"1024"`
}

// Execution is one run of a job.
type Execution struct {
	ID         string          `json:"id"`
	Namespace  string          `json:"namespace"`
	Job        string          `json:"job"`
	Revision   int64           `json:"revision"`
	Pool       string          `json:"pool"`
	Handler    string          `json:"handler"`
	Trigger    string          `json:"trigger" enum:"schedule,request,catchup,backfill,dependency"`
	PlannedAt  time.Time       `json:"plannedAt"`
	RequestKey string          `json:"requestKey,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
	Shards     int             `json:"shards"`
	State      string          `json:"state" enum:"scheduled,queued,running,cancelling,succeeded,partially_succeeded,failed,timed_out,cancelled"`
	Reason     string          `json:"reason,omitempty" doc:"Why it stands there, as a stable word."`
	ReasonText string          `json:"reasonText,omitempty"`
	Round      int             `json:"round,omitempty" doc:"Number of reruns."`
	CreatedAt  *time.Time      `json:"createdAt,omitempty"`
	StartedAt  *time.Time      `json:"startedAt,omitempty"`
	EndedAt    *time.Time      `json:"endedAt,omitempty"`
	Waits      string          `json:"waits,omitempty" doc:"Why its first waiting shard waits, as the owner sees it."`
	WaitsText  string          `json:"waitsText,omitempty"`
	WaitsFor   string          `json:"waitsFor,omitempty" doc:"The execution of its job that has to end first."`

	Parents []ParentExecution `json:"parents,omitempty" doc:"Of a job that runs after others: the executions by which it was decided, or, while it waits, those that count so far."`
}

// ExecutionList is a page of executions, newest planned first.
type ExecutionList struct {
	Items []Execution `json:"items" nullable:"false"`
	Next  string      `json:"next,omitempty"`
}

// ShardStatus is one shard of an execution.
type ShardStatus struct {
	Index         int             `json:"index"`
	State         string          `json:"state" enum:"queued,leased,running,retry_wait,stopping,succeeded,failed,timed_out,cancelled"`
	Reason        string          `json:"reason,omitempty"`
	ReasonText    string          `json:"reasonText,omitempty"`
	Worker        string          `json:"worker,omitempty" doc:"Newest holder."`
	Attempt       int             `json:"attempt"`
	Token         int64           `json:"token,omitempty"`
	Faults        int             `json:"faults,omitempty" doc:"Attempts that ended by the handler's fault."`
	Losses        int             `json:"losses,omitempty" doc:"Attempts lost with their worker."`
	Key           string          `json:"key" doc:"Idempotency key, the same on every attempt."`
	LeaseLeftMs   int64           `json:"leaseLeftMs,omitempty"`
	RetryAt       *time.Time      `json:"retryAt,omitempty"`
	StartedAt     *time.Time      `json:"startedAt,omitempty"`
	EndedAt       *time.Time      `json:"endedAt,omitempty"`
	Checkpoint    json.RawMessage `json:"checkpoint,omitempty"`
	CheckpointSeq int64           `json:"checkpointSeq,omitempty"`
	Progress      *Progress       `json:"progress,omitempty"`
	Result        json.RawMessage `json:"result,omitempty"`
	Error         *Failure        `json:"error,omitempty"`
	Waits         string          `json:"waits,omitempty"`
	WaitsText     string          `json:"waitsText,omitempty"`
	Attempts      []Attempt       `json:"attempts,omitempty" doc:"The newest 20."`
}

// Attempt is one try of a shard.
type Attempt struct {
	Number      int        `json:"number"`
	Token       int64      `json:"token"`
	Worker      string     `json:"worker"`
	State       string     `json:"state" enum:"running,succeeded,failed,timed_out,cancelled,lost,released,undelivered,abandoned"`
	Reason      string     `json:"reason,omitempty"`
	ResumedFrom int64      `json:"resumedFrom,omitempty" doc:"Number of checkpoints saved before it began; 0: from the start."`
	StartedAt   *time.Time `json:"startedAt,omitempty"`
	EndedAt     *time.Time `json:"endedAt,omitempty"`
	Error       *Failure   `json:"error,omitempty"`
}

// Failure is a handler's error.
type Failure struct {
	Class   string `json:"class,omitempty" maxLength:"128"`
	Message string `json:"message" maxLength:"16384"`
}

// Progress is how far a handler is. Total 0 means unknown.
type Progress struct {
	Done  int64  `json:"done,omitempty" minimum:"0"`
	Total int64  `json:"total,omitempty" minimum:"0"`
	Note  string `json:"note,omitempty" maxLength:"256"`
}

// ShardList is a page of shards by index.
type ShardList struct {
	Items []ShardStatus `json:"items" nullable:"false"`
	Next  string        `json:"next,omitempty"`
}

// WorkerStatus is a live session as its owner sees it.
type WorkerStatus struct {
	Name        string            `json:"name"`
	Session     string            `json:"session"`
	Pool        string            `json:"pool"`
	Handlers    []string          `json:"handlers"`
	Slots       int               `json:"slots"`
	Busy        int               `json:"busy"`
	Labels      map[string]string `json:"labels,omitempty"`
	Build       string            `json:"build,omitempty"`
	OpenedAt    *time.Time        `json:"openedAt,omitempty"`
	LastBeatMs  int64             `json:"lastBeatMs" doc:"Since it was last heard."`
	LeaseTTLMs  int64             `json:"leaseTtlMs"`
	LeaseLeftMs int64             `json:"leaseLeftMs,omitempty" doc:"Of its lease that ends first."`
	SkewMs      *int64            `json:"skewMs,omitempty" doc:"How far its clock is ahead of the server's, less the way of its call. Leases do not depend on it."`
}

// WorkerList lists live workers of a namespace.
type WorkerList struct {
	Items      []WorkerStatus `json:"items" nullable:"false"`
	Incomplete string         `json:"incomplete,omitempty" doc:"What the list lacks, in words: some owners did not answer. Empty: nothing."`
}

// PoolStatus is a pool with its load.
type PoolStatus struct {
	Name    string `json:"name"`
	Workers int    `json:"workers"`
	Slots   int    `json:"slots"`
	Busy    int    `json:"busy"`
	Queued  int    `json:"queued"`
}

// PoolList lists pools that have workers or work.
type PoolList struct {
	Items      []PoolStatus `json:"items" nullable:"false"`
	Incomplete string       `json:"incomplete,omitempty" doc:"What the list lacks, in words: some owners did not answer. Empty: nothing."`
}

// Decision is the fate of planned instants that became no execution.
type Decision struct {
	Job        string    `json:"job"`
	Schedule   string    `json:"schedule,omitempty" doc:"Name of the schedule; main is spec.schedule."`
	Kind       string    `json:"kind" enum:"skipped,missed,blocked"`
	Reason     string    `json:"reason"`
	ReasonText string    `json:"reasonText,omitempty"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Count      int64     `json:"count"`
	At         time.Time `json:"at" doc:"When it was decided."`
}

// DecisionList is a page of decisions, newest first.
type DecisionList struct {
	Items []Decision `json:"items" nullable:"false"`
	Next  string     `json:"next,omitempty"`
}

// Stats is what a server counts.
type Stats struct {
	Version    string           `json:"version"`
	UptimeMs   int64            `json:"uptimeMs"`
	Partitions []PartitionStats `json:"partitions" nullable:"false"`
	// TimeZones is the version of the time zone database.
	TimeZones   string  `json:"timeZones,omitempty" doc:"Version of the time zone database that the server reads."`
	Unexplained int64   `json:"unexplained" doc:"Planned instants that got neither an execution nor a decision, on this server since it started. It is 0; anything else is a fault, and the journal names the instants."`
	Counts      *Counts `json:"counts,omitempty" doc:"Of the database; absent when it does not answer."`
}

// PartitionStats counts what one partition did since this process started.
type PartitionStats struct {
	Partition   int   `json:"partition"`
	Owned       bool  `json:"owned"`
	Epoch       int64 `json:"epoch"`
	Seq         int64 `json:"seq"`
	Steps       int64 `json:"steps"`
	Events      int64 `json:"events"`
	Commits     int64 `json:"commits"`
	CommitErr   int64 `json:"commitErrors"`
	Engines     int64 `json:"engines" doc:"1, and one more for every commit that failed."`
	Poisoned    int64 `json:"poisoned"`
	CommitP99Us int64 `json:"commitP99Us"`
	Stale       int64 `json:"stale" doc:"Report items refused for an old token."`
	Granted     int64 `json:"granted"`
	Renewed     int64 `json:"renewed"`
	Expired     int64 `json:"expired"`
	Undelivered int64 `json:"undelivered"`
	TimedOut    int64 `json:"timedOut"`
	Unexplained int64 `json:"unexplained"`
}

// Problem is an RFC 9457 problem document: every error answer is one.
type Problem struct {
	Type     string         `json:"type,omitempty"`
	Title    string         `json:"title,omitempty"`
	Status   int            `json:"status"`
	Detail   string         `json:"detail,omitempty"`
	Instance string         `json:"instance,omitempty"`
	Code     string         `json:"code" doc:"Stable word for programs."`
	Kind     string         `json:"kind" doc:"What a caller may do about it."`
	Hint     string         `json:"hint,omitempty" doc:"What to do."`
	Errors   []ProblemError `json:"errors,omitempty"`
}

// ProblemError is one wrong field.
type ProblemError struct {
	Field   string `json:"field,omitempty" doc:"Path such as spec.retry.maxAttempts."`
	Message string `json:"message"`
	Code    string `json:"code,omitempty" doc:"Of this one, when several documents are judged together."`
	Hint    string `json:"hint,omitempty"`
}
