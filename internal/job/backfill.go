package job

// Backfill runs a job for the planned instants of a range in the past. People write what they ask for, the owner of its
// partition how far it has come.
type Backfill struct {
	ID        ExecutionID // as of an execution that was asked for
	Partition int         // of the pool in Revision
	Namespace string
	Job       string
	JobUID    UID
	Revision  int64   // that it runs, and whose schedules name the instants: the newest when it was asked for
	From, To  Instant // first and last instant, both included
	Spec      BackfillSpec
	At        Instant
	Cancel    *BackfillCancel // nil: nobody asked for its end
	Progress  BackfillProgress
	Unfit     string
}

// BackfillSpec is how a backfill is done, who asked for it and why. The JSON names are the stored form.
type BackfillSpec struct {
	Reverse     bool   `json:"reverse,omitempty"`     // the newest instant first
	MaxParallel int    `json:"maxParallel,omitempty"` // executions at a time; 0 means 1
	Total       int64  `json:"total"`                 // instants of the range
	By          string `json:"by,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// Parallel is MaxParallel with its default.
func (s *BackfillSpec) Parallel() int { return max(s.MaxParallel, 1) }

// Bounds of a backfill.
const (
	MaxBackfill         = 100_000 // instants
	MaxBackfillParallel = 100
)

// BackfillCancel asks for the end of a backfill. The JSON names are the stored form.
type BackfillCancel struct {
	At      Instant `json:"at"`
	Running bool    `json:"running,omitempty"` // its executions are cancelled too; else they run to their end
	By      string  `json:"by,omitempty"`
	Reason  Reason  `json:"why,omitempty"` // job_deleted; else a person asked
	Note    string  `json:"reason,omitempty"`
}

// BackfillState is where a backfill stands.
type BackfillState string

// The states of backfills.
const (
	BackfillPending    BackfillState = "pending" // its owner has not taken it in yet
	BackfillRunning    BackfillState = "running"
	BackfillCancelling BackfillState = "cancelling" // starts nothing more, and waits for what runs
	BackfillDone       BackfillState = "done"       // every instant was looked at, and what it started has ended
	BackfillCancelled  BackfillState = "cancelled"
)

// Ended tells whether s is an end.
func (s BackfillState) Ended() bool { return s == BackfillDone || s == BackfillCancelled }

// BackfillProgress is how far a backfill has come. The JSON names are the stored form.
type BackfillProgress struct {
	ID        ExecutionID   `json:"-"`
	State     BackfillState `json:"-"`
	Cursor    Instant       `json:"cursor,omitempty"` // of the newest instant that was decided
	Open      []Instant     `json:"open,omitempty"`   // whose executions have not ended, in the order of their start
	Succeeded int64         `json:"succeeded,omitempty"`
	Failed    int64         `json:"failed,omitempty"`  // ended otherwise, or could not be started
	Skipped   int64         `json:"skipped,omitempty"` // had succeeded before
	Started   Instant       `json:"started,omitempty"`
	Ended     Instant       `json:"ended,omitempty"`
	Reason    Reason        `json:"reason,omitempty"`
	Pool      string        `json:"pool,omitempty"` // of the job when the backfill followed it to another partition; else that of its revision
}

// Done is how many instants need nothing more.
func (p *BackfillProgress) Done() int64 { return p.Succeeded + p.Failed + p.Skipped }
