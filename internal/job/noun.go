package job

import (
	"encoding/json"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// Definition is one revision of a job. People write it (control), the owner of its pool reads it.
type Definition struct {
	UID       UID
	Namespace string
	Name      string
	Revision  int64
	Labels    map[string]string
	CreatedAt Instant // of the job's first revision: anchors `every`
	UpdatedAt Instant // of this revision
	Spec      Spec
	Calendars map[string]*Calendar // that its schedules name, at their newest revision; those that are not there are left out
	Pause     *Pause               // of the job, whatever the revision; nil: none was asked for since the last resume
	Deleted   *Deletion            // nil while the job is there
	Unfit     string               // why what is stored can not be used; "" when it can (so below, too)
}

// Parse makes the schedule of one of the job's specs. Every error is a *schedule.Error.
func (d *Definition) Parse(s schedule.Spec) (schedule.Schedule, error) {
	s.Seed, s.Resolve = Seed(d.Namespace, d.Name), d.resolve
	if err := d.unfitCalendar(&s); err != nil {
		return nil, err
	}
	return schedule.Parse(s, d.CreatedAt.Time())
}

// Seed is what gives H and the spread in a job's schedules their values.
func Seed(namespace, name string) string { return namespace + "/" + name }

// Spec is what a job says. Defaults are not written into it: a zero field means the default that the
// methods below apply. The JSON names are the stored form; renaming one needs a migration.
type Spec struct {
	Title       string          `json:"title,omitempty"`
	Owner       string          `json:"owner,omitempty"`
	Description string          `json:"description,omitempty"`
	Pool        string          `json:"pool"`
	Handler     string          `json:"handler"`
	Params      json.RawMessage `json:"params,omitempty"`
	Schedules   []Schedule      `json:"schedules,omitempty"` // none: manual
	After       []After         `json:"after,omitempty"`     // jobs that have to have ended; see OwnInstants
	Shards      int             `json:"shards,omitempty"`    // 0 means 1
	Retry       Retry           `json:"retry,omitzero"`
	Timeout     Timeout         `json:"timeout,omitzero"`
	Overlap     *Overlap        `json:"overlap,omitempty"` // nil: not declared, see Obeys
	Misfire     Misfire         `json:"misfire,omitzero"`
	AutoPause   AutoPause       `json:"autoPause,omitzero"`
	Disabled    bool            `json:"disabled,omitempty"` // schedules do not fire; requests still run
}

// Schedule is a schedule with the name under which its cursor is kept.
type Schedule struct {
	ID      string `json:"id"`
	MaxRuns int64  `json:"maxRuns,omitempty"` // executions that it makes, over all revisions; 0: no bound
	schedule.Spec
}

// Retry is the policy for attempts that ended by the handler's fault.
type Retry struct {
	MaxAttempts int           `json:"maxAttempts,omitempty"` // 1..100; 0 means 1: no retry
	Initial     time.Duration `json:"initial,omitempty"`     // 0 means 10 s
	Factor      float64       `json:"factor,omitempty"`      // 1..10; 0 means 2
	Max         time.Duration `json:"max,omitempty"`         // 0 means 10 min
	Jitter      string        `json:"jitter,omitempty"`      // "full" (default): [0,d]; "none": d
}

// Timeout bounds an attempt. Zero means no bound, but for Grace.
type Timeout struct {
	Attempt time.Duration `json:"attempt,omitempty"` // from the grant's commit
	Stall   time.Duration `json:"stall,omitempty"`   // without progress, checkpoint or start
	Grace   time.Duration `json:"grace,omitempty"`   // to confirm a stop; 0 means 10 s
}

// ShardTotal is Shards with its default.
func (s *Spec) ShardTotal() int { return max(s.Shards, 1) }

// StopGrace is Timeout.Grace with its default.
func (s *Spec) StopGrace() time.Duration {
	if s.Timeout.Grace == 0 {
		return 10 * time.Second
	}
	return s.Timeout.Grace
}

// Trigger says what made an execution.
type Trigger string

// The triggers.
const (
	TriggerSchedule Trigger = "schedule"
	TriggerRequest  Trigger = "request"
	TriggerBackfill Trigger = "backfill"   // a planned instant of the past that a person asked for
	TriggerCatchUp  Trigger = "catchup"    // for an instant that was missed, see Misfire
	TriggerAfter    Trigger = "dependency" // the ends of its parents
)

// Execution is one run of a job for one planned instant or one request. Only the owner of its
// partition writes it.
type Execution struct {
	ID         ExecutionID
	Partition  int
	Namespace  string
	Job        string
	JobUID     UID
	Revision   int64 // the revision it started with; it keeps it
	Pool       string
	Handler    string
	Trigger    Trigger
	PlannedAt  Instant // the planned instant, or the instant of the request
	RequestKey string
	Params     json.RawMessage
	ShardTotal int
	State      ExecutionState
	Reason     Reason
	Cancel     Reason // why a cancel was accepted; "" while none was
	Round      int    // 0, raised by each rerun
	CreatedAt  Instant
	StartedAt  Instant // first lease
	EndedAt    Instant
	Unfit      string
}

// Shard is one part `i of n` of an execution. Its lease is over when Session is "".
type Shard struct {
	Execution     ExecutionID
	Index         int
	State         ShardState
	Reason        Reason
	Token         Token     // of the newest lease; 0 before the first
	Session       SessionID // holder of the newest lease while that has not ended (also while stopping or, after a time-out, in retry_wait)
	Worker        string    // name of the newest holder
	Closed        bool      // the token writes no more: timed out or cancelled (R6); the lease may still be open
	Confirmed     bool      // the holder has named it: delivered
	Attempt       int       // number of the newest attempt, 0 before the first
	Faults        int       // attempts of this round that ended by the handler's fault
	Losses        int       // infrastructure losses of this round
	LeasedAt      Instant   // of the newest lease
	StartedAt     Instant   // first `started` of the newest lease
	EndedAt       Instant
	TimeoutAt     Instant // of the newest attempt; 0: none
	RetryAt       Instant // while in retry_wait
	StopBy        Instant // while stopping: end of the grace
	ReportSeq     int64   // highest report taken in under Token
	Checkpoint    json.RawMessage
	CheckpointSeq int64 // number of checkpoints taken in over all attempts: never goes back
	Progress      Progress
	Result        json.RawMessage
	Error         *Failure
	Attempts      []Attempt // the newest MaxAttempts
	Unfit         string
}

// MaxAttempts bounds the attempt history that is kept on a shard.
const MaxAttempts = 20

// Attempt is one try of one shard by one session.
type Attempt struct {
	Number      int          `json:"n"`
	Token       Token        `json:"token"`
	Worker      string       `json:"worker"`
	State       AttemptState `json:"state"`
	Reason      Reason       `json:"reason,omitempty"`
	ResumedFrom int64        `json:"resumedFrom,omitempty"` // CheckpointSeq at the grant
	StartedAt   Instant      `json:"startedAt"`             // the grant
	EndedAt     Instant      `json:"endedAt,omitempty"`
	Error       *Failure     `json:"error,omitempty"`
}

// Failure is a handler's error as reported.
type Failure struct {
	Class   string `json:"class,omitempty"` // "error", "fatal", "panic" or a name of the handler's own
	Message string `json:"message"`
}

// Progress is what a handler last said about how far it is. Total 0 means unknown.
type Progress struct {
	Done  int64  `json:"done,omitempty"`
	Total int64  `json:"total,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Session is one connected life of a worker.
type Session struct {
	ID          SessionID
	Partition   int
	Namespace   string
	Pool        string
	Worker      string
	Incarnation string
	Handlers    []string
	Slots       int
	Labels      map[string]string
	Build       string
	TTL         time.Duration // of its shard leases; fixed at open (R7)
	Beat        time.Duration
	Margin      time.Duration
	OpenedAt    Instant
	Unheard     int // owners in a row that heard nothing from it (R7)
	Unfit       string
}

// Cursor is how far one schedule of one job has been planned. Only the owner writes it.
type Cursor struct {
	Job       UID
	Schedule  string
	Revision  int64   // of the definition that Next was computed from
	Stamp     int64   // of its calendars then, see Definition.Stamp
	Next      Instant // next planned instant; 0: none
	Last      Instant // newest instant that was consumed; 0: none
	Held      Instant // oldest planned instant of a pause that is not decided yet; 0: none. Then Next lies behind the pause
	Owed      Instant // first of the missed instants that will run yet; 0: none. Next and Last lie behind them
	OwedTo    Instant // last of them
	OwedLater string  // further ranges, of later outages: "from-to,from-to" in milliseconds since 1970. A text, so that cursors compare; see OwedRanges
	Runs      int64   // executions that it made, those that it owes included
	Failures  int     // of the job's executions in a row; kept while it has an AutoPause. The same in all cursors of a job
}

// DecisionKind tells how a planned instant ended without an execution.
type DecisionKind string

// The kinds of decisions.
const (
	DecisionSkipped DecisionKind = "skipped"
	DecisionMissed  DecisionKind = "missed"
	DecisionBlocked DecisionKind = "blocked"
)

// Decision is the recorded fate of planned instants that became no execution: one, or a range.
type Decision struct {
	Job       UID
	Namespace string
	Name      string
	Schedule  string
	Kind      DecisionKind
	Reason    Reason
	From, To  Instant // first and last instant of the range, both included
	Count     int64
	At        Instant // when it was decided
}
