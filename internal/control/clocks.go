package control

import (
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// readings are the ways to write an instant as a reading of the clocks of a zone.
var readings = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// readingOf is the reading that text is, as if the clocks stood in UTC; false: it is none.
func readingOf(text string) (reading time.Time, is bool) {
	for _, layout := range readings {
		if reading, err := time.Parse(layout, text); err == nil {
			return reading, true
		}
	}
	return time.Time{}, false
}

// readClocks sets At to what a reading means that a step of the clocks skipped or shows twice. done: nothing else is to be found out.
func (ev *Evidence) readClocks(lines []line, reading time.Time) (done bool) {
	zone := zoneOf(ev.Newest)
	all, step := schedule.Readings(zone, reading)
	switch {
	case step != nil:
		ev.skippedReading(lines, zone, reading, step)
		return true
	case len(all) > 1:
		ev.repeatedReading(lines, zone, all)
	}
	return false
}

// skippedReading finds what the schedules make of a reading that no clock showed.
func (ev *Evidence) skippedReading(lines []line, zone *time.Location, reading time.Time, step *schedule.Step) {
	ev.At, ev.Dropped = job.InstantOf(step.At), true
	ev.Reading = fmt.Sprintf("%s does not exist on %s in %s, the clock goes from %s to %s", step.Reading, reading.Format(time.DateOnly), zone, step.From, step.To)
	for _, l := range lines {
		if schedule.Zone(l.s).String() != zone.String() {
			continue
		}
		at, named := schedule.Instead(l.s, reading)
		switch {
		case !named:
		case at.IsZero():
			ev.Reading += fmt.Sprintf("; schedule %s drops it", l.id)
		case ev.Dropped:
			ev.At, ev.Dropped = meant([]line{l}, job.InstantOf(at)), false
			ev.Reading += fmt.Sprintf("; schedule %s has %s in its place", l.id, at.In(zone).Format(time.RFC3339))
		}
	}
}

// repeatedReading finds the one of two instants that a schedule has.
func (ev *Evidence) repeatedReading(lines []line, zone *time.Location, all []time.Time) {
	chosen := -1
	for i, at := range all {
		if _, is := having(lines, meant(lines, job.InstantOf(at))); is {
			chosen = i
			break
		}
	}
	if ev.Reading = fmt.Sprintf("the clocks of %s show this reading twice: ", zone); chosen < 0 {
		chosen = 0
	}
	ev.At = job.InstantOf(all[chosen])
	ev.Reading += "this is " + all[chosen].In(zone).Format(time.RFC3339)
	for i, at := range all {
		if i == chosen {
			continue
		}
		has := "which no schedule has"
		if names, is := having(lines, meant(lines, job.InstantOf(at))); is {
			has = "which schedule " + names[0] + " has, too"
		}
		ev.Reading += fmt.Sprintf(", the other is %s, %s", at.In(zone).Format(time.RFC3339), has)
	}
}

// droppedHere names the schedules that a step of the clock at the instant keeps from firing.
func (x *Explanation) droppedHere(lines []line) {
	for _, l := range lines {
		if why := schedule.Dropped(l.s, x.At.Time()); why != "" {
			x.Text += fmt.Sprintf("; of schedule %s %s", l.id, why)
		}
	}
}
