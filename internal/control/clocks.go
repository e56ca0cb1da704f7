package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// zoneOf is the time zone in which people think of a job.
func zoneOf(d *job.Definition) *time.Location {
	for _, l := range append(linesOf(d), bareLines(d)...) { // the calendars of a deleted job may be gone
		return schedule.Zone(l.s)
	}
	return time.UTC
}

// instantOf reads an instant; a text without an offset is read on the clocks of the zone, or of the one that stands behind it in
// brackets. A reading that a step of them skipped is the first instant behind it, of one that they show twice the first is meant.
func instantOf(text string, zone *time.Location) (job.Instant, error) {
	return readInstant(text, zone, false)
}

// lastInstantOf is instantOf for the end of a range: of a reading that comes twice the last is meant.
func lastInstantOf(text string, zone *time.Location) (job.Instant, error) {
	return readInstant(text, zone, true)
}

func readInstant(text string, zone *time.Location, last bool) (job.Instant, error) {
	at, _, err := schedule.ReadInstant(text, zone, last)
	if bad, ok := errors.AsType[*schedule.Error](err); ok && bad.Field != "" {
		return 0, job.Errorf(job.KindInvalid, "bad_time_zone", "%s", bad.Message).WithHint("%s", bad.Hint)
	}
	if err != nil || at.Unix() < 0 || at.Add(24*time.Hour).UTC().Year() > 9999 { // in each zone
		return 0, job.Errorf(job.KindInvalid, "bad_instant", "this is no instant from 1970 to 9999").
			WithHint("write 2026-03-08T02:30:00+08:00, or 2026-03-08T02:30 on the clocks of the job's time zone")
	}
	return max(job.InstantOf(at), firstInstant), nil
}

// firstInstant stands for all of the first second: the instant 0 is none, and counting begins before what is counted.
const firstInstant = job.Instant(1000)

// clocksOf is the time zone in which a text without an offset is read.
func (ev *Evidence) clocksOf(text string) *time.Location {
	if _, name, is := schedule.ZoneBehind(text); is {
		if zone, err := schedule.ZoneNamed(name); err == nil { // else it was refused
			return zone
		}
	}
	return zoneOf(ev.Newest)
}

// nameZone says in which time zone a text without one was read, when the job has schedules of others.
func (ev *Evidence) nameZone(text string) {
	if _, is := schedule.ReadingOf(text); !is {
		return
	}
	if _, _, named := schedule.ZoneBehind(text); named {
		return
	}
	zone, others := zoneOf(ev.Newest).String(), []string{}
	for _, l := range linesOf(ev.Newest) {
		if z := schedule.Zone(l.s).String(); z != zone && schedule.Reading(l.s) != "" && !slices.Contains(others, z) {
			others = append(others, z)
		}
	}
	if len(others) > 0 {
		said := fmt.Sprintf("read on the clocks of %s, as the first schedule has them; others have %s: an offset, or --tz, says which are meant", zone, strings.Join(others, ", "))
		ev.Reading = strings.TrimSuffix(said+"; "+ev.Reading, "; ")
	}
}

// readClocks sets At to what a reading means that a step of the clocks skipped or shows twice. done: nothing else is to be found out.
func (ev *Evidence) readClocks(lines []line, zone *time.Location, reading time.Time) (done bool) {
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
