package control

import (
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// previewed is how many instants to come a write shows.
const previewed = 5

// Fire is a planned instant to come.
type Fire struct {
	At       time.Time // in its time zone
	Zone     string
	Schedule string // several are joined by commas: due together, they make one execution
	Note     string
}

// Fires tells the next n planned instants of a job behind now, as far as its runs last; none while it is disabled, or
// paused without an end. cursors are as far as they are known.
func Fires(d *job.Definition, cursors []job.Cursor, now time.Time, n int) (out []Fire) {
	after := job.InstantOf(now)
	if p := d.Pause; p.Covers(after) {
		after = p.Until.Add(-time.Millisecond)
	}
	if silence(d, cursors, now) != "" {
		return nil
	}
	for a := aheadOf(d, cursors, after+1, after+1); len(out) < n; {
		at, ok := a.first()
		if !ok {
			break
		}
		out = append(out, a.take(at).Fire)
	}
	return out
}

// silence says why none of a job's schedules fires; "": one may.
func silence(d *job.Definition, cursors []job.Cursor, now time.Time) string {
	lines := linesOf(d)
	switch p := d.Pause; {
	case len(lines) == 0:
		return ""
	case d.Spec.Disabled:
		return "the job is disabled"
	case p.Covers(job.InstantOf(now)) && p.Until == 0:
		return "paused" + byPause(p) + ", " + untilText(p)
	}
	if why := autoPaused(d, cursors); why != "" {
		return why
	}
	left := slices.DeleteFunc(lines, func(l line) bool { return l.left(cursorOf(cursors, l.id)) == 0 })
	if len(left) == 0 {
		return "its schedules have made all their runs (maxRuns)"
	}
	return nothingAhead(left, now)
}

// nothingAhead says why no schedule has an instant to come; "": one has.
func nothingAhead(lines []line, now time.Time) string {
	has := func(s schedule.Schedule) bool {
		_, is := s.Next(now)
		return is
	}
	why := "all of them have passed"
	for _, l := range lines {
		if l.delayed() || has(l.s) {
			return ""
		}
		if by := schedule.AllClosed(l.s, has); by != "" {
			why = by
		}
	}
	return why
}
