package engine

import (
	"time"

	"github.com/taktsched/takt/internal/job"
)

// Config is what an engine is built with; all of it is fixed for its life.
type Config struct {
	Partition int
	Epoch     job.Epoch

	LeaseTTL     time.Duration // of worker leases opened from now on
	Beat         time.Duration
	Margin       time.Duration // the holder stops this much before the judge
	OwnerTTL     time.Duration // P: the partition lease; blindness beyond it defers verdicts
	MisfireGrace time.Duration // a planned instant this late is still on time
	CatchUpMax   int           // instants that one step may walk per schedule
	CatchUpRate  int           // executions a second for instants that were missed
	ReadyMax     int           // queued shards of a pool and handler that are held in memory; the rest stays in the database (R14)
	ReadyBytes   int           // of their parameters and checkpoints, over all pools; each line may hold a 64th of it whatever others hold
	AnswerMax    int           // bytes of parameters and checkpoints that one poll is answered with; one assignment always goes
	PageSize     int           // rows asked for at once
	Horizon      time.Duration // schedules due within it are held in memory, and executions that wait for their instant
	SoonMax      int           // of these executions, that many; the nearest
	LossMax      int           // infrastructure losses before worker_lost
	SessionKeep  time.Duration // a silent session without leases is dropped after this
	Behind       int           // as in LevelOfAll, when the engine is made

	Switches Switches // test builds only
}

// Default is the configuration of DESIGN §5.
func Default() Config {
	return Config{
		LeaseTTL: 15 * time.Second, Beat: 3 * time.Second, Margin: 1500 * time.Millisecond,
		OwnerTTL: 5 * time.Second, MisfireGrace: time.Minute, CatchUpMax: 10_000, CatchUpRate: 500,
		ReadyMax: 10_000, ReadyBytes: 64 << 20, AnswerMax: 4 << 20, PageSize: 1_000, Horizon: time.Minute, SoonMax: 20_000, LossMax: 5, SessionKeep: time.Minute,
	}
}

// Switches remove one part of the model each, so that a test can show that the part is needed. All
// false in production; nothing but tests sets them.
type Switches struct {
	DeadlineFromReceipt bool // answers name the call of receipt instead of the one that set the deadline
	NoTakeoverGrace     bool // a take-over judges at once
	DecisionEndsLease   bool // time-out and cancel free the shard at once
	NoPageGuard         bool // pages are believed whatever changed since they were read
	OldTokenWrites      bool // reports with an older token count
	TokensFromZero      bool // tokens do not start at the epoch
	PlannerIgnored      bool // a job is planned by whoever has an entry about it
	NoDecisions         bool // what becomes no execution is forgotten
	NothingFollows      bool // what waits stays where its job was
}

// InspectQuery says what to look at. Zero fields select everything.
type InspectQuery struct {
	Namespace string
	Pool      string
	Execution job.ExecutionID // why does it wait?
	Job       job.UID         // what runs of it, and what waits for that?
}

// Inspected is the answer: memory as of the last commit.
type Inspected struct {
	Sessions  []SessionView
	Pools     []PoolView
	Execution *ExecutionView // when the query named one that is in memory
	Turn      *TurnView      // when the query named a job of which something runs
	Waiting   int            // executions that wait for another one of their job to end
	Counters  Counters
}

// SessionView is a live session as the owner sees it.
type SessionView struct {
	Session  job.Session
	Held     []HeldView
	Free     int
	LastBeat time.Duration // ago
	Polling  bool
	Clock    *time.Duration // how far its clock is ahead, less the way of the call that said so; nil: unknown
}

// HeldView is one lease.
type HeldView struct {
	Execution job.ExecutionID
	Shard     int
	Token     job.Token
	Left      time.Duration
	State     job.ShardState
	Progress  job.Progress
}

// PoolView is a pool with its load.
type PoolView struct {
	Namespace string
	Pool      string
	Workers   int
	Slots     int
	Busy      int
	Queued    int // shards in memory
}

// ExecutionView is an execution in memory with the reason why each shard waits.
type ExecutionView struct {
	Row   Row             // its ended shards are without Checkpoint and Result
	Waits []job.Reason    // by shard; "" when it does not wait
	Left  []time.Duration // lease left by shard; 0 when not leased
}

// Counters count since the engine was made.
type Counters struct {
	Stale       int64 // report items refused for their token
	Granted     int64
	Renewed     int64
	Expired     int64
	Undelivered int64
	TimedOut    int64
	Poisoned    int64

	ClockSteps   int64 // of the clock that is planned by, and of the server's
	WorkerClocks int64 // sessions whose clock was found wrong by more than ClockAlarm
	Unexplained  int64 // planned instants that got neither an execution nor a decision
}
