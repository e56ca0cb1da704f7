package engine

import (
	"fmt"
	"strings"

	"github.com/taktsched/takt/internal/job"
)

// UpstreamAsk names what is to be judged of a job that runs after others: one of its executions that waits, or what the end of
// a parent's execution leads to.
type UpstreamAsk struct {
	Child   job.UID
	Waiting job.ExecutionID // of Child; zero: see Ended
	Ended   job.ExecutionID // of a parent
}

// Upstream is what a job runs after, as one snapshot shows it.
type Upstream struct {
	UpstreamAsk
	Definition *job.Definition // newest revision of Child, its last one when it was deleted; nil when that is not known
	Planner    int             // of Child
	Place      int             // partition of the pool in Definition
	Target     job.ExecutionID // execution of Child that is meant; zero: none
	At         job.Instant     // its planned instant
	Row        *Row            // Target, live or ended, wherever it is; with shards and definition when it waits or failed by its parents
	Decided    bool            // there is none, for a decision says what became of At
	Parents    []job.Parent    // executions of Definition's After, in its order; without an id where there is none
}

// TargetOf is the execution of a job that the end of one of its parents leads to, given what the others did; zero: none.
func TargetOf(def *job.Definition, ended *job.Execution, parents []job.Parent) (id job.ExecutionID, at job.Instant) {
	of := parentOf(def, ended.Job)
	switch own := def.Spec.OwnInstants(); {
	case of == nil || own && of.Matching() != job.MatchPlanned:
		return id, 0 // what waits is judged by itself
	case of.Matching() == job.MatchLatest:
		return setOf(def, ended, parents)
	case ended.OfInstant():
		return job.PlannedID(def.UID, ended.PlannedAt), ended.PlannedAt
	case len(def.Spec.After) == 1 && !own:
		return job.DerivedID(def.UID, ended.ID), ended.PlannedAt
	default:
		return id, 0
	}
}

// setOf names the set of the newest executions of all parents, once all are there and that which ended is of them.
func setOf(def *job.Definition, ended *job.Execution, parents []job.Parent) (id job.ExecutionID, at job.Instant) {
	ids, among := make([]job.ExecutionID, len(parents)), false
	for i, p := range parents {
		if p.Execution.IsZero() || !def.Spec.After[i].Holds(p.State) {
			return id, 0
		}
		ids[i], at = p.Execution, max(at, p.PlannedAt)
		among = among || p.Execution == ended.ID
	}
	if !among {
		return id, 0
	}
	return job.SetID(def.UID, at, ids), at
}

func parentOf(def *job.Definition, name string) *job.After {
	for i := range def.Spec.After {
		if def.Spec.After[i].Job == name {
			return &def.Spec.After[i]
		}
	}
	return nil
}

// Fate is what becomes of an execution that runs after others.
type Fate string

// The fates.
const (
	FateRun   Fate = "run"
	FateWait  Fate = "wait"
	FateNever Fate = "never"
	FateNone  Fate = "none" // never, and nothing of it need be seen: it is for failures, and there was none
)

// FateOf judges a wait that began at the given instant by what the parents did.
func FateOf(after []job.After, parents []job.Parent, began, now job.Instant) (Fate, job.Reason) {
	fate, why := FateRun, job.ReasonNone
	quiet := true // who did not do as wanted has succeeded
	failed, open, late := false, false, false
	for i := range after {
		a, p := &after[i], parents[i]
		over := !p.Execution.IsZero() && p.State.Ended()
		if over && a.Holds(p.State) {
			continue
		}
		// Its planned instant has one execution; another of the same day, or a newer one, may come yet.
		final := over && a.Matching() == job.MatchPlanned
		failed = failed || over
		open = open || !final
		late = late || !final && now >= a.Deadline(began)
		quiet = quiet && final && p.State == job.ExecutionSucceeded
		if final {
			fate = FateNever
		} else if fate == FateRun {
			fate = FateWait
		}
	}
	switch {
	case fate == FateNever && quiet:
		return FateNone, job.ReasonUpstreamFailed
	case fate == FateNever, late && failed:
		return FateNever, job.ReasonUpstreamFailed
	case late && open:
		return FateNever, job.ReasonUpstreamMissing
	default:
		return fate, why
	}
}

// deadlineOf is when a wait is to be looked at whatever happens: the first deadline of all.
func deadlineOf(after []job.After, began job.Instant) (at job.Instant) {
	for i := range after {
		if d := after[i].Deadline(began); at == 0 || d < at {
			at = d
		}
	}
	return at
}

// theParents says in words what an execution was judged by.
func theParents(all []job.Parent) string {
	var b strings.Builder
	for i, p := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		if p.Execution.IsZero() {
			fmt.Fprintf(&b, "%s: none", p.Job)
			continue
		}
		fmt.Fprintf(&b, "%s: %s %s", p.Job, p.Execution, p.State)
	}
	return b.String()
}

// parentBytes is what the name of one parent takes in an assignment, at most.
const parentBytes = 256

// runsAfter tells whether executions of parents may have decided this one. A request waits for none.
func (x *execution) runsAfter() bool {
	return len(x.def.Spec.After) > 0 && x.row.Trigger != job.TriggerRequest
}
