package control

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// keepTo gives a revision of a job the calendars as they were at an instant: a store gives it the newest. The instant at which
// one was written is the old one's, as an owner takes it (engine, past.go).
func (c *Control) keepTo(ctx context.Context, d *job.Definition, at job.Instant) (*job.Definition, error) {
	if d == nil {
		return nil, nil //nolint:nilnil // no revision was in force
	}
	was := *d
	was.Calendars = maps.Clone(d.Calendars)
	for _, name := range d.Spec.Calendars() {
		if newest := d.Calendars[name]; newest != nil && newest.UpdatedAt < at {
			continue
		}
		found, err := c.calendarAt(ctx, d.Namespace, name, at)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		if was.Calendars == nil {
			was.Calendars = map[string]*job.Calendar{}
		}
		was.Calendars[name] = found
	}
	return &was, nil
}

// calendarAt is the newest revision of a calendar at an instant, deletions left out; one that comes before all of them is
// taken to lie in the first. nil: there is none.
func (c *Control) calendarAt(ctx context.Context, namespace, name string, at job.Instant) (found *job.Calendar, err error) {
	page := store.Page{Limit: store.DefaultLimit}
	for looked := 0; looked < revisionsMost; {
		rows, next, err := c.write.CalendarRevisions(ctx, namespace, name, page)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if rows[i].Deleted {
				continue
			}
			if found = &rows[i].Calendar; found.UpdatedAt < at {
				return found, nil
			}
		}
		if looked += len(rows); next == "" {
			break
		}
		page.After = next
	}
	return found, nil
}

// bareLines are the schedules of a revision that keep to calendars, as they are without them.
func bareLines(d *job.Definition) (all []line) {
	if d == nil {
		return nil
	}
	for _, s := range d.Spec.Schedules {
		if len(s.Calendars) == 0 {
			continue
		}
		bare := s.Spec
		bare.Calendars, bare.Closed = nil, ""
		if bare.Cron == "" {
			bare.TimeZone = "" // of the days
		}
		if open, err := d.Parse(bare); err == nil {
			all = append(all, line{s.ID, open, s.MaxRuns})
		}
	}
	return all
}

// closed says which calendar takes an instant away that a schedule would have; false: none does.
func (x *Explanation) closed() bool {
	d := x.Evidence.InForce
	for _, l := range bareLines(d) {
		if !schedule.Matches(l.s, x.At.Time()) {
			continue
		}
		for _, s := range d.Spec.Schedules {
			if s.ID == l.id {
				x.Schedule = l.id
				x.say(VerdictClosed, "closed by %s; schedule %s would have this instant", x.closer(&s, l.s), l.id)
				if kept, err := d.Parse(s.Spec); err == nil {
					if to, moves := schedule.MovedTo(kept, schedule.Nominal(l.s, x.At.Time())); moves {
						x.Text += ", which moves to " + to.In(schedule.Zone(kept)).Format(time.RFC3339)
					}
				}
				return true
			}
		}
	}
	return false
}

// closer names the calendar that closes an instant of a schedule; bare is the schedule without its calendars.
func (x *Explanation) closer(s *job.Schedule, bare schedule.Schedule) string {
	d := x.Evidence.InForce
	kept, err := d.Parse(s.Spec)
	if err != nil {
		return fmt.Sprintf("what cannot be used: %v", err)
	}
	return firstOf(closer(d, kept, job.InstantOf(schedule.Nominal(bare, x.At.Time()))), "its calendars "+strings.Join(s.Calendars, ", "))
}

// closer names the calendar of a schedule that closes an instant, which is one before the spread; "": none does.
func closer(d *job.Definition, s schedule.Schedule, at job.Instant) string {
	name, why := schedule.ClosedBy(s, at.Time())
	c := d.Calendars[name]
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("calendar %s, revision %d", name, c.Revision)
	if why != "" {
		text += fmt.Sprintf(" (%s)", why)
	}
	return text
}

// closedSince tells that the calendars as they are now close an instant that those of then had open.
func (ev *Evidence) closedSince() bool {
	if ev.Today == nil || ev.Today.Stamp() == ev.InForce.Stamp() {
		return false
	}
	_, is := having(linesOf(ev.Today), ev.At)
	return !is
}

// keeps names the revision in force with its calendars.
func (x *Explanation) keeps() string {
	d := x.Evidence.InForce
	text := fmt.Sprintf("revision %d", d.Revision)
	for _, name := range d.Spec.Calendars() {
		if c := d.Calendars[name]; c != nil {
			text += fmt.Sprintf(" with calendar %s, revision %d", name, c.Revision)
		}
	}
	return text
}

// lastWritten names the last change up to an instant of what a revision says: itself, or a calendar that it keeps to.
func lastWritten(d *job.Definition, upTo job.Instant) (what string, at job.Instant) {
	what, at = fmt.Sprintf("revision %d", d.Revision), d.UpdatedAt
	for _, name := range d.Spec.Calendars() {
		if c := d.Calendars[name]; c != nil && c.UpdatedAt > at && c.UpdatedAt < upTo {
			what, at = fmt.Sprintf("revision %d of calendar %s", c.Revision, name), c.UpdatedAt
		}
	}
	return what, at
}
