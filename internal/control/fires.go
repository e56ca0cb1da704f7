package control

import (
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

// Fires tells the next n planned instants of a job behind now; none while it is disabled, or paused without
// an end.
func Fires(d *job.Definition, now time.Time, n int) []Fire {
	after := job.InstantOf(now)
	if p := d.Pause; p.Covers(after) {
		if p.Until == 0 {
			return nil
		}
		after = p.Until.Add(-time.Millisecond)
	}
	if d.Spec.Disabled {
		return nil
	}
	type line struct {
		id   string
		s    schedule.Schedule
		next time.Time
	}
	var lines []line
	for _, x := range d.Spec.Schedules {
		s, err := d.Parse(x.Spec)
		if err != nil {
			continue // it was checked when it was written
		}
		if next, ok := s.Next(after.Time()); ok {
			lines = append(lines, line{x.ID, s, next})
		}
	}
	var out []Fire
	for len(out) < n && len(lines) > 0 {
		at := lines[0].next
		for _, l := range lines {
			if l.next.Before(at) {
				at = l.next
			}
		}
		var f Fire
		keep := lines[:0]
		for _, l := range lines {
			if l.next.Equal(at) {
				if zone := schedule.Zone(l.s); f.Schedule == "" {
					f = Fire{At: at.In(zone), Zone: zone.String(), Schedule: l.id, Note: schedule.Note(l.s, at)}
				} else {
					f.Schedule += "," + l.id
				}
				next, ok := l.s.Next(at)
				if !ok {
					continue
				}
				l.next = next
			}
			keep = append(keep, l)
		}
		lines, out = keep, append(out, f)
	}
	return out
}
