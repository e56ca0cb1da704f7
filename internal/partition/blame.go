package partition

import (
	"errors"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

const (
	blameAfter = 3                // faults, before what they name is left out
	blameFor   = 10 * time.Minute // an engine that lived so long ends the count
)

// blame looks at what ended a tenure. A fault that no event brought (a timer, planning, what was loaded, a
// row that is not as this partition's batch says) comes again after every load. When the same row or
// schedule has caused it three times, the next engines do without it (R3): one bad row must not stop a
// partition.
func (s *seat) blame(t *tenure, end ending) {
	if s.n.mono()-t.born > blameFor {
		clear(s.faults)
	}
	if end.why != endPoisoned && end.why != endBroken || end.err == nil {
		return
	}
	about, key := end.about, end.about.String()
	if key == "" {
		if job.KindOf(end.err) != job.KindRejected && !guarded(end.err) {
			return // the database's trouble, it is told where it arises
		}
		key = end.err.Error()
	}
	s.faults[key]++
	switch n := s.faults[key]; {
	case n != blameAfter:
	case about == engine.About{}:
		s.log.Error("the same fault again and again, and nothing names what to leave out; trying on", "times", n, "err", end.err)
	default:
		s.leftOut = append(s.leftOut, about)
		s.log.Error("left out until this server is started again: it made the engine, or its commit, fail again and again; the partition goes on without it",
			"about", key, "times", n, "err", end.err)
	}
}

// guarded tells that a commit was refused because a row or an entry was not as its batch says.
func guarded(err error) bool {
	e, ok := errors.AsType[*job.Error](err)
	return ok && e.Kind == job.KindFenced && slices.Contains([]string{"state_guard", "entry_guard", "planner_guard"}, e.Code)
}

// refusedRow names the execution that a commit was refused for, by a guard or for its data; zero when the refusal names
// none.
func refusedRow(err error) (about engine.About) {
	if e, ok := errors.AsType[*job.Error](err); ok && (guarded(err) || e.Kind == job.KindRejected) {
		if id, bad := job.ParseExecutionID(e.Field); bad == nil {
			about.Execution = id
		}
	}
	return about
}

// panicked names what the core was at when it panicked, if it can tell.
func (t *tenure) panicked() engine.About {
	if c, ok := t.core.(interface{ About() engine.About }); ok {
		return c.About()
	}
	return engine.About{}
}

// alarms logs what a step set aside by itself.
func (t *tenure) alarms(res engine.Result) {
	for _, facts := range [][]engine.Fact{res.Batch.Facts, res.Trace} {
		for _, f := range facts {
			switch {
			case f.Kind == engine.FactSetAside && f.Reason == job.WaitOverlap:
				t.log.Info("a job's change waits", "what", f.Note, "job", f.Job, "execution", f.Execution)
			case f.Kind == engine.FactSetAside && f.Reason == job.ReasonNotScheduled: // no fault: the caller is told
				t.log.Info("a request came too late, nothing changes", "code", f.Reason, "what", f.Note, "execution", f.Execution)
			case f.Kind == engine.FactSetAside && f.Reason != job.ReasonBadEntry: // those are logged where they are convicted
				t.log.Error("set aside", "what", f.Note, "job", f.Job, "execution", f.Execution)
			case f.Kind == engine.FactWorkerClock:
				t.log.Warn("a worker's wall clock is wrong by more than 5 s; leases do not depend on it, but what its handlers do with the time may", "worker", f.Worker, "session", f.Session, "ahead", f.Note)
			}
		}
	}
}
