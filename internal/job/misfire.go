package job

import (
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// Misfire says what becomes of planned instants that nobody planned in time: no server ran, or the clock jumped.
type Misfire struct {
	Policy MisfirePolicy `json:"policy,omitempty"` // "" means once
	Grace  time.Duration `json:"grace,omitempty"`  // what is not later than this is on time; 0 means the server's own, 1 min
	Window time.Duration `json:"window,omitempty"` // what is later than this is recorded, whatever the policy; 0 means 24 h
	Limit  int           `json:"limit,omitempty"`  // 1..MaxCatchUp, of all; 0 means 100
}

// MisfirePolicy is what a job does about the instants that are later than the grace and inside of the window.
type MisfirePolicy string

// The policies.
const (
	MisfireSkip MisfirePolicy = "skip" // none of them runs
	MisfireOnce MisfirePolicy = "once" // the newest runs
	MisfireAll  MisfirePolicy = "all"  // the newest Limit of them run, in planned order
)

// MaxCatchUp bounds Misfire.Limit.
const MaxCatchUp = 1000

// CatchesUp is how many of the instants that were missed run: the newest ones.
func (m *Misfire) CatchesUp() int {
	switch {
	case m.Policy == MisfireSkip:
		return 0
	case m.Policy != MisfireAll:
		return 1
	case m.Limit == 0:
		return 100
	}
	return m.Limit
}

// WithinWindow is Window with its default.
func (m *Misfire) WithinWindow() time.Duration {
	if m.Window == 0 {
		return 24 * time.Hour
	}
	return m.Window
}

// Why is the reason of a decision about the instants that do not run.
func (m *Misfire) Why() (DecisionKind, Reason) {
	switch m.Policy {
	case MisfireSkip:
		return DecisionSkipped, ReasonMisfireSkip
	case MisfireAll:
		return DecisionMissed, ReasonMisfireLimit
	}
	return DecisionMissed, ReasonMissedDown
}

func (m *Misfire) validate() Faults {
	all := badDurations(bounded{"spec.misfire.grace", m.Grace}, bounded{"spec.misfire.window", m.Window})
	if len(all) == 0 && m.Window != 0 && m.Window < m.Grace {
		all = append(all, invalid("out_of_range", "spec.misfire.window", "%s is shorter than the grace of %s", schedule.Length(m.Window), schedule.Length(m.Grace)).
			WithHint("the window counts from now, like the grace: nothing between the two would ever be caught up"))
	}
	known := true
	switch m.Policy {
	case "", MisfireSkip, MisfireOnce, MisfireAll:
	default:
		known = false
		all = append(all, invalid("bad_misfire", "spec.misfire.policy", "%.64q is none of skip, once and all", m.Policy).WithHint("write one of skip, once, all"))
	}
	if m.Limit < 0 || m.Limit > MaxCatchUp {
		all = append(all, invalid("out_of_range", "spec.misfire.limit", "%d is out of range 1-%d", m.Limit, MaxCatchUp).WithHint("write a number from 1 to %d, or leave it out for the default", MaxCatchUp))
	} else if known && m.Limit != 0 && m.Policy != MisfireAll {
		all = append(all, invalid("bad_misfire", "spec.misfire.limit", "a limit is of the policy all").
			WithHint("write policy: all, or leave the limit out"))
	}
	return all
}

// AutoPause pauses the schedules of a job whose executions fail one after the other.
type AutoPause struct {
	AfterFailures int `json:"afterFailures,omitempty"` // in a row; 0: never
}

// MaxFailures bounds AutoPause.AfterFailures.
const MaxFailures = 1000

// Paused tells whether so many failures in a row pause the schedules.
func (a AutoPause) Paused(failures int) bool {
	return a.AfterFailures > 0 && failures >= a.AfterFailures
}

// Failed tells whether an execution that ended in s counts as a failure; counts is false for one that a person or a policy
// cancelled: it says nothing about the job.
func (AutoPause) Failed(s ExecutionState) (failed, counts bool) {
	return s != ExecutionSucceeded, s != ExecutionCancelled
}

func (a AutoPause) validate() Faults {
	if a.AfterFailures < 0 || a.AfterFailures > MaxFailures {
		return Faults{invalid("out_of_range", "spec.autoPause.afterFailures", "%d is out of range 1-%d", a.AfterFailures, MaxFailures).WithHint("write a number from 1 to %d, or leave autoPause out", MaxFailures)}
	}
	return nil
}

// MaxRuns bounds Schedule.MaxRuns.
const MaxRuns = 1_000_000_000

// UsedUp tells whether a schedule that has made so many executions makes no more.
func (s *Schedule) UsedUp(runs int64) bool { return s.MaxRuns > 0 && runs >= s.MaxRuns }
