package engine_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// doCalendar writes a new revision of a calendar, and an entry for each job that names it.
func (s *scenario) doCalendar(c *command) error {
	name := c.arg(0)
	next := &job.Calendar{Namespace: "default", Name: name, Revision: 1, UpdatedAt: s.wall()}
	if old := s.calendars[name]; old != nil {
		next.Revision = old.Revision + 1
	}
	for _, day := range strings.Split(c.str("closed", ""), ",") {
		if from, to, _ := strings.Cut(day, ".."); from != "" {
			next.Spec.Closed = append(next.Spec.Closed, schedule.Dates{From: schedule.Date(from), To: schedule.Date(to), Name: "holiday"})
		}
	}
	if c.has("unfit") {
		next.Unfit = "its stored spec cannot be read"
	}
	if s.calendars == nil {
		s.calendars = map[string]*job.Calendar{}
	}
	s.calendars[name] = next
	s.db.calendars[name] = append(s.db.calendars[name], *next)
	for _, of := range slices.Sorted(maps.Keys(s.jobs)) {
		if !slices.Contains(s.jobs[of].Spec.Calendars(), name) {
			continue
		}
		c.args[0] = of
		if err := s.amend(c, engine.EntryJobChanged, func(d *job.Definition) { d.Calendars = s.calendarsOf(d) }); err != nil {
			return err
		}
	}
	return c.err
}

// calendarsOf are those that a definition names, as they are now.
func (s *scenario) calendarsOf(d *job.Definition) map[string]*job.Calendar {
	found := map[string]*job.Calendar{}
	for _, name := range d.Spec.Calendars() {
		if c := s.calendars[name]; c != nil {
			found[name] = c
		}
	}
	return found
}

// past is all that a job ever said, and what its calendars said last.
func (d *database) past(u job.UID) *engine.Past {
	var p engine.Past
	for _, r := range slices.Backward(d.revisions[u]) {
		if r.Revision != d.newest(u).Revision {
			p.Revisions = append(p.Revisions, r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.calendars)) {
		for i, c := range slices.Backward(d.calendars[name]) {
			if i >= len(d.calendars[name])-engine.CalendarsMax {
				p.Calendars = append(p.Calendars, c)
			}
		}
	}
	return &p
}
