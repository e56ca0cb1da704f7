package partition

import (
	"log/slog"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// stepSeen is the smallest step of a wall clock that is recorded.
const stepSeen = time.Second

// wall reads the wall clock for one engine: never back within its life (R9). While a clock that was set
// back catches up, planned instants wait; nothing fires twice.
type wall struct {
	planned stepper  // by which is planned
	own     *stepper // this server's, when the database has one of its own
	log     *slog.Logger

	shown job.Instant // newest that was given out
	steps []engine.Event
}

// stepper notices when a clock is set.
type stepper struct {
	name string
	read func() time.Time

	at    job.Instant // newest reading
	mono  time.Duration
	begun bool
}

// newWall reads the clocks of a node.
func newWall(n *Node, log *slog.Logger) wall {
	if n.offset.keep == nil {
		return wall{planned: stepper{name: engine.ClockOfServer, read: n.cfg.Wall}, log: log}
	}
	return wall{planned: stepper{name: engine.ClockOfDatabase, read: n.Now}, own: &stepper{name: engine.ClockOfServer, read: n.cfg.Wall}, log: log}
}

// now gives the wall clock at the monotonic instant mono.
func (w *wall) now(mono time.Duration) job.Instant {
	switch step := w.planned.step(mono); {
	case step < -stepSeen:
		w.log.Warn("the wall clock was set back; planned instants wait until it has caught up, leases go on", "clock", w.planned.name, "by", -step)
		w.note(w.planned.name, step)
	case step > stepSeen:
		w.log.Warn("the wall clock was set forward; planned instants in between are treated as late, leases go on", "clock", w.planned.name, "by", step)
		w.note(w.planned.name, step)
	}
	if w.own != nil {
		if step := w.own.step(mono); step.Abs() > stepSeen {
			w.log.Warn("this server's wall clock was set; nothing depends on it, for jobs are planned by the database's", "by", step)
			w.note(w.own.name, step)
		}
	}
	w.shown = max(w.shown, w.planned.at)
	return w.shown
}

func (w *wall) note(clock string, by time.Duration) {
	w.steps = append(w.steps, engine.ClockStepped{Clock: clock, By: by})
}

// take gives the steps that were seen since it was called last.
func (w *wall) take() []engine.Event {
	steps := w.steps
	w.steps = nil
	return steps
}

// step reads the clock and tells by how much it moved otherwise than time did.
func (s *stepper) step(mono time.Duration) (by time.Duration) {
	at := job.InstantOf(s.read())
	if s.begun {
		by = at.Sub(s.at) - (mono - s.mono)
	}
	s.at, s.mono, s.begun = at, mono, true
	return by
}
