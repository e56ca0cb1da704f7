package engine

import (
	"encoding/json"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// Now is the instant of a step, read once by the runner.
type Now struct {
	Wall job.Instant   // the database's wall time as the owner knows it (R9); planned instants are compared with it
	Mono time.Duration // a monotonic reading; leases, timers and grace run on it
}

// Event is something that arrived. Step takes them in the order of DESIGN §10.1 whatever their order
// in the slice.
type Event interface{ rank() int }

// Whose clock was set.
const (
	ClockOfDatabase = "database"
	ClockOfServer   = "server"
)

// ReplyID connects a call with its Answer. The runner draws it.
type ReplyID uint64

// The events.
type (
	// Tick lets timers and planning run; the runner adds one to every step.
	Tick struct{}

	// Loaded is the first event of an engine's life: the rows of its partition.
	Loaded struct {
		Seq        int64 // of the partition row
		LastToken  job.Token
		Sessions   []job.Session
		Executions []Row // every live execution that is under way: neither queued nor scheduled; with all its shards
		Waiting    []Waiting
		Backfills  []Backfill
		Owes       bool    // some cursor has an Owed
		LeftOut    []About // made an engine panic, or its commit be refused, outside of any event: it does without them
		Takeover   bool    // another incarnation owned it before: verdicts wait TTL + P instead of TTL
	}

	// Waiting is an execution in the database that counts for the overlap policy of its job, ordered by (Job, PlannedAt,
	// ID): scheduled for the reason job.WaitOverlap or job.WaitReplace, or queued and neither free of the policy
	// (job.ReasonOverlapFree) nor made by a request that does not mind it (any but job.ReasonOverlapTurn).
	Waiting struct {
		Job       job.UID
		ID        job.ExecutionID
		PlannedAt job.Instant
		State     job.ExecutionState
		Reason    job.Reason
		Round     int
	}

	// ClockStepped says that a wall clock was set. It is recorded, and moves nothing: Now.Wall says what counts.
	ClockStepped struct {
		Clock string        // ClockOfDatabase or ClockOfServer
		By    time.Duration // forward; negative: back
	}

	// LevelOfAll says that servers of another build came or went.
	LevelOfAll struct {
		Behind int // levels by which the oldest server on the database is behind this one (see Level); 0: none
	}

	// InboxPage is entries read from the partition's inbox, in the order they should be taken.
	InboxPage struct {
		Seq     int64 // the partition row's seq in the same snapshot
		Entries []Entry
		Partial bool // there are more behind the last one
	}

	// DuePage answers Want.Due: schedules with Next ≤ Until, ordered by (Next, Job, Schedule); or, Owed, those that owe,
	// ordered by (Job, Schedule).
	DuePage struct {
		Owed    bool
		Seq     int64
		Until   job.Instant // as asked
		After   *job.Cursor // as asked
		Items   []Due
		Partial bool        // there are more up to Until: ask again after the last one, or
		Through *job.Cursor // behind this one, up to which Items has all but what was set aside
	}

	// BacklogPage answers Want.Backlog: queued executions ordered by (PlannedAt, ID).
	BacklogPage struct {
		Seq     int64
		After   Place // as asked
		Rows    []Row
		Partial bool  // there are more behind the last one, or
		Through Place // behind this one, up to which Rows has all but what was set aside
	}

	// ScheduledPage answers Want.Scheduled: executions that wait for their instant, ordered by it.
	ScheduledPage struct {
		Seq     int64
		After   Place // as asked
		Through Place // all behind After up to here is in Rows, or was left out
		Rows    []Row
	}

	// ExecutionPage answers Want.Executions: live or ended executions; one that is nowhere is left out.
	ExecutionPage struct {
		Seq   int64
		Asked []job.ExecutionID
		Rows  []Row
		// Elsewhere are those of Asked that another partition has: of a job that moved.
		Elsewhere map[job.ExecutionID]Elsewhere
	}

	// ShardPage answers Want.Shards: shards of live or ended executions; one that is nowhere is left out.
	ShardPage struct {
		Seq   int64
		Asked []ShardRef
		Rows  []Settled
	}

	// UpstreamPage answers Want.Upstream; what it did not come to is left out of Asked.
	UpstreamPage struct {
		Seq   int64
		Asked []UpstreamAsk
		Items []Upstream
	}

	// AwaitingPage answers Want.Awaiting: executions that wait for their parents, by id.
	AwaitingPage struct {
		Seq     int64
		Items   []Awaiting
		Partial bool // there are more behind the last one
	}

	// SessionOpen opens a session or finds it again: idempotent per (pool, worker, incarnation).
	SessionOpen struct {
		Reply   ReplyID
		Session job.Session // ID, Partition and what the worker said; TTL, Beat, Margin are filled by the engine
		Call    int64
		Clock   *time.Duration // how far the sender's clock was ahead when the call came; nil: it did not say
	}

	// Poll asks for work. It is answered at once when there is some, else after Wait.
	Poll struct {
		Reply   ReplyID
		Session job.SessionID
		Call    int64
		Number  int64 // of polls in this session: an older one is answered superseded
		Free    int   // the worker's own idea of its free slots; can only lower the owner's
		Held    []job.Token
		Wait    time.Duration
	}

	// PollGone tells that nobody waits for this reply any more. A hint, no verdict.
	PollGone struct{ Reply ReplyID }

	// Heartbeat names what the worker holds. Only what is named is renewed.
	Heartbeat struct {
		Reply   ReplyID
		Session job.SessionID
		Call    int64
		Held    []Held
		Clock   *time.Duration // as in SessionOpen
	}

	// Report carries started / progress / checkpoint / done items.
	Report struct {
		Reply   ReplyID
		Session job.SessionID
		Call    int64
		Items   []ReportItem
	}

	// SessionClose ends a session gracefully: what it holds goes back at once.
	SessionClose struct {
		Reply   ReplyID
		Session job.SessionID
		Call    int64
	}

	// Inspect reads what only memory knows. It changes nothing.
	Inspect struct {
		Reply ReplyID
		Query InspectQuery
	}

	// SetAside records an event that alone made a step or its commit fail (R3) and removes its entry.
	SetAside struct {
		Event Event
		Error string
	}
)

// Row is an execution with all its shards and the definition of its revision.
type Row struct {
	Execution  job.Execution
	Shards     []job.Shard
	Definition *job.Definition
	Home       *Home // when its job has a newer revision than its own, or is elsewhere; in ExecutionPage and ScheduledPage
}

// ShardRef names a shard.
type ShardRef struct {
	Execution job.ExecutionID
	Index     int
}

// Settled is what a report about a shard that is not in memory is judged by.
type Settled struct {
	ShardRef
	Token     job.Token
	ReportSeq int64
	Closed    bool
}

// Awaiting is an execution that waits for its parents.
type Awaiting struct {
	Execution job.ExecutionID
	Child     job.UID
}

// Due is one schedule that is due soon.
type Due struct {
	Definition *job.Definition // newest revision
	Cursor     job.Cursor
}

// EntryKind says what an inbox entry is about.
type EntryKind string

// The kinds of inbox entries. One that the engine does not know is left alone, with an alarm.
const (
	EntryJobChanged  EntryKind = "job_changed" // created, edited, paused or resumed: read the newest revision
	EntryTrigger     EntryKind = "trigger"
	EntryCancel      EntryKind = "cancel"
	EntryRerun       EntryKind = "rerun"
	EntryJobDeleted  EntryKind = "job_deleted"
	EntryJobResumed  EntryKind = "job_resumed"  // as job_changed, and the failures that paused the job do not count any more
	EntryCancelJob   EntryKind = "cancel_job"   // of a deleted job, to every partition: cancel its executions there
	EntryParentEnded EntryKind = "parent_ended" // an execution of a job that Job runs after has ended: look
	EntryBackfill    EntryKind = "backfill"     // asked for, or asked to end: read its row
	EntryDelayed     EntryKind = "delayed"      // a trigger whose request is Delayed: an older server must not take it for one that is not
	EntryReschedule  EntryKind = "reschedule"   // of an execution that waits for its instant, to Request.At
	EntryArrived     EntryKind = "arrived"      // an execution was sent here from another partition
)

// aboutCursors tells whether entries of the kind change the cursors of a job.
func (k EntryKind) aboutCursors() bool {
	return k == EntryJobChanged || k == EntryJobResumed || k == EntryJobDeleted
}

// Known tells whether this engine takes entries of the kind; others stay in the inbox.
func (k EntryKind) Known() bool {
	switch k {
	case EntryJobChanged, EntryTrigger, EntryCancel, EntryRerun, EntryJobDeleted, EntryCancelJob, EntryJobResumed, EntryBackfill, EntryParentEnded, EntryDelayed, EntryReschedule, EntryArrived:
		return true
	}
	return false
}

// Entry is one row of the inbox: a person's request to the owner, joined by the store with the rows it
// refers to. Entries are level-triggered: what counts is the newest revision, not the one at writing.
type Entry struct {
	ID        int64
	Kind      EntryKind
	Job       job.UID         // job_changed, trigger
	Execution job.ExecutionID // trigger, cancel, rerun, reschedule
	Request   *Request        // trigger; of a reschedule its At alone
	Note      string          // cancel, rerun, reschedule: what the person said; free text, ≤ 1 KiB

	Definition *job.Definition // newest revision of Job, its last one when it was deleted; nil when that is not known
	Before     *job.Definition // the revision that Cursors were computed from, when one of them is Held or Owed and it is another one
	Past       *Past           // when WantsPast
	Cursors    []job.Cursor    // of Job
	Planner    int             // partition that plans Job: that of its cursors, or, when it has none, the one it was created in
	Place      int             // partition of the pool in the newest revision of Job
	Pool       string          // that pool, when Definition is an older revision: of a backfill or a trigger

	Backfill *job.Backfill // backfill: as it is now; Definition is of its revision

	Running []string          // job_changed: schedules that count from an end, the execution of whose newest instant lives, see NewestOf
	Queued  []job.ExecutionID // cancel_job: the first QueuedMax of Job's executions that wait here, by id
}

// NewestOf is the execution of the newest instant of a schedule that counts from its end, when the cursor says that it may
// live; zero: it does not.
func (entry *Entry) NewestOf(c job.Cursor) (id job.ExecutionID) {
	if entry.Kind != EntryJobChanged && entry.Kind != EntryJobResumed || entry.Definition == nil || c.Next != 0 || c.Held != 0 || c.Last == 0 {
		return id
	}
	for _, s := range entry.Definition.Spec.Schedules {
		if s.ID == c.Schedule && s.Delay != 0 {
			return job.PlannedID(entry.Job, c.Last)
		}
	}
	return id
}

// QueuedMax bounds Entry.Queued.
const QueuedMax = 256

// Request is a requested execution as it travels in the entry.
type Request struct {
	At      job.Instant
	Delayed bool   // not before At; else at once, and At is when it was asked for
	Key     string // the request's idempotency key; may be empty
	Params  json.RawMessage
}

// TriggerKind is the kind of the entry that a request travels in.
func (r *Request) TriggerKind() EntryKind {
	if r.Delayed {
		return EntryDelayed
	}
	return EntryTrigger
}

// Triggers tells whether an entry of the kind asks for an execution.
func (k EntryKind) Triggers() bool { return k == EntryTrigger || k == EntryDelayed }

// Held is one shard that a worker says it runs.
type Held struct {
	Token    job.Token
	Progress *job.Progress // nil: nothing new
}

// ItemKind is the kind of a report item.
type ItemKind string

// The kinds of report items.
const (
	ItemStarted    ItemKind = "started"
	ItemProgress   ItemKind = "progress"
	ItemCheckpoint ItemKind = "checkpoint"
	ItemDone       ItemKind = "done"
)

// Outcome is how a handler ended.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeError     Outcome = "error"      // may be retried; RetryAfter may set the earliest time
	OutcomeFatal     Outcome = "fatal"      // must not be retried
	OutcomeSnooze    Outcome = "snooze"     // again after RetryAfter, no attempt is burnt
	OutcomeCancelled Outcome = "cancelled"  // stopped because it was told to (cancel, time-out)
	OutcomeReleased  Outcome = "released"   // given back unfinished by a worker that stops
	OutcomeLeaseLost Outcome = "lease_lost" // the worker fenced itself off
)

// ReportItem is one item of a report. Seq rises per attempt; an item at or below the highest one taken
// in is ignored, but a repeated done is answered accepted again.
type ReportItem struct {
	Execution  job.ExecutionID
	Shard      int
	Token      job.Token
	Seq        int64
	Kind       ItemKind
	Progress   job.Progress    // progress
	Checkpoint json.RawMessage // checkpoint
	Outcome    Outcome         // done
	Result     json.RawMessage // done
	Failure    *job.Failure    // done
	RetryAfter time.Duration   // done: snooze, error
}

// The ranks are the order of DESIGN §10.1: control entries, reports, beats, polls, timers, planning.
// What arrived beats expiry.
func (Loaded) rank() int        { return 0 }
func (SetAside) rank() int      { return 1 }
func (ClockStepped) rank() int  { return 1 }
func (LevelOfAll) rank() int    { return 1 }
func (ExecutionPage) rank() int { return 2 }
func (ShardPage) rank() int     { return 2 }
func (UpstreamPage) rank() int  { return 2 }
func (AwaitingPage) rank() int  { return 2 }
func (InboxPage) rank() int     { return 3 }
func (SessionOpen) rank() int   { return 4 }
func (Report) rank() int        { return 5 }
func (Heartbeat) rank() int     { return 6 }
func (SessionClose) rank() int  { return 7 }
func (PollGone) rank() int      { return 8 }
func (Poll) rank() int          { return 9 }
func (BacklogPage) rank() int   { return 10 }
func (ScheduledPage) rank() int { return 10 }
func (DuePage) rank() int       { return 11 }
func (Tick) rank() int          { return 12 }
func (Inspect) rank() int       { return 13 }
