package engine

import (
	"math"
	"slices"

	"github.com/taktsched/takt/internal/job"
)

// versions are what was in force since a cursor was computed, oldest first, but the newest. Without a cursor (Revision 0):
// since the job was created.
func (p *Past) versions(c *job.Cursor, newest *job.Definition) (all []version) {
	if p == nil {
		return nil
	}
	revisions := []*job.Definition{newest}
	for _, d := range p.Revisions {
		if d.Revision >= c.Revision && d.Revision < revisions[len(revisions)-1].Revision {
			revisions = append(revisions, d)
		}
	}
	first, calendars := revisions[len(revisions)-1], p.byName()
	old, from := calendars.asOf(first, first.UpdatedAt), first.UpdatedAt
	forgot := written(old) > from
	if c.Revision > 0 {
		old, from = calendars.stamped(first, c.Stamp), 0
		forgot = old.Stamp() > c.Stamp
	}
	known := job.Instant(0) // what calendars said up to it nobody knows
	var changes []job.Instant
	if forgot {
		known = min(written(old), written(newest)) // calendars that the newest does not name may have changed since
		old, changes = unclosed(old), append(changes, known)
	}
	for _, d := range revisions[:len(revisions)-1] {
		changes = append(changes, d.UpdatedAt)
	}
	for i := range p.Calendars {
		if at := p.Calendars[i].UpdatedAt; at > max(known, written(old)) && at <= written(newest) {
			changes = append(changes, at)
		}
	}
	slices.Sort(changes)
	rev := first
	for _, at := range slices.Compact(changes) {
		all = append(all, version{old, from, at, from < known})
		for k := len(revisions) - 1; k >= 0 && revisions[k].UpdatedAt <= at; k-- {
			rev = revisions[k]
		}
		if old, from = calendars.asOf(rev, at), at; at < known {
			old = unclosed(old)
		}
	}
	return all
}

// unclosed stands for a revision whose calendars are not known: each instant of its schedules gets a decision, whether one of them closed
// it or not.
func unclosed(def *job.Definition) *job.Definition {
	was := *def
	was.Spec.Schedules = slices.Clone(def.Spec.Schedules)
	for i := range was.Spec.Schedules {
		was.Spec.Schedules[i].Calendars = nil
	}
	return &was
}

// byName are the revisions of calendars by name, newest first. A calendar may have dozens, and each is looked for among those of its
// name alone.
type byName map[string][]*job.Calendar

func (p *Past) byName() byName {
	all := byName{}
	for i := range p.Calendars {
		c := &p.Calendars[i]
		all[c.Name] = append(all[c.Name], c)
	}
	return all
}

// asOf gives a revision its calendars as they were at an instant; one that lies before all that is known of a calendar is
// taken to lie in the oldest.
func (all byName) asOf(def *job.Definition, at job.Instant) *job.Definition {
	was := *def
	was.Calendars = map[string]*job.Calendar{}
	for _, name := range def.Spec.Calendars() {
		of := all[name]
		i := slices.IndexFunc(of, func(c *job.Calendar) bool { return c.UpdatedAt <= at })
		switch {
		case i >= 0:
			was.Calendars[name] = of[i]
		case len(of) > 0:
			was.Calendars[name] = of[len(of)-1]
		}
	}
	return &was
}

// stamped gives a revision its calendars as they were when its stamp was this one: the changes since are taken back one by one, the
// newest first. A stamp that is still higher tells that there is no older one.
func (all byName) stamped(def *job.Definition, stamp int64) *job.Definition {
	names, place := def.Spec.Calendars(), map[string]int{}
	was := all.asOf(def, math.MaxInt64)
	for was.Stamp() > stamp {
		var last *job.Calendar
		for _, name := range names {
			c := was.Calendars[name]
			if place[name]+1 < len(all[name]) && c.UpdatedAt >= def.UpdatedAt && (last == nil || c.UpdatedAt > last.UpdatedAt) {
				last = c
			}
		}
		if last == nil {
			break
		}
		place[last.Name]++
		was.Calendars[last.Name] = all[last.Name][place[last.Name]]
	}
	return was
}
