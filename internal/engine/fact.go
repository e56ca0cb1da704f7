package engine

import "github.com/taktsched/takt/internal/job"

// FactKind is the kind of a journal fact.
type FactKind string

// The kinds of facts. Those marked (trace) change nothing durable and reach observers only.
const (
	FactOwned            FactKind = "owned" // first commit of an engine
	FactSessionOpened    FactKind = "session_opened"
	FactSessionEnded     FactKind = "session_ended" // closed, or dead
	FactExecutionCreated FactKind = "execution_created"
	FactExecutionState   FactKind = "execution_state"
	FactShardCreated     FactKind = "shard_created"
	FactShardState       FactKind = "shard_state"
	FactLeaseGranted     FactKind = "lease_granted"
	FactLeaseRenewed     FactKind = "lease_renewed" // (trace)
	FactLeaseEnded       FactKind = "lease_ended"   // by the holder's word
	FactLeaseExpired     FactKind = "lease_expired"
	FactStarted          FactKind = "started"
	FactCheckpoint       FactKind = "checkpoint"
	FactResult           FactKind = "result"    // accepted done
	FactRejected         FactKind = "rejected"  // (trace) a stale report, beat or checkpoint
	FactTimedOut         FactKind = "timed_out" // attempt: Reason says which bound
	FactCancelRequested  FactKind = "cancel_requested"
	FactRetryPlanned     FactKind = "retry_planned"
	FactRescheduled      FactKind = "rescheduled" // to PlannedAt; it was planned for Until
	FactPlanned          FactKind = "planned"     // a cursor moved over At
	FactDecided          FactKind = "decided"     // an instant or range that became no execution
	FactJobChanged       FactKind = "job_changed"
	FactJobHandedOver    FactKind = "job_handed_over" // another partition plans it from here on
	FactSent             FactKind = "sent"            // an execution whose wait is over, to where its job is …
	FactArrived          FactKind = "arrived"         // … and there
	FactJobDeleted       FactKind = "job_deleted"
	FactAutoPaused       FactKind = "auto_paused" // a schedule is held, for Count executions of its job in a row have failed
	FactRerun            FactKind = "rerun"
	FactUpstream         FactKind = "upstream"    // Note: the executions of its parents by which Execution was decided
	FactBackfill         FactKind = "backfill"    // To: its state; Note: its id
	FactUnexplained      FactKind = "unexplained" // Count planned instants from PlannedAt to Until got neither an execution nor a decision
	FactSetAside         FactKind = "set_aside"
	FactClockStepped     FactKind = "clock_stepped" // Note: whose, and by how much
	FactWorkerClock      FactKind = "worker_clock"  // (trace) wrong by more than ClockAlarm
)

// Fact is one thing that a step decided, as the journal keeps it. Fields that do not apply are zero.
type Fact struct {
	Kind       FactKind        `json:"kind"`
	Job        string          `json:"job,omitempty"` // namespace/name
	Execution  job.ExecutionID `json:"exec,omitzero"`
	Shard      int             `json:"shard,omitempty"`
	Token      job.Token       `json:"token,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Session    job.SessionID   `json:"session,omitempty"`
	Worker     string          `json:"worker,omitempty"`
	From       string          `json:"from,omitempty"` // state
	To         string          `json:"to,omitempty"`   // state
	Reason     job.Reason      `json:"reason,omitempty"`
	PlannedAt  job.Instant     `json:"planned,omitempty"`
	Until      job.Instant     `json:"until,omitempty"` // lease deadline, retry instant, end of a range: wall, to inform
	Count      int64           `json:"count,omitempty"`
	Checkpoint int64           `json:"ckpt,omitempty"` // CheckpointSeq
	Call       int64           `json:"call,omitempty"` // the named call of a grant or renewal
	Note       string          `json:"note,omitempty"`
}
