package engine

import (
	"encoding/json"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// Result is everything a step wants done, in this order: commit Batch, then perform the effects.
type Result struct {
	Batch   Batch    // Empty(): nothing to commit (R1)
	Answers []Answer // sent after the commit, see Answer.Renewal
	Wakes   []int    // partitions that got an inbox entry
	Want    Want     // pages to read
	Trace   []Fact   // facts that changed nothing durable (renewals, refusals): for observers only
}

// Batch is the durable part of a step: one fenced transaction (R2).
type Batch struct {
	Seq       int64 // the partition row moves from Seq-1 to Seq
	LastToken job.Token
	At        job.Instant
	Level     int // that every server knows: the store writes no form of a row that came with a newer one

	Executions  []ExecutionWrite
	Shards      []ShardWrite
	Cursors     []job.Cursor // upsert by (job, schedule)
	DropCursors []job.Cursor // delete by (job, schedule)
	Handovers   []Handover   // after the cursors of the batch
	Streaks     []Streak     // before the cursors of the batch
	Decisions   []job.Decision
	Matched     []Matched              // upsert by execution
	Backfills   []job.BackfillProgress // upsert by id
	// SentBackfills go on in another partition, with an entry in its inbox; after Backfills.
	SentBackfills []SentBackfill
	Sessions      []job.Session // upsert by id
	EndSessions   []job.SessionID
	Consumed      []int64 // inbox entries to delete; each must be there
	Forwarded     []Forward
	Poison        []Poison
	Facts         []Fact // the journal row (partition, Seq): one per commit, also when empty
}

// Empty tells whether there is nothing to commit. Facts say what the rest does; that a clock was set stands alone.
func (b *Batch) Empty() bool {
	for i := range b.Facts {
		if b.Facts[i].Kind == FactClockStepped {
			return false
		}
	}
	return len(b.Executions) == 0 && len(b.Shards) == 0 && len(b.Cursors) == 0 && len(b.DropCursors) == 0 &&
		len(b.Decisions) == 0 && len(b.Backfills) == 0 && len(b.Sessions) == 0 && len(b.EndSessions) == 0 && len(b.Consumed) == 0 && len(b.Poison) == 0 && len(b.Handovers)+len(b.Streaks)+len(b.SentBackfills) == 0 && len(b.Forwarded) == 0
}

// Matched says by which executions of its parents an execution was decided.
type Matched struct {
	Execution job.ExecutionID
	Parents   []job.Parent
}

// Handover gives all cursors of a job to another partition, which plans it from this commit on (R10).
type Handover struct {
	Job       job.UID
	Partition int
}

// SentBackfill gives a backfill that has begun to another partition.
type SentBackfill struct {
	ID        job.ExecutionID
	Job       job.UID
	Namespace string
	Revision  int64 // of the job that it runs
	Partition int
}

// Forward gives an inbox entry to another partition, under the same id: whoever waits for it waits on until that one
// has consumed it. It is how a partition writes to another's inbox: an entry that was consumed here and made anew there
// would be "effective" for its caller one commit too early.
type Forward struct {
	Entry     int64
	Partition int
}

// ExecutionWrite inserts (From "") or changes an execution. The write is refused (job.KindFenced, code
// "state_guard") unless the stored state is From. When Row's state has ended, the execution moves with
// all its shards to history in this same commit, after the shard writes; when From has ended (rerun),
// they move back first. A batch holds at most one write per execution and per shard.
type ExecutionWrite struct {
	From job.ExecutionState
	Sent bool // to Row's partition, in whose inbox an entry (arrived) about it is put; else that is the commit's own
	Row  job.Execution
}

// ShardWrite inserts (From "") or changes a shard, guarded alike.
type ShardWrite struct {
	From  job.ShardState
	Total int // shards of its execution; 0: not said
	Row   job.Shard
}

// Poison is an event that was set aside.
type Poison struct {
	Entry int64 // of the inbox; 0 for a call
	Kind  string
	Event json.RawMessage // as much of it as can be written
	Error string
}

// Answer goes back to the caller of one event.
type Answer struct {
	Reply ReplyID
	// Renewal marks an answer that rests on no commit: a beat whose every lease was renewed. All other
	// answers wait for their step's own commit and for every commit before it, negative ones too (R1).
	Renewal bool
	Value   any // *Opened, *Polled, *Beaten, *Reported, *Closed, *Inspected or *job.Error
}

// The answers.
type (
	// Opened answers SessionOpen.
	Opened struct {
		Session job.Session
		Call    int64 // newest call taken in
	}
	// Polled answers Poll.
	Polled struct {
		Assignments []Assignment
		Cancels     []Cancel
		Superseded  bool // a newer poll of the session took its place
	}
	// Beaten answers Heartbeat.
	Beaten struct {
		Call    int64 // the call that set the renewed leases' deadline: this beat
		Renewed []job.Token
		Lost    []job.Token // not this session's any more: stop, write nothing
		Cancels []Cancel
	}
	// Reported answers Report, item by item.
	Reported struct{ Items []ItemStatus }
	// Closed answers SessionClose.
	Closed struct{}
)

// Assignment is a shard given to a session.
type Assignment struct {
	Execution     job.Execution
	Shard         int
	Attempt       int
	Token         job.Token
	LeaseCall     int64         // the holder's deadline is the instant before it sent this call + TTL − margin (R7)
	TimeoutIn     time.Duration // left of timeout.attempt; 0: none
	Checkpoint    json.RawMessage
	CheckpointSeq int64
	Key           string
	RunsAfter     bool // executions of parents may have decided it: who hands it out reads what those gave
}

// Cancel tells a holder to stop.
type Cancel struct {
	Execution job.ExecutionID
	Shard     int
	Token     job.Token
	Reason    job.Reason // cancel_requested, attempt_timeout, stalled
	Grace     time.Duration
}

// ItemStatus is the fate of one report item.
type ItemStatus string

// The fates.
const (
	ItemAccepted ItemStatus = "accepted"
	ItemStale    ItemStatus = "stale"   // an older or closed token: nothing changed
	ItemUnknown  ItemStatus = "unknown" // no such shard here
)

// Want is what the core needs and does not hold (R14). A nil or empty part wants nothing. The runner
// reads it and answers with the page event of the same name; asking again is harmless.
type Want struct {
	Inbox      bool // read the inbox (the runner does so on a wake and each half second anyway)
	Due        *WantDue
	Backlog    *WantBacklog
	Scheduled  *WantScheduled
	Executions []job.ExecutionID // for entries
	Shards     []ShardRef        // for reports
	Upstream   []UpstreamAsk
	Awaiting   *WantAwaiting
}

// WantAwaiting asks for executions that wait for their parents, behind After.
type WantAwaiting struct {
	After job.ExecutionID
	Limit int
}

// WantDue asks for cursors with Next ≤ Until, behind After; or, Owed, for those with an Owed, by job and schedule.
type WantDue struct {
	Owed  bool
	Until job.Instant
	After *job.Cursor // nil: from the start
	Limit int
}

// WantScheduled asks for executions that wait for an instant up to Until, behind After.
type WantScheduled struct {
	Until job.Instant
	After Place
	Limit int
}

// Place is where it begins.
func (w WantBacklog) Place() Place { return Place{w.PlannedAt, w.ID} }

// WantBacklog asks for queued executions behind (PlannedAt, ID).
type WantBacklog struct {
	PlannedAt job.Instant
	ID        job.ExecutionID
	Limit     int
}
