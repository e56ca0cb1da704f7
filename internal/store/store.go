// Package store is the contract between Takt and its database: small role interfaces named after their
// user, parameter structs and error kinds. Adapters (sqlite, postgres) implement it with hand-written
// SQL; storetest is the exam that each must pass.
//
// Rules of the contract:
//   - Each method is one transaction. No SQL reads a clock; instants are arguments.
//   - Errors are *job.Error: KindFenced (the fence or a state guard did not match: nothing was written),
//     KindRejected (the database refuses this data: nothing was written, again would not help),
//     KindUnknown (a commit whose outcome is not known: it may still land), KindUnavailable (nothing was
//     written, again may help), KindNotFound, KindConflict.
//   - Slices and raw JSON given out belong to the caller; those handed in are not kept.
package store

import (
	"context"
	"encoding/json"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
)

// Store is everything; callers take the role they need.
type Store interface {
	Partitions
	Engine
	Control
	Reader
	Logs
	Sweeper
	Servers
	// Ping tells whether the database answers and can be written (for /readyz).
	Ping(ctx context.Context) error
	Close() error
}

// Fence names an owner's right to commit (R2).
type Fence struct {
	Partition int
	Owner     string // incarnation of the server, never its name
	Epoch     job.Epoch
	Seq       int64 // of the newest commit; the next batch has Seq+1
}

// PartitionRow is the state of a partition's ownership.
type PartitionRow struct {
	Fence
	Beat      int64 // raised by each renewal, in a row of its own
	LastToken job.Token
	// Lineage is the history on which an owner has waited for whatever workers held without the database's
	// knowing, see SettlePartition. A row is made with the lineage of the moment; "" in a store that has none.
	Lineage string
}

// Partitions is used by the keeper.
type Partitions interface {
	// PartitionRows lists all partitions, ordered by number. Their number is fixed at creation.
	PartitionRows(ctx context.Context) ([]PartitionRow, error)

	// AcquirePartition makes owner the holder under the epoch max(old epoch + 1, last token + 1, clock
	// in µs) if the row still has seen's owner, epoch and beat (KindFenced otherwise). It waits for a
	// commit in flight. Acquiring from oneself is allowed and is how R3 leaves an epoch. clock is the
	// server's idea of the database's time in µs. level is the newest engine.Level that owner knows: KindConflict, code
	// "server_too_old", when it is below the floor. Returns the new row.
	AcquirePartition(ctx context.Context, seen PartitionRow, owner string, clock int64, level int) (PartitionRow, error)

	// RaiseFloor makes the floor level if it is below that, and returns it; 0 only asks, and is the answer while there is none. Owners raise it before they write
	// the first row in a form of that level: who does not know the form would leave the row aside. It never sinks. From
	// engine.LevelLots on binaries from before there were floors refuse the database, too.
	RaiseFloor(ctx context.Context, level int) (floor int, err error)

	// RenewPartition raises the beat if owner and epoch match (KindFenced otherwise) and returns the
	// new beat. It never waits for a commit.
	RenewPartition(ctx context.Context, f Fence) (int64, error)

	// SettlePartition writes lineage into the row if owner and epoch match (KindFenced otherwise).
	SettlePartition(ctx context.Context, f Fence, lineage string) error

	// ReleasePartition clears the owner if owner and epoch match; no error when they do not.
	ReleasePartition(ctx context.Context, f Fence) error
}

// Engine is used by the runner of a partition.
type Engine interface {
	// Commit applies b if the partition row has f's owner, epoch and Seq == b.Seq-1, else KindFenced and
	// nothing is written. Guards: see engine.ExecutionWrite; the refusal (code "state_guard") has the
	// execution's id as its Field. Each Consumed and Forwarded entry must be in this partition's inbox (KindFenced,
	// code "entry_guard"). Each cursor that is written, and each job that is handed over, must be of a job that this
	// partition plans (KindFenced, code "planner_guard"): all cursors of a job name its planner; a job without any is
	// planned by the partition that it was created in, whatever its pool is now. A handed over job has at least one. How far a backfill is may be
	// written by the partition that began it (KindFenced, code "backfill_guard"). The journal row (partition, b.Seq, epoch, at, facts) is always written. An execution that
	// ends puts an entry (parent_ended) into the inbox of the planner of each job that depends on its job, and of each
	// partition where executions of such a job wait for parents. A Poison row
	// of a trigger that is there forgets its request key: asking again makes a new execution.
	Commit(ctx context.Context, f Fence, b *engine.Batch) error

	// LoadPartition reads what a new engine starts from, in one snapshot: seq, last token, sessions,
	// and every live execution that is not queued or scheduled, with its shards and definition. It is as
	// large as what is under way: of a shard that has ended it has Execution, Index, State, Reason, Token, Closed,
	// ReportSeq and EndedAt alone.
	LoadPartition(ctx context.Context, partition int) (engine.Loaded, error)

	// InboxPage reads up to limit pending entries with the rows they refer to: first pauses, deletions, and cancels of
	// what the owner has taken in (a cancel of a trigger that still waits comes behind it), then the rest,
	// each by id. Definition is the newest revision, but of a trigger the one that was triggered. The page is bounded by
	// PageBytes and then ends early with Partial.
	InboxPage(ctx context.Context, partition, limit int) (engine.InboxPage, error)

	// DuePage, BacklogPage and ExecutionPage answer engine.Want; each is one snapshot with its Seq.
	// DuePage skips disabled jobs whose cursors are of that revision: one that the owner has not taken in yet shows, so
	// that pages read one after the other do not show some of its schedules only. ExecutionPage looks into live rows, then into history. Each is bounded by
	// PageBytes: DuePage and BacklogPage then end early with Partial, ExecutionPage leaves the ids that it
	// did not come to out of Asked.
	DuePage(ctx context.Context, partition int, w engine.WantDue) (engine.DuePage, error)
	BacklogPage(ctx context.Context, partition int, w engine.WantBacklog) (engine.BacklogPage, error)
	ExecutionPage(ctx context.Context, partition int, ids []job.ExecutionID) (engine.ExecutionPage, error)
	// ScheduledPage answers Want.Scheduled: executions in state scheduled for the reason job.WaitDelay, by (PlannedAt, ID),
	// behind After and planned at most at Until. Through is the place of the last one when there are more, else the end of Until.
	ScheduledPage(ctx context.Context, partition int, w engine.WantScheduled) (engine.ScheduledPage, error)
	// ShardPage looks where ExecutionPage does, but reads of each named shard only what settles a report
	// about it, in the order asked.
	ShardPage(ctx context.Context, partition int, refs []engine.ShardRef) (engine.ShardPage, error)
	// UpstreamPage reads, in one snapshot, what jobs run after: their parents' executions, of whatever partition, and the
	// execution that is meant. What does not fit into PageBytes is left out of Asked.
	UpstreamPage(ctx context.Context, partition int, asks []engine.UpstreamAsk) (engine.UpstreamPage, error)
	// AwaitingPage lists the executions of a partition that wait for their parents, by id.
	AwaitingPage(ctx context.Context, partition int, w engine.WantAwaiting) (engine.AwaitingPage, error)
}

// Written is the receipt of a control write: the inbox entry to wait for.
type Written struct {
	Partition int
	Entry     int64 // 0: nothing had to be told to the owner
}

// PutJob creates or changes a job.
type PutJob struct {
	Definition job.Definition // UID is used when the job is new; Revision is ignored
	IfRevision int64          // > 0: only if the newest revision is this one; -1: only if there is none; 0: any
	Partition  int            // of the pool; another one than before moves the job
	At         job.Instant
	Change     job.Change // who makes the revision, and why
}

// RequestKey makes a request idempotent: unique per (Namespace, Operation, Key) until it is swept.
type RequestKey struct {
	Namespace string
	Operation string // "trigger/<job>", …
	Key       string // "": not idempotent, nothing is kept
	Hash      string // of the request: the same key with another hash is a conflict
}

// Trigger asks for an execution.
type Trigger struct {
	Namespace string
	Job       string
	Execution job.ExecutionID // proposed; an earlier request with the same key wins
	Request   engine.Request
	Key       RequestKey
	// Merge makes the execution's params of the job's newest revision, in the transaction that pins both; an
	// error of it refuses the request. It reads and writes nothing else. nil: Request.Params as they are.
	Merge func(job.Definition) (json.RawMessage, error)
	Bulk  bool // may lie with others in one row: every server knows such rows (engine.LevelRows)
	// Told is called once the entry is committed, with the entry as a page of the inbox that has this Seq would tell of it, but without
	// cursors, planner and place. Not for a repeat, nor when an owner needs to know more of it, see Tell. nil: nobody wants to know.
	Told func(partition int, seq int64, e *engine.Entry)
}

// MaxTriggers bounds one call of Triggers.
const MaxTriggers = 1000

// Triggered is the receipt of a trigger.
type Triggered struct {
	Written
	Execution job.ExecutionID
	Repeated  bool // the key was known: Execution is the one it made, nothing was written
}

// Ask is a person's request about one execution.
type Ask struct {
	Kind      engine.EntryKind // cancel, rerun or reschedule
	Namespace string
	Execution job.ExecutionID
	Due       job.Instant // reschedule: the new one
	Note      string
	At        job.Instant
}

// Control is used by the use cases of people. Each method writes its own rows and an inbox entry in
// one transaction (R10).
type Control interface {
	Jobs
	Backfills
	Calendars
	// PutJob writes a new revision, or none when the document (spec and labels) equals the newest one: then Entry is 0.
	// KindConflict code "revision_changed" when IfRevision does not hold; KindInvalid code "calendar_not_found" when it names
	// a calendar that is not there. The entry, and that of a pause or a deletion,
	// goes to the partition that plans the job, which forwards it when it has handed the job over by then.
	PutJob(ctx context.Context, p PutJob) (job.Definition, Written, error)
	// Trigger asks for an execution of the revision that is the newest now: an edit that comes before the owner
	// takes the entry changes neither its params nor anything else of it. KindNotFound when the job is not there; KindConflict code "idempotency_key_reused".
	Trigger(ctx context.Context, t Trigger, partition func(job.Definition) int) (Triggered, error)
	// Triggers is Trigger for many, in their order, all of them or none: a refused list is a *job.SetError with the first
	// that is refused. A key that comes twice in the list makes one execution. At most MaxTriggers.
	Triggers(ctx context.Context, all []Trigger, partition func(job.Definition) int) ([]Triggered, error)
	// Ask: KindNotFound when the execution is neither live, nor in history, nor in the inbox. A reschedule is KindConflict, code
	// "execution_not_scheduled", unless the execution waits for its instant; its request key is kept as for the new one.
	Ask(ctx context.Context, a Ask) (Written, error)
	// EntryPending tells whether the owner has yet to consume an entry.
	EntryPending(ctx context.Context, entry int64) (bool, error)
	// Requested finds the execution that a request key made (its Hash is not looked at). KindNotFound, code
	// "request_not_found", when nothing keeps the key.
	Requested(ctx context.Context, k RequestKey) (job.ExecutionID, error)
	// SweepRequestKeys deletes keys whose request, and whose execution's instant, lie before the given one, at most limit;
	// returns how many.
	SweepRequestKeys(ctx context.Context, before job.Instant, limit int) (int, error)
}

// Page is a keyset page request: rows behind After (opaque to callers, "" for the first), ≤ Limit. A page
// may be shorter than Limit and lead on all the same: it is bounded by PageBytes, too, and the rows that a
// list looks at for one page are bounded, so that a page may even be empty.
type Page struct {
	After string
	Limit int
}

// ExecutionFilter selects executions of a namespace, newest planned first.
type ExecutionFilter struct {
	Namespace string
	Job       string             // "" for all
	Pool      string             // "" for all
	State     job.ExecutionState // "" for all
	Query     filter.Query       // what people write; the zero value for all. With one, a page may be short and still lead on
	Page
}

// JournalRow is one commit of a partition.
type JournalRow struct {
	Partition int
	Seq       int64
	Epoch     job.Epoch
	At        job.Instant
	Facts     json.RawMessage
}

// JobRow is a job with its newest revision and its cursors.
type JobRow struct {
	Definition job.Definition
	Cursors    []job.Cursor
}

// Reader is used by lists and pages. next is "" at the end, and only there. Lists never count and never use
// OFFSET; they delay no engine, and end when ctx does.
type Reader interface {
	Instants
	Job(ctx context.Context, namespace, name string) (JobRow, error)
	Jobs(ctx context.Context, namespace string, p Page) (rows []JobRow, next string, err error)
	// Execution looks into live rows, history, then the inbox (a trigger that waits for its owner is
	// shown as scheduled).
	Execution(ctx context.Context, namespace string, id job.ExecutionID) (job.Execution, error)
	Executions(ctx context.Context, f ExecutionFilter) (rows []job.Execution, next string, err error)
	// Children are the names of the jobs that run after one.
	Children(ctx context.Context, parent job.UID) ([]string, error)
	// Upstream is what an execution runs after, by the newest revision of its job, and by which executions of its parents
	// it was decided; nothing while it was not.
	Upstream(ctx context.Context, x job.Execution) (u engine.Upstream, matched []job.Parent, err error)
	// Given says what each of some executions was given by those of its parents that decided it, in the order of its job, in one
	// snapshot; nothing for one that was decided by none. KindConflict, code "token_stale", when an ask's Holder holds no shard.
	Given(ctx context.Context, asks []GivenAsk) ([][]Given, error)
	// Shards lists shards of an execution by index.
	Shards(ctx context.Context, namespace string, id job.ExecutionID, p Page) (rows []job.Shard, next string, err error)
	// Decisions of a namespace, newest first; name "" for all jobs.
	Decisions(ctx context.Context, namespace, name string, p Page) (rows []job.Decision, next string, err error)
	// Journal rows of a partition behind seq, oldest first.
	Journal(ctx context.Context, partition int, afterSeq int64, limit int) ([]JournalRow, error)
}
