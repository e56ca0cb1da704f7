package engine

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// A job, or a calendar that it keeps to, may be edited several times while nobody plans it. Each instant belongs to what
// was in force at it, as it was written (an edit's own instant to what was before). What nobody planned under a version
// that means something else than the newest becomes a decision here; from the newest version on, and those right before it
// that have the same instants, planning goes on as after any outage. That is judged for the job as a whole: two schedules
// of one may share an instant, which must not have an execution and a decision (R4).

// PastMax bounds the revisions of the job that Past brings: the newest ones. Of a job that is edited more often while nobody plans, the
// revisions between the cursors' and those are as if they had not been. CalendarsMax bounds those of each calendar. Of one that is changed
// more often, what came due before the oldest that is known was open or closed, nobody knows: all of it is missed (see unclosed).
const (
	PastMax      = 16
	CalendarsMax = 64
)

// Past is what a job and its calendars said before, as far back as the cursors know.
type Past struct {
	Revisions []*job.Definition // of the job, but the newest, newest first: PastMax and the one that each cursor is of
	Calendars []job.Calendar    // revisions of the calendars that these and the newest name, deletions left out, newest first: CalendarsMax of each
}

// version is what was in force at the instants in (from, to].
type version struct {
	def      *job.Definition
	from, to job.Instant
	forgot   bool // def is one of unclosed
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

// onceSince tells that all that has changed since a cursor was computed was written at one instant.
func onceSince(c *job.Cursor, def *job.Definition) bool {
	at, together := written(def), int64(0)
	for _, name := range def.Spec.Calendars() {
		if k := def.Calendars[name]; k != nil && k.UpdatedAt == at {
			together++
		}
	}
	switch def.Revision - c.Revision {
	case 0:
		return def.Stamp() == c.Stamp+together
	case 1:
		return def.Stamp() == c.Stamp || def.UpdatedAt == at && def.Stamp() == c.Stamp+together
	}
	return false
}

// WantsPast tells a store that the entry needs Past: its job was changed, and older versions may have instants that nobody
// planned. With one change, nothing was due before it unless Next is; but what is held or owed is of the calendars that were (leftOld). A job
// without a cursor was never planned.
func (entry *Entry) WantsPast() bool {
	def := entry.Definition
	if !entry.Kind.aboutCursors() || def == nil {
		return false
	}
	for i := range entry.Cursors {
		c := unmarked(entry.Cursors[i])
		if c.Revision > 0 && isOld(&c, def) && (!onceSince(&c, def) || c.Next != 0 && c.Next <= written(def) || entry.leftOld(&c)) {
			return true
		}
	}
	return len(entry.Cursors) == 0 && def.Deleted == nil && (def.Revision > 1 || written(def) > def.UpdatedAt)
}

// meansSame tells that a version has the instants that the newest has. What is compared does not depend on how far the
// version is settled, so that each step judges alike.
func (e *Engine) meansSame(v *version, newest *job.Definition, cursors map[string]job.Cursor, left *int) bool {
	if v.forgot || newest.Deleted != nil || newest.Spec.Disabled || v.def.Spec.Disabled || !reflect.DeepEqual(v.def.Spec.Schedules, newest.Spec.Schedules) {
		return false
	}
	for i := range newest.Spec.Schedules {
		s := &newest.Spec.Schedules[i]
		changed := slices.ContainsFunc(s.Calendars, func(name string) bool {
			x, y := v.def.Calendars[name], newest.Calendars[name]
			return x == nil || y == nil || !reflect.DeepEqual(x.Spec.Calendar, y.Spec.Calendar)
		})
		after := v.from
		if after == 0 {
			after = max(cursors[s.ID].Next, 1) - 1
		}
		if changed && s.Delay == 0 && !e.sameInstants(scheduleOf(v.def, s.ID), scheduleOf(newest, s.ID), after, v.to, left) {
			return false
		}
	}
	return true
}

// sameInstants compares two schedules in (after, to]. left bounds the instants that may be looked at yet; what lies behind them counts as
// different. It is not the step's bound, for what else a step does must not decide about a job, and what is compared leaves it all
// of that for what comes of it.
func (e *Engine) sameInstants(x, y schedule.Schedule, after, to job.Instant, left *int) bool {
	if x == nil || y == nil {
		return false
	}
	for at := after.Time(); *left > 0; *left-- {
		e.step.compared++
		a, some := x.Next(at)
		b, other := y.Next(at)
		some, other = some && job.InstantOf(a) <= to, other && job.InstantOf(b) <= to
		switch {
		case !some && !other:
			return true
		case some != other || !a.Equal(b):
			return false
		}
		at = a
	}
	return false
}

// settlePast decides the instants of old versions that nobody planned, up to from: behind it planning goes on under the
// newest revision. 0: with the cursors as they are. still: nothing of them was decided, so what they have due up to from is due still.
// held: a pause of the job held back what was due until now. done is false when more is left for the next step; the entry stays in
// the inbox.
func (e *Engine) settlePast(entry Entry, cursors map[string]job.Cursor, held bool) (from job.Instant, still, done bool) {
	newest, base, old := entry.Definition, job.Cursor{}, len(cursors) == 0
	for _, c := range sortedCursors(cursors) {
		if isOld(&c, newest) && (!old || c.Revision < base.Revision || c.Revision == base.Revision && c.Stamp < base.Stamp) {
			base, old = c, true
		}
	}
	if !old {
		return 0, true, true
	}
	versions := entry.Past.versions(&base, newest)
	n := len(versions)
	switch {
	case held:
		versions = append(versions, version{newest, written(newest), e.now.Wall, false})
		n++
	case n == 0:
		return min(written(newest), e.now.Wall), false, true
	default:
		for left := walkMax * e.cfg.CatchUpMax; n > 0 && e.meansSame(&versions[n-1], newest, cursors, &left); {
			n--
		}
	}
	if n == 0 {
		return min(cmp.Or(versions[0].from, versions[0].to), e.now.Wall), true, true
	}
	moved := map[string]job.Cursor{}
	if base.Revision == 0 {
		base = firstCursors(&versions[0], cursors, moved)
	}
	for i := range versions[:n] {
		if !e.settleVersion(&versions[i], i == 0 && versions[i].def != newest, held, &base, cursors, moved) {
			for _, c := range sortedCursors(moved) {
				e.unfollow(dueKey{c.Job, c.Schedule})
				e.writeCursor(c)
			}
			return 0, false, false
		}
	}
	return min(versions[n-1].to, e.now.Wall), false, true
}

// firstCursors are what the first version would have had, when it was never taken in.
func firstCursors(v *version, cursors, moved map[string]job.Cursor) job.Cursor {
	base := job.Cursor{Job: v.def.UID, Revision: v.def.Revision, Stamp: v.def.Stamp()}
	for _, s := range v.def.Spec.Schedules {
		if sched := scheduleOf(v.def, s.ID); sched != nil && s.Delay == 0 {
			c := base
			if c.Schedule = s.ID; !v.def.Spec.Disabled {
				c.Next = nextAfter(sched, v.from)
			}
			cursors[s.ID], moved[s.ID] = c, c
		}
	}
	return base
}

// settleVersion decides what the schedules of one version had; first: the version that the cursors are of, whose Next says
// where it goes on. Those that changed are put into cursors and moved.
func (e *Engine) settleVersion(v *version, first, held bool, base *job.Cursor, cursors, moved map[string]job.Cursor) bool {
	if v.def.Spec.Disabled {
		return true
	}
	for i := range v.def.Spec.Schedules {
		s := &v.def.Spec.Schedules[i]
		c, has := cursors[s.ID]
		if !has { // a schedule that came after the cursors were computed
			c = job.Cursor{Job: v.def.UID, Schedule: s.ID, Revision: base.Revision, Stamp: base.Stamp}
		}
		sched := scheduleOf(v.def, s.ID)
		if sched == nil || s.Delay != 0 || s.UsedUp(c.Runs) || first && (!has || c.Next == 0) {
			continue
		}
		at := c.Next
		if !first {
			at = nextAfter(sched, max(v.from, c.Last))
		}
		was, to := c, min(v.to, e.now.Wall)
		for at != 0 && at <= to && e.step.walked < walkMax*e.cfg.CatchUpMax {
			at = e.passSome(v.def, sched, &c, at, to, held && !first)
		}
		left := at != 0 && at <= to
		switch {
		case left && held: // so that the next step judges alike: it holds nothing, but tells that a pause held something back
			c.Next, c.Held = at, at
		case left && first:
			c.Next = at
		case first && c.Next <= to:
			c.Next = 0
		}
		if c != was {
			cursors[s.ID], moved[s.ID] = c, c
		}
		if left {
			return false
		}
	}
	return true
}

// passSome makes one decision of the instants from at on that have one reason: they were paused, or nobody was there. It
// returns the next one; 0: there is none.
func (e *Engine) passSome(def *job.Definition, s schedule.Schedule, c *job.Cursor, at, to job.Instant, held bool) job.Instant {
	kind, why := job.DecisionMissed, job.ReasonMissedDown
	switch p := def.Pause; {
	case held:
		kind, why = job.DecisionSkipped, job.ReasonPaused
	case p.Covers(at):
		if kind, why = job.DecisionSkipped, job.ReasonPaused; p.Until != 0 {
			to = min(to, p.Until-1)
		}
	case p != nil && p.At > at:
		to = min(to, p.At-1)
	}
	n := len(e.step.batch.Decisions)
	e.pass(def, s, c, at, to+1, kind, why)
	for _, d := range e.step.batch.Decisions[n:] {
		e.step.walked += int(min(d.Count, int64(e.cfg.CatchUpMax)))
	}
	if c.Last < at {
		c.Last = to // nothing was found where something was due
	}
	return nextAfter(s, c.Last)
}

func nextAfter(s schedule.Schedule, at job.Instant) job.Instant {
	if next, ok := s.Next(at.Time()); ok {
		return job.InstantOf(next)
	}
	return 0
}

// oldestOf is the oldest instant of a schedule of the newest revision that nobody planned, when that goes on behind from;
// 0: there is none.
func oldestOf(def *job.Definition, s *job.Schedule, c *job.Cursor, from job.Instant) job.Instant {
	if from == 0 || s.Delay != 0 {
		return c.Next
	}
	sched := scheduleOf(def, s.ID)
	if sched == nil || def.Spec.Disabled || s.UsedUp(c.Runs) {
		return 0
	}
	return nextAfter(sched, max(from, c.Last))
}

// withNew adds cursors for the schedules of the newest revision that have none, for what they had before the job ended.
func withNew(def *job.Definition, cursors map[string]job.Cursor) {
	if len(cursors) == 0 {
		return // nobody ever planned it, or all is done
	}
	base := cursors[slices.Min(slices.Collect(maps.Keys(cursors)))]
	for i := range def.Spec.Schedules {
		id := def.Spec.Schedules[i].ID
		if _, has := cursors[id]; !has {
			cursors[id] = job.Cursor{Job: def.UID, Schedule: id, Revision: base.Revision, Stamp: base.Stamp}
		}
	}
}
