package job

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// Bounds of what a job waits for.
const (
	MaxAfter      = 32
	DefaultWithin = 24 * time.Hour
)

// After is another job of the namespace whose execution has to have ended before one of this job runs.
type After struct {
	Job      string        `json:"job"`
	On       On            `json:"on,omitempty"`       // "": succeeded
	Match    Match         `json:"match,omitempty"`    // "": planned
	TimeZone string        `json:"timeZone,omitempty"` // of Match day; "": UTC
	Within   time.Duration `json:"within,omitempty"`   // from the beginning of the wait; 0: DefaultWithin
}

// On says which ends of a parent count.
type On string

// The ends of a parent.
const (
	OnSucceeded On = "succeeded"
	OnFailed    On = "failed" // failed, timed out or succeeded in part
	OnFinished  On = "finished"
)

// Match says which execution of a parent is meant.
type Match string

// The ways to find a parent's execution.
const (
	MatchPlanned Match = "planned" // of the same planned instant
	MatchLatest  Match = "latest"  // of the newest planned instant among those that have ended
	MatchDay     Match = "day"     // of the newest planned instant of the same date in TimeZone
)

// Holds tells whether a parent's execution that ended in state s lets the child run.
func (a *After) Holds(s ExecutionState) bool {
	switch a.On {
	case OnFinished:
		return s.Ended()
	case OnFailed:
		return s == ExecutionFailed || s == ExecutionTimedOut || s == ExecutionPartiallySucceeded
	default:
		return s == ExecutionSucceeded
	}
}

// Matching is Match with its default.
func (a *After) Matching() Match {
	if a.Match == "" {
		return MatchPlanned
	}
	return a.Match
}

// Deadline is when a wait that began at the given instant is over.
func (a *After) Deadline(from Instant) Instant {
	if a.Within == 0 {
		return from.Add(DefaultWithin)
	}
	return from.Add(a.Within)
}

// Day is the first and the last instant of the date that at falls on in TimeZone. A date that the zone's clock shows twice, or
// not at all, is as long as the clock says.
func (a *After) Day(at Instant) (first, last Instant) {
	zone, err := time.LoadLocation(a.TimeZone)
	if err != nil {
		zone = time.UTC // it was checked when it was written
	}
	y, m, d := at.Time().In(zone).Date()
	return InstantOf(time.Date(y, m, d, 0, 0, 0, 0, zone)), InstantOf(time.Date(y, m, d+1, 0, 0, 0, 0, zone)) - 1
}

// Parent is an execution of a parent that a child's wait is judged by.
type Parent struct {
	Job       string         `json:"job"`
	Execution ExecutionID    `json:"execution"`
	State     ExecutionState `json:"state"`
	Round     int            `json:"round,omitempty"`
	PlannedAt Instant        `json:"plannedAt"`
	EndedAt   Instant        `json:"endedAt,omitempty"`
}

// DerivedID is the identity of the execution of child that one execution of its parent leads to when that was of no planned
// instant, for each alike.
func DerivedID(child UID, parent ExecutionID) ExecutionID {
	return SetID(child, parent.PlannedAt(), []ExecutionID{parent})
}

// SetID is the identity of the execution of child for a set of executions of its parents, in any order.
func SetID(child UID, at Instant, parents []ExecutionID) ExecutionID {
	sorted := slices.SortedFunc(slices.Values(parents), func(a, b ExecutionID) int { return bytes.Compare(a[:], b[:]) })
	in := slices.Concat([]byte("after"), child[:])
	for _, p := range sorted {
		in = append(in, p[:]...)
	}
	sum := sha256.Sum256(in)
	return stamp(at, [10]byte(sum[:10]))
}

// OfInstant tells whether the execution is the one of its planned instant: what else leads to that instant leads to it.
func (e *Execution) OfInstant() bool {
	switch e.Trigger {
	case "", TriggerRequest:
		return false
	case TriggerAfter:
		return e.ID == PlannedID(e.JobUID, e.PlannedAt)
	default:
		return true
	}
}

// OwnInstants tells whether the job waits at instants of its own; else the ends of its parents make its executions.
func (s *Spec) OwnInstants() bool { return len(s.Schedules) > 0 }

// Depends tells whether the ends of executions make instants of the job: of its parents, or its own.
func (s *Spec) Depends() bool { return len(s.After) > 0 || s.CountsFromEnd() }

// CountsFromEnd tells whether a schedule of the job counts from the end of its last execution.
func (s *Spec) CountsFromEnd() bool {
	return slices.ContainsFunc(s.Schedules, func(one Schedule) bool { return one.Delay != 0 })
}

func parentField(i int) string { return fmt.Sprintf("spec.after[%d]", i) }

// validateAfter checks what can be told without the other jobs.
func (s *Spec) validateAfter() (all Faults) {
	if len(s.After) > MaxAfter {
		return Faults{invalid("too_many_parents", "spec.after", "a job waits for at most %d others, here are %d", MaxAfter, len(s.After)).
			WithHint("put a job between that waits for some of them")}
	}
	seen := map[string]bool{}
	for i := range s.After {
		a := &s.After[i]
		field := parentField(i)
		bad := a.validate(field)
		all = append(all, bad...)
		if seen[a.Job] && ValidName(a.Job) {
			all = append(all, invalid("doubled_parent", field+".job", "the job %q is there twice", a.Job).WithHint("keep one of them"))
		}
		seen[a.Job] = true
		if s.OwnInstants() || slices.ContainsFunc(bad, func(e *Error) bool { return e.Field == field+".match" }) {
			continue
		}
		if a.Matching() == MatchDay {
			all = append(all, invalid("bad_match", field+".match", "the same day as what? this job has no schedule").
				WithHint("give the job a schedule: it then waits at its own instants; or match planned"))
		} else if a.Matching() != s.After[0].Matching() {
			all = append(all, invalid("bad_match", field+".match", "a job without a schedule runs once per planned instant or once per set of latest executions, not both").
				WithHint("give all parents the same match, or the job a schedule"))
		}
	}
	return all
}

func (a *After) validate(field string) (all Faults) {
	if !ValidName(a.Job) {
		all = append(all, invalid("bad_name", field+".job", "%.64q is no name of a job", a.Job).
			WithHint("name another job of the same namespace"))
	}
	switch a.On {
	case "", OnSucceeded, OnFailed, OnFinished:
	default:
		all = append(all, invalid("bad_on", field+".on", "%.64q is none of succeeded, failed, finished", a.On).WithHint("write one of succeeded, failed, finished"))
	}
	switch a.Match {
	case "", MatchPlanned, MatchLatest, MatchDay:
	default:
		all = append(all, invalid("bad_match", field+".match", "%.64q is none of planned, latest, day", a.Match).WithHint("write one of planned, latest, day"))
	}
	if a.TimeZone != "" && a.Match != MatchDay {
		all = append(all, invalid("bad_time_zone", field+".timeZone", "a time zone says whose date is meant: it goes with match: day").WithHint("leave timeZone out, or write match: day"))
	} else if _, err := time.LoadLocation(a.TimeZone); err != nil || a.TimeZone == "Local" {
		all = append(all, invalid("bad_time_zone", field+".timeZone", "%.64q is no time zone", a.TimeZone).WithHint("use an IANA name such as Asia/Shanghai"))
	}
	bad := badDurations(bounded{field + ".within", a.Within})
	if all = append(all, bad...); len(bad) == 0 && a.Within != 0 && a.Within < time.Second {
		all = append(all, invalid("out_of_range", field+".within", "%s is shorter than a second", schedule.Length(a.Within)).WithHint("at least 1s; leave it out for 24h"))
	}
	return all
}
