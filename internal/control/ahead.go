package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// aheadSteps bounds how many instants are walked to find out how many runs a schedule will have left.
const aheadSteps = 20_000

// ahead are the instants of one job to come.
type ahead struct {
	def   *job.Definition
	held  string // failures in a row hold all of them: why; "": they do not
	lines []course
}

// course is where one schedule goes on.
type course struct {
	line
	next time.Time // the zero time: nowhere
	left int64     // runs that it may make yet; -1: no bound
}

// aheadOfAll begins each schedule where its owner goes on with it. A schedule without a row has nothing in the time asked for.
func aheadOfAll(rows []store.DueRow, now, at job.Instant) (all []ahead) {
	place := map[job.UID]int{}
	for i := range rows {
		d, c := &rows[i].Definition, rows[i].Cursor
		if autoPaused(d, []job.Cursor{c}) != "" {
			continue
		}
		n, seen := place[d.UID]
		if !seen {
			n = len(all)
			place[d.UID], all = n, append(all, ahead{def: d})
		}
		for _, l := range linesOf(d) {
			if l.id == c.Schedule {
				all[n].add(l, c, max(now, c.Next), max(at, c.Next))
			}
		}
	}
	return all
}

// aheadOf begins at the given instant, which is looked at too: the place of a page knows which jobs had it. What lies
// between begin and it is taken to run.
func aheadOf(d *job.Definition, cursors []job.Cursor, begin, at job.Instant) ahead {
	a := ahead{def: d, held: autoPaused(d, cursors)}
	if !d.Spec.Disabled {
		for _, l := range linesOf(d) {
			a.add(l, cursorOf(cursors, l.id), begin, at)
		}
	}
	return a
}

func (a *ahead) add(l line, c job.Cursor, begin, at job.Instant) {
	x := course{line: l, left: l.left(c)}
	if x.left > 0 && at > begin {
		n, _, _ := schedule.Count(l.s, (begin - 1).Time(), (at - 1).Time(), int(min(x.left, aheadSteps)))
		x.left = max(0, x.left-int64(n))
	}
	if x.goOn((at - 1).Time()); l.delayed() && c.Next >= at && c.Revision == a.def.Revision {
		x.next = c.Next.Time() // what comes behind it depends on an end
	}
	if x.left != 0 {
		a.lines = append(a.lines, x)
	}
}

func (x *course) goOn(behind time.Time) {
	next, ok := x.s.Next(behind)
	if x.next = next; !ok {
		x.next = time.Time{}
	}
}

// first is the next instant of the job; false: there is none.
func (a *ahead) first() (best time.Time, ok bool) {
	for i := range a.lines {
		if at := a.lines[i].next; !at.IsZero() && (best.IsZero() || at.Before(best)) {
			best = at
		}
	}
	return best, !best.IsZero()
}

// take goes on behind the instant at.
func (a *ahead) take(at time.Time) Upcoming {
	u := Upcoming{Job: a.def.Name, Held: a.held}
	if p := a.def.Pause; u.Held == "" && p.Covers(job.InstantOf(at)) {
		u.Held = "paused" + byPause(p) + ", " + untilText(p)
	}
	for i := range a.lines {
		l := &a.lines[i]
		if !l.next.Equal(at) {
			continue
		}
		if zone := schedule.Zone(l.s); u.Schedule == "" {
			u.Fire = Fire{At: at.In(zone), Zone: zone.String(), Schedule: l.id, Note: schedule.Note(l.s, at)}
		} else {
			u.Schedule += "," + l.id
		}
		l.goOn(at)
		if u.Held == "" && l.left > 0 {
			if l.left--; l.left == 0 {
				l.next = time.Time{}
			}
		}
	}
	return u
}

// Bounds of PausedJobs.
const (
	pausedLooked = 5000 // jobs that are looked at
	pausedNamed  = 100
)

// PausedJob is a job whose schedules are held.
type PausedJob struct {
	Job  string
	Held string // by what pause
}

// PausedJobs are those of a namespace whose schedules a pause holds now, by name; more: others may be, too.
func (c *Control) PausedJobs(ctx context.Context, namespace string) (paused []PausedJob, more bool, err error) {
	now, page := c.instant(), store.Page{Limit: 500}
	for looked := 0; ; {
		rows, next, err := c.read.Jobs(ctx, namespace, page)
		if err != nil {
			return nil, false, err
		}
		for i := range rows {
			d := &rows[i].Definition
			held := autoPaused(d, rows[i].Cursors)
			if d.Pause.Covers(now) {
				held = "paused" + byPause(d.Pause) + ", " + untilText(d.Pause)
			}
			if held == "" || d.Spec.Disabled || len(d.Spec.Schedules) == 0 {
				continue
			}
			if len(paused) == pausedNamed {
				return paused, true, nil
			}
			paused = append(paused, PausedJob{d.Name, held})
		}
		if looked += len(rows); next == "" || looked >= pausedLooked {
			return paused, next != "", nil
		}
		page.After = next
	}
}

// left is how many executions the schedule may make yet; -1: there is no bound.
func (l *line) left(c job.Cursor) int64 {
	if l.maxRuns == 0 {
		return -1
	}
	return max(0, l.maxRuns-c.Runs)
}

func (l *line) delayed() bool {
	_, is := schedule.DelayOf(l.s)
	return is
}

// cursorOf finds the cursor of a schedule; one that has none has planned nothing.
func cursorOf(cursors []job.Cursor, id string) job.Cursor {
	for _, c := range cursors {
		if c.Schedule == id {
			return c
		}
	}
	return job.Cursor{}
}

// first is the first cursor of some schedules of which something holds: each of those that share an instant may have it yet. nil: none.
func (ev *Evidence) first(names []string, holds func(c *job.Cursor) bool) *job.Cursor {
	for _, name := range names {
		if c := cursorOf(ev.Cursors, name); holds(&c) {
			return &c
		}
	}
	return nil
}

// autoPaused says that failures in a row hold the schedules of a job; "": they do not.
func autoPaused(d *job.Definition, cursors []job.Cursor) string {
	failures := 0
	for _, c := range cursors {
		failures = max(failures, c.Failures)
	}
	if !d.Spec.AutoPause.Paused(failures) {
		return ""
	}
	return fmt.Sprintf("auto-paused: %d executions in a row have failed, until it is resumed (`takt resume %s`)", failures, d.Name)
}

// usedUp tells whether all the schedules that have the instant had made all their runs before it, or will have.
func (ev *Evidence) usedUp(lines []line, names []string) bool {
	for _, l := range lines {
		if !slices.Contains(names, l.id) {
			continue
		}
		c := cursorOf(ev.Cursors, l.id)
		left := l.left(c)
		if left > 0 && ev.At > ev.Now && c.Next != 0 && ev.Newest.Pause == nil {
			n, _, _ := schedule.Count(l.s, (c.Next - 1).Time(), (ev.At - 1).Time(), int(min(left, aheadSteps)))
			left -= int64(n)
		}
		ran := ev.At <= c.Last && (ev.InForce.Revision == ev.Newest.Revision || ev.At < ev.Kept)
		if left < 0 && l.maxRuns == 0 || left > 0 || ran {
			return false
		}
	}
	return len(names) > 0
}

// delayed names the schedules with a fixed delay whose next instant it is: no arithmetic tells them.
func (ev *Evidence) delayed(lines []line) (names []string, is bool) {
	for _, l := range lines {
		if l.delayed() && cursorOf(ev.Cursors, l.id).Next == ev.At {
			names = append(names, l.id)
		}
	}
	return names, len(names) > 0
}
