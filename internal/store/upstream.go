package store

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// UpstreamReads is what an adapter reads, in one snapshot, to say what a job runs after.
type UpstreamReads interface {
	// Newest is the newest revision of a job, its last one when it was deleted, the partition that plans it, and that of its pool;
	// nil when it is not known.
	Newest(uid job.UID) (d *job.Definition, planner, place int, err error)
	// UIDOf is the uid of a job that is there; zero when it is not.
	UIDOf(namespace, name string) (job.UID, error)
	// Find looks into live rows, then into history, of whatever partition; nil when it is in neither.
	Find(id job.ExecutionID) (*engine.Row, error)
	// NewestBetween is the execution of a job with the newest planned instant among the NewestOf newest ids from first and below last,
	// of those that have ended or of all; nil when there is none.
	NewestBetween(d *job.Definition, parent job.UID, name string, first, last job.ExecutionID, ended bool) (*engine.Row, error)
	// Decided tells whether a decision says what became of an instant of a job that has no schedule.
	Decided(child job.UID, at job.Instant) (bool, error)
	// Fill adds shards and definition to what Find found.
	Fill(row *engine.Row) error
}

// ReadUpstream says what a job runs after.
func ReadUpstream(r UpstreamReads, ask engine.UpstreamAsk) (u engine.Upstream, err error) {
	u.UpstreamAsk = ask
	if u.Definition, u.Planner, u.Place, err = r.Newest(ask.Child); err != nil || u.Definition == nil {
		return u, err
	}
	id := ask.Waiting
	if id.IsZero() {
		id = ask.Ended
	}
	about, err := r.Find(id)
	if err != nil || about == nil {
		return u, err
	}
	if err := readParents(r, &u, &about.Execution); err != nil {
		return u, err
	}
	row := about
	if u.Target, u.At = ask.Waiting, about.Execution.PlannedAt; ask.Waiting.IsZero() {
		if u.Target, u.At = engine.TargetOf(u.Definition, &about.Execution, u.Parents); u.Target.IsZero() {
			return u, nil
		}
		if row, err = r.Find(u.Target); err != nil {
			return u, err
		}
	}
	if row == nil {
		u.Decided, err = r.Decided(ask.Child, u.At)
		return u, err
	}
	u.Row = row
	if x := &row.Execution; x.Reason == job.WaitUpstream || x.Reason == job.ReasonUpstreamFailed {
		err = r.Fill(row)
	} else {
		row.Shards = nil
	}
	return u, err
}

// ReadUpstreams says it for many, as many as a page holds, at least for one.
func ReadUpstreams(r UpstreamReads, asks []engine.UpstreamAsk) (asked []engine.UpstreamAsk, all []engine.Upstream, err error) {
	size := 0
	for _, ask := range asks {
		u, err := ReadUpstream(r, ask)
		if err != nil {
			return nil, nil, err
		}
		asked, all = append(asked, ask), append(all, u)
		if u.Definition != nil {
			size += SizeOfDefinition(u.Definition)
		}
		if u.Row != nil {
			size += SizeOf(&u.Row.Execution)
			for i := range u.Row.Shards {
				size += SizeOfShard(&u.Row.Shards[i])
			}
		}
		if size > PageBytes {
			break
		}
	}
	return asked, all, nil
}

// NewestOf is how many executions are looked at for the newest one: ids keep the first planned instant, so that one which was
// rescheduled to an earlier one has a newer id than those that came after it.
const NewestOf = 16

// Later tells whether a has the newer planned instant, or at one instant the newer id.
func Later(a, b *engine.Row) bool {
	x, y := &a.Execution, &b.Execution
	return cmp.Or(cmp.Compare(x.PlannedAt, y.PlannedAt), bytes.Compare(x.ID[:], y.ID[:])) > 0
}

// ReadParents reads what a commit keeps of engine.Matched; text that is none is nothing.
func ReadParents(text []byte) (all []job.Parent) {
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// readParents finds the executions of its parents that count for one that waits, or for the end of one of them.
func readParents(r UpstreamReads, u *engine.Upstream, about *job.Execution) error {
	d := u.Definition
	u.Parents = make([]job.Parent, len(d.Spec.After))
	for i := range d.Spec.After {
		a := &d.Spec.After[i]
		u.Parents[i].Job = a.Job
		uid, err := r.UIDOf(d.Namespace, a.Job)
		if err != nil {
			return err
		}
		if uid.IsZero() {
			continue
		}
		row, err := parentExecution(r, d, a, uid, about, u.Waiting.IsZero())
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		if e := &row.Execution; e.JobUID == uid {
			u.Parents[i] = job.Parent{Job: a.Job, Execution: e.ID, State: e.State, Round: e.Round, PlannedAt: e.PlannedAt, EndedAt: e.EndedAt}
		}
	}
	return nil
}

func parentExecution(r UpstreamReads, d *job.Definition, a *job.After, uid job.UID, about *job.Execution, ended bool) (*engine.Row, error) {
	switch {
	case a.Matching() == job.MatchLatest:
		row, err := r.NewestBetween(d, uid, a.Job, job.ExecutionID{}, lastID, true)
		if own := (&engine.Row{Execution: *about}); err == nil && ended && about.JobUID == uid && row != nil && Later(own, row) {
			row = own
		}
		return row, err
	case a.Matching() == job.MatchDay:
		first, last := a.Day(about.PlannedAt)
		return r.NewestBetween(d, uid, a.Job, firstIDOf(first), firstIDOf(last+1), false)
	case ended && about.JobUID == uid:
		return &engine.Row{Execution: *about}, nil
	default:
		return r.Find(job.PlannedID(uid, about.PlannedAt))
	}
}

var lastID = job.ExecutionID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// firstIDOf is below every id of an instant, and above those of the instants before.
func firstIDOf(at job.Instant) (id job.ExecutionID) {
	stamped := job.RequestedID(at, [10]byte{})
	copy(id[:6], stamped[:6])
	return id
}
