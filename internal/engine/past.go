package engine

import (
	"slices"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// A job, or a calendar that it keeps to, may be edited several times while nobody plans it. Each instant belongs to what
// was in force at it, as it was written: those of the old revisions that nobody planned become decisions here, and the
// newest revision goes on with those that lie behind its writing. A schedule that all of them leave as it was, with the same
// instants, is not settled here: what it missed is caught up like any other.

// PastMax bounds the revisions that Past brings, of the job and of each calendar: the newest ones. Of a job that is edited
// more often while nobody plans, the revisions between the oldest and those are as if they had not been.
const PastMax = 32

// Past is what a job and its calendars said before, as far back as the cursors know.
type Past struct {
	Revisions []*job.Definition // of the job, but the newest, newest first: PastMax and the one that each cursor is of
	Calendars []job.Calendar    // all revisions of the calendars that these and the newest name, deletions left out, newest first: PastMax of each
}

// version is what was in force at the instants in (from, to].
type version struct {
	def      *job.Definition
	from, to job.Instant
}

// written is when the last change of what a definition says was written: its own, or a calendar's.
func written(def *job.Definition) job.Instant {
	at := def.UpdatedAt
	for _, name := range def.Spec.Calendars() {
		if c := def.Calendars[name]; c != nil {
			at = max(at, c.UpdatedAt)
		}
	}
	return at
}

// isOld tells that a cursor was computed from something else than what its job says now.
func isOld(c *job.Cursor, def *job.Definition) bool {
	return c.Revision != def.Revision || c.Stamp != def.Stamp()
}

// WantsPast tells a store that the entry needs Past: its job was changed, and older revisions may have instants that
// nobody planned. With one change, nothing was due before it unless Next is.
func (entry *Entry) WantsPast() bool {
	def := entry.Definition
	if !entry.Kind.aboutCursors() || def == nil {
		return false
	}
	stamp := def.Stamp()
	for i := range entry.Cursors {
		c := &entry.Cursors[i]
		once := c.Revision == def.Revision && c.Stamp == stamp-1 || c.Revision == def.Revision-1 && c.Stamp == stamp
		if c.Revision > 0 && isOld(c, def) && (!once || c.Next != 0 && c.Next <= written(def)) {
			return true
		}
	}
	return false
}

// versions are what was in force since a cursor was computed, oldest first, but the newest.
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
	old := p.withCalendars(revisions[len(revisions)-1], c.Stamp)
	changes := []job.Instant{}
	for _, d := range revisions[:len(revisions)-1] {
		changes = append(changes, d.UpdatedAt)
	}
	for i := range p.Calendars {
		if at := p.Calendars[i].UpdatedAt; at > written(old) {
			changes = append(changes, at)
		}
	}
	slices.Sort(changes)
	changes = slices.Compact(changes)
	for i, at := range changes {
		all = append(all, version{def: old, to: at})
		if i > 0 {
			all[i].from = changes[i-1]
		}
		for k := len(revisions) - 1; k >= 0 && revisions[k].UpdatedAt <= at; k-- {
			old = revisions[k]
		}
		old = p.asOf(old, at)
	}
	return all
}

// asOf gives a revision its calendars as they were at an instant; one that lies before all that is known of a calendar is
// taken to lie in the oldest.
func (p *Past) asOf(def *job.Definition, at job.Instant) *job.Definition {
	was := *def
	was.Calendars = map[string]*job.Calendar{}
	for _, name := range def.Spec.Calendars() {
		for i := range p.Calendars {
			if c := &p.Calendars[i]; c.Name == name {
				if was.Calendars[name] = c; c.UpdatedAt <= at {
					break
				}
			}
		}
	}
	return &was
}

// withCalendars gives a revision its calendars as they were when its stamp was this one: the changes since are taken back,
// the newest first.
func (p *Past) withCalendars(def *job.Definition, stamp int64) *job.Definition {
	at := written(def)
	for i := range p.Calendars {
		at = max(at, p.Calendars[i].UpdatedAt)
	}
	was := p.asOf(def, at)
	for was.Stamp() > stamp && written(was) > was.UpdatedAt {
		before := p.asOf(def, written(was)-1)
		if before.Stamp() == was.Stamp() {
			break // there is no older one
		}
		was = before
	}
	return was
}

// keeps tells that the newest revision has the very instants that its old versions had since a cursor's Next, as far as a step
// may walk.
func (e *Engine) keeps(all []version, newest *job.Definition, c *job.Cursor) bool {
	now := scheduleOf(newest, c.Schedule)
	if now == nil || newest.Deleted != nil || newest.Spec.Disabled || len(all) == 0 || c.Next == 0 {
		return false
	}
	walked := 0
	for _, v := range all {
		old := scheduleOf(v.def, c.Schedule)
		if old == nil || v.def.Spec.Disabled {
			return false
		}
		for at := max(v.from, c.Next-1); at < v.to; walked++ {
			was, some := old.Next(at.Time())
			is, any := now.Next(at.Time())
			some, any = some && job.InstantOf(was) <= v.to, any && job.InstantOf(is) <= v.to
			if some != any || some && !was.Equal(is) || walked > walkMax*e.cfg.CatchUpMax {
				return false
			}
			if !some {
				break
			}
			at = job.InstantOf(was)
		}
	}
	return true
}

// settlePast decides the instants of old revisions that nobody planned. same are the schedules that all revisions have in
// common, whose missed instants the newest one catches up. false: more is left for the next step; the entry stays in the
// inbox.
func (e *Engine) settlePast(entry Entry, cursors map[string]job.Cursor) (same map[string]bool, done bool) {
	same = map[string]bool{}
	newest := entry.Definition
	for _, c := range sortedCursors(cursors) {
		if !isOld(&c, newest) {
			continue
		}
		versions := entry.Past.versions(&c, newest)
		same[c.Schedule] = e.keeps(versions, newest, &c)
		for i := range versions {
			for k := range versions[i].def.Spec.Schedules {
				s := &versions[i].def.Spec.Schedules[k]
				of, has := cursors[s.ID]
				switch {
				case same[s.ID] || s.ID != c.Schedule && (has || i == 0): // it has a cursor of its own
					continue
				case !has: // it came and went: the others' cursors tell since when
					of = job.Cursor{Job: c.Job, Schedule: s.ID, Revision: c.Revision, Stamp: c.Stamp}
				}
				moved, all := e.settleVersion(&versions[i], s, &of, i == 0)
				if moved {
					cursors[s.ID] = of
				}
				if !all {
					e.unfollow(dueKey{of.Job, of.Schedule})
					e.writeCursor(of)
					return nil, false
				}
			}
		}
		if n := len(versions); n > 0 && !same[c.Schedule] && !delays(versions[0].def, c.Schedule) {
			if of := cursors[c.Schedule]; of.Next <= versions[n-1].to {
				of.Next = 0
				cursors[c.Schedule] = of
			}
		}
	}
	return same, true
}

// settleVersion decides what a schedule had in one version. moved: c has changed. all: nothing is left.
func (e *Engine) settleVersion(v *version, s *job.Schedule, c *job.Cursor, first bool) (moved, all bool) {
	sched := scheduleOf(v.def, s.ID)
	if sched == nil || v.def.Spec.Disabled || s.Delay != 0 || s.UsedUp(c.Runs) {
		return false, true
	}
	to := min(v.to, e.now.Wall)
	at := c.Next
	if !first {
		at = 0
		if next, ok := sched.Next(max(v.from, c.Last).Time()); ok {
			at = job.InstantOf(next)
		}
	}
	if at == 0 || at > to {
		return false, true
	}
	kind, why := job.DecisionMissed, job.ReasonMissedDown
	if v.def.Pause.Covers(at) {
		kind, why = job.DecisionSkipped, job.ReasonPaused
	}
	left, all := e.pass(v.def, sched, c, at, to+1, kind, why)
	c.Next = left
	return true, all
}

// oldestOf is the oldest instant of a schedule of the newest revision that nobody planned; 0: there is none.
func oldestOf(def *job.Definition, s schedule.Schedule, c *job.Cursor) job.Instant {
	if !isOld(c, def) {
		return c.Next
	}
	if next, ok := s.Next(max(written(def), c.Last).Time()); ok && !def.Spec.Disabled {
		return job.InstantOf(next)
	}
	return 0
}

// delays tells that a schedule counts from the ends of its executions: its instant is due whoever planned it (delay.go).
func delays(def *job.Definition, id string) bool {
	return slices.ContainsFunc(def.Spec.Schedules, func(s job.Schedule) bool { return s.ID == id && s.Delay != 0 })
}
