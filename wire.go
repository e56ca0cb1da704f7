package takt

import (
	"encoding/json"
	"time"
)

// The worker protocol: eight unary calls under /api/v1/worker/ (log is in wire_log.go, parents in wire_parents.go). Any language with an HTTP client can
// speak it. Unknown fields are ignored on both sides. All durations are milliseconds.
//
// Every call of a session carries a number (Call) that only rises, and the highest epoch that the
// worker has met. An answer with a lower epoch than that is dropped by the worker.

// OpenRequest begins a session: POST /api/v1/worker/open. Idempotent per (namespace, pool, worker,
// incarnation).
type OpenRequest struct {
	Namespace   string            `json:"namespace"`
	Pool        string            `json:"pool"`
	Worker      string            `json:"worker" doc:"Name of the worker; need not be unique."`
	Incarnation string            `json:"incarnation" doc:"Random, new for each life of the process."`
	Handlers    []string          `json:"handlers"`
	Slots       int               `json:"slots"`
	Labels      map[string]string `json:"labels,omitempty"`
	Build       string            `json:"build,omitempty"`
	LocalTime   time.Time         `json:"localTime"`
	Call        int64             `json:"call" doc:"Number of this call: one counter for all calls of the session, from 1, raised by each call, also a repeated one. Note the instant before sending each: leases count from it."`
	Epoch       int64             `json:"epoch,omitempty" doc:"Highest epoch met in any answer so far; 0 before the first."`
}

// OpenResponse tells the terms of the session.
type OpenResponse struct {
	Session       string    `json:"session"`
	Epoch         int64     `json:"epoch" doc:"Highest epoch met in any answer so far; 0 before the first."`
	Call          int64     `json:"call" doc:"Number of this call: one counter for all calls of the session, from 1, raised by each call, also a repeated one. Note the instant before sending each: leases count from it."`
	TTLMs         int64     `json:"ttlMs" doc:"Length of a shard lease."`
	BeatMs        int64     `json:"beatMs" doc:"How often to beat."`
	MarginMs      int64     `json:"marginMs" doc:"The holder stops this much before its lease ends."`
	CallTimeoutMs int64     `json:"callTimeoutMs"`
	PollMs        int64     `json:"pollMs" doc:"How long a poll may hang."`
	ServerTime    time.Time `json:"serverTime"`
	Limits        Limits    `json:"limits"`
}

// Limits are the sizes in bytes that the server takes.
type Limits struct {
	Params     int `json:"params"`
	Checkpoint int `json:"checkpoint"`
	Result     int `json:"result"`
	Items      int `json:"items" doc:"Items of one report."`
}

// PollRequest asks for work: POST /api/v1/worker/poll. One at a time per session.
type PollRequest struct {
	Session string  `json:"session"`
	Epoch   int64   `json:"epoch" doc:"Highest epoch met in any answer so far; 0 before the first."`
	Call    int64   `json:"call" doc:"Number of this call: one counter for all calls of the session, from 1, raised by each call, also a repeated one. Note the instant before sending each: leases count from it."`
	Number  int64   `json:"number" doc:"Of polls; an older one is answered superseded."`
	Free    int     `json:"free" doc:"Free slots."`
	Held    []int64 `json:"held,omitempty" doc:"Tokens of the assignments that have arrived."`
	WaitMs  int64   `json:"waitMs" doc:"How long to hang when there is nothing; at most pollMs."`
}

// PollResponse brings work and stops.
type PollResponse struct {
	Epoch       int64        `json:"epoch"`
	Assignments []Assignment `json:"assignments,omitempty"`
	Cancels     []Cancel     `json:"cancels,omitempty"`
	Superseded  bool         `json:"superseded,omitempty"`
}

// Assignment is a shard to run. The same (shard, token) may come twice and is started once.
type Assignment struct {
	Namespace     string          `json:"namespace"`
	Job           string          `json:"job"`
	Revision      int64           `json:"revision" doc:"Version of the parameters."`
	Execution     string          `json:"execution"`
	Handler       string          `json:"handler"`
	PlannedAt     time.Time       `json:"plannedAt"`
	Shard         int             `json:"shard"`
	ShardTotal    int             `json:"shardTotal"`
	Attempt       int             `json:"attempt"`
	Token         int64           `json:"token" doc:"Fencing token; an assignment that is offered again has the same one and must not be started twice."`
	LeaseCall     int64           `json:"leaseCall" doc:"The lease ends TTL after this call was sent, less the margin."`
	TimeoutMs     int64           `json:"timeoutMs,omitempty" doc:"Left of the attempt's time-out; 0: none."`
	Params        json.RawMessage `json:"params,omitempty"`
	Checkpoint    json.RawMessage `json:"checkpoint,omitempty"`
	CheckpointSeq int64           `json:"checkpointSeq,omitempty"`
	Key           string          `json:"key"`

	Parents []AssignedParent `json:"parents,omitempty" doc:"Of a job that runs after others: the executions by which it was decided, in the order of the job. Servers before this field name none."`
}

// Cancel tells a worker to stop a shard.
type Cancel struct {
	Execution string `json:"execution"`
	Shard     int    `json:"shard"`
	Token     int64  `json:"token"`
	Reason    string `json:"reason" doc:"cancel_requested, job_deleted or replaced; attempt_timeout or stalled."`
	GraceMs   int64  `json:"graceMs"`
}

// HeartbeatRequest renews leases: POST /api/v1/worker/heartbeat. Only what is named is renewed.
type HeartbeatRequest struct {
	Session   string      `json:"session"`
	Epoch     int64       `json:"epoch" doc:"Highest epoch met in any answer so far; 0 before the first."`
	Call      int64       `json:"call" doc:"Number of this call: one counter for all calls of the session, from 1, raised by each call, also a repeated one. Note the instant before sending each: leases count from it."`
	Held      []HeldShard `json:"held,omitempty"`
	LocalTime time.Time   `json:"localTime"`
}

// HeldShard is a shard that the worker runs.
type HeldShard struct {
	Token    int64     `json:"token"`
	Progress *Progress `json:"progress,omitempty"`
}

// HeartbeatResponse tells which leases go on.
type HeartbeatResponse struct {
	Epoch   int64    `json:"epoch"`
	Call    int64    `json:"call" doc:"The call that set the renewed leases' end."`
	Renewed []int64  `json:"renewed,omitempty" doc:"Tokens: each lease now ends TTL less margin after the call named above was sent."`
	Lost    []int64  `json:"lost,omitempty" doc:"Tokens: stop these and write nothing more."`
	Cancels []Cancel `json:"cancels,omitempty"`
}

// ReportRequest reports: POST /api/v1/worker/report. Send it again until it is answered.
type ReportRequest struct {
	Session string       `json:"session"`
	Epoch   int64        `json:"epoch" doc:"Highest epoch met in any answer so far; 0 before the first."`
	Call    int64        `json:"call" doc:"Number of this call: one counter for all calls of the session, from 1, raised by each call, also a repeated one. Note the instant before sending each: leases count from it."`
	Items   []ReportItem `json:"items"`
}

// ReportItem is one thing that happened to a shard.
type ReportItem struct {
	Execution    string          `json:"execution"`
	Shard        int             `json:"shard"`
	Token        int64           `json:"token"`
	Seq          int64           `json:"seq" doc:"Rises per attempt from 1."`
	Kind         string          `json:"kind" enum:"started,progress,checkpoint,done"`
	Progress     *Progress       `json:"progress,omitempty"`
	Checkpoint   json.RawMessage `json:"checkpoint,omitempty"`
	Outcome      string          `json:"outcome,omitempty" doc:"Of done: success, error (may be retried), fatal (may not), snooze (again after retryAfterMs), cancelled (confirms a stop), released (given back unfinished), lease_lost (stopped by itself when its lease ended)."`
	Result       json.RawMessage `json:"result,omitempty"`
	Error        *Failure        `json:"error,omitempty"`
	RetryAfterMs int64           `json:"retryAfterMs,omitempty"`
	LogPending   bool            `json:"logPending,omitempty" doc:"Of done: lines of the attempt's log are still to come."`
}

// ReportResponse gives each item's fate, in order.
type ReportResponse struct {
	Epoch int64    `json:"epoch"`
	Items []string `json:"items" doc:"accepted, stale or unknown. stale: an older token, or one that was told to stop; write nothing more for it. All three are final: do not send the item again."`
}

// CloseRequest ends a session gracefully: POST /api/v1/worker/close. What it still holds goes back at
// once and burns no attempt.
type CloseRequest struct {
	Session string `json:"session"`
	Epoch   int64  `json:"epoch" doc:"Highest epoch met in any answer so far; 0 before the first."`
	Call    int64  `json:"call" doc:"Number of this call: one counter for all calls of the session, from 1, raised by each call, also a repeated one. Note the instant before sending each: leases count from it."`
}

// CloseResponse says that the session is over.
type CloseResponse struct {
	Epoch int64 `json:"epoch"`
}
