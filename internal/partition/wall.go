package partition

import (
	"log/slog"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// stepSeen is the smallest step of the wall clock that is worth a line in the log.
const stepSeen = time.Second

// wall reads the wall clock for one engine: never back within its life (R9). While a clock that was set
// back catches up, planned instants wait; nothing fires twice.
type wall struct {
	read func() time.Time
	log  *slog.Logger

	shown job.Instant // newest that was given out
	at    job.Instant // newest reading
	mono  time.Duration
	begun bool
}

// now gives the wall clock at the monotonic instant mono.
func (w *wall) now(mono time.Duration) job.Instant {
	at := job.InstantOf(w.read())
	if w.begun {
		step := at.Sub(w.at) - (mono - w.mono)
		switch {
		case step < -stepSeen:
			w.log.Warn("the wall clock was set back; planned instants wait until it has caught up, leases go on", "by", -step)
		case step > stepSeen:
			w.log.Warn("the wall clock was set forward; planned instants in between are treated as late, leases go on", "by", step)
		}
	}
	w.at, w.mono, w.begun = at, mono, true
	w.shown = max(w.shown, at)
	return w.shown
}
