package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// revisionsMost bounds how many revisions are looked through for the one that was in force.
const revisionsMost = 10_000

// Explain tells what became, or becomes, of an instant of a job. text is an instant with an offset, or a reading of the
// clocks in the time zone of the job's first schedule, or in one that stands behind it: 2026-03-08T02:30[Asia/Shanghai]. Errors:
// KindNotFound; KindInvalid.
func (c *Control) Explain(ctx context.Context, namespace, name, text string) (Explanation, error) {
	if _, err := instantOf(text, time.UTC); err != nil {
		return Explanation{}, err
	}
	ev, err := c.revisionsAt(ctx, namespace, name, text)
	if err != nil {
		return Explanation{}, err
	}
	if err := c.addCursors(ctx, &ev); err != nil {
		return Explanation{}, err
	}
	if err := c.instantMeant(ctx, &ev, text); err != nil {
		return Explanation{}, err
	}
	for _, part := range []func(context.Context, *Evidence) error{c.addRows, c.addBackfill, c.addEarlier, c.addKept} {
		if err := part(ctx, &ev); err != nil {
			return Explanation{}, err
		}
	}
	c.addOwner(ctx, &ev)
	ev.nameZone(text)
	return ev.Explain(), nil
}

// revisionsAt finds the newest revision, and the one that was the newest at the instant that text names.
func (c *Control) revisionsAt(ctx context.Context, namespace, name, text string) (Evidence, error) {
	ev := Evidence{Now: c.instant()}
	page := store.Page{Limit: store.DefaultLimit}
	for looked := 0; looked < revisionsMost; {
		rows, next, err := c.write.Revisions(ctx, namespace, name, page)
		if err != nil {
			return ev, err
		}
		for i := range rows {
			d := &rows[i].Definition
			if ev.Newest == nil {
				if ev.Newest, ev.At = d, 0; d.Unfit != "" {
					return ev, job.Errorf(job.KindConflict, "job_unfit", "the job %q cannot be read: %s", name, d.Unfit).WithHint("apply the job again")
				}
				if ev.At, err = instantOf(text, zoneOf(d)); err != nil {
					return ev, err
				}
			}
			if d.UpdatedAt < ev.At || d.Revision == 1 && d.UpdatedAt == ev.At { // the instant of an edit is the old revision's
				ev.InForce = d
				return ev, nil
			}
		}
		if looked += len(rows); next == "" {
			break
		}
		page.After = next
	}
	return ev, nil
}

// addRows reads what the database has of an instant.
func (c *Control) addRows(ctx context.Context, ev *Evidence) error {
	d := ev.Newest
	if ev.Dropped {
		return nil // At is not what was asked for
	}
	view, err := c.Execution(ctx, d.Namespace, job.PlannedID(d.UID, ev.At))
	switch {
	case err == nil:
		ev.Execution = &view
	case job.KindOf(err) != job.KindNotFound:
		return err
	case len(d.Spec.After) > 0:
		if err := c.addDerived(ctx, ev); err != nil {
			return err
		}
	}
	names := []string{""} // what the ends of other jobs lead to
	for _, of := range []*job.Definition{ev.InForce, d} {
		for i := 0; of != nil && i < len(of.Spec.Schedules); i++ {
			if id := of.Spec.Schedules[i].ID; !slices.Contains(names, id) {
				names = append(names, id)
			}
		}
	}
	ev.Decisions, err = c.read.DecisionsIn(ctx, d.UID, names, ev.At, ev.At)
	return err
}

// addDerived finds the newest execution of the instant that ends of other jobs have led to. Its id is made of theirs.
func (c *Control) addDerived(ctx context.Context, ev *Evidence) error {
	d := ev.Newest
	rows, _, err := c.read.Executions(ctx, store.ExecutionFilter{Namespace: d.Namespace, Job: d.Name, Page: store.Page{Limit: 10}, Query: plannedIn(ev.At, ev.At+1)})
	if err != nil {
		return err
	}
	for i := range rows {
		if x := &rows[i]; x.JobUID == d.UID && x.Trigger == job.TriggerAfter {
			view, err := c.Execution(ctx, d.Namespace, x.ID)
			if err == nil {
				ev.Execution = &view
			}
			return err
		}
	}
	return nil
}

func (c *Control) addCursors(ctx context.Context, ev *Evidence) error {
	if d := ev.Newest; d.Deleted == nil {
		row, err := c.read.Job(ctx, d.Namespace, d.Name)
		if err != nil && job.KindOf(err) != job.KindNotFound {
			return err
		}
		ev.Cursors = row.Cursors
	}
	return nil
}

func (c *Control) addBackfill(ctx context.Context, ev *Evidence) error {
	rows, _, err := c.write.Backfills(ctx, ev.Newest.Namespace, ev.Newest.Name, store.Page{})
	for i := range rows {
		if b := &rows[i]; !b.Progress.State.Ended() && b.Cancel == nil && b.From <= ev.At && ev.At <= b.To {
			ev.Backfill, ev.Reached = b.ID, ev.reached(b)
		}
	}
	return err
}

// reached tells whether a backfill has come to the instant, as far as is known: its owner writes in steps.
func (ev *Evidence) reached(b *job.Backfill) bool {
	p := &b.Progress
	switch x := ev.Execution; {
	case x != nil && x.Trigger == job.TriggerBackfill && x.CreatedAt >= b.At, slices.Contains(p.Open, ev.At):
		return true
	case p.Cursor == 0:
		return false
	case b.Spec.Reverse:
		return p.Cursor <= ev.At
	}
	return ev.At <= p.Cursor
}

// addEarlier looks for what an earlier job of the name made of an instant that lies before the newest.
func (c *Control) addEarlier(ctx context.Context, ev *Evidence) error {
	if ev.InForce != nil {
		return nil
	}
	until := ev.At + 1
	if ev.At%1000 == 0 {
		until = ev.At.Add(time.Second)
	}
	f := store.ExecutionFilter{Namespace: ev.Newest.Namespace, Job: ev.Newest.Name, Page: store.Page{Limit: 10}, Query: plannedIn(ev.At, until)}
	for range earlierPages {
		rows, next, err := c.read.Executions(ctx, f)
		if err != nil {
			return err
		}
		for i := range rows {
			if x := &rows[i]; x.JobUID != ev.Newest.UID && (x.OfInstant() || x.Trigger == job.TriggerAfter) {
				view, err := c.Execution(ctx, ev.Newest.Namespace, x.ID)
				if err == nil {
					ev.Earlier = &view
				}
				return err
			}
		}
		if f.After = next; next == "" {
			break
		}
	}
	return c.addBefore(ctx, ev)
}

// addBefore looks for a decision of an earlier job of the name, the newest first.
func (c *Control) addBefore(ctx context.Context, ev *Evidence) error {
	page := store.Page{Limit: 500}
	for range earlierPages {
		rows, next, err := c.read.Decisions(ctx, ev.Newest.Namespace, ev.Newest.Name, page)
		if err != nil {
			return err
		}
		for i := range rows {
			if d := &rows[i]; d.Job != ev.Newest.UID && d.From <= ev.At && ev.At <= d.To {
				ev.Before = d
				return nil
			}
		}
		if page.After = next; next == "" {
			return nil
		}
	}
	return nil
}

// earlierPages bounds how far addEarlier looks: with a query a page may be short and lead on.
const earlierPages = 20

// addKept finds out how far back executions and decisions are kept.
func (c *Control) addKept(ctx context.Context, ev *Evidence) error {
	keep := c.keep
	if c.sweeper != nil {
		own, err := c.sweeper.Retention(ctx, ev.Newest.Namespace)
		if err != nil {
			return err
		}
		keep = keep.Over(own)
	}
	ev.Kept = ev.Now.Add(-min(keep.Executions, keep.Decisions))
	return nil
}

// Bounds of a look ahead.
const (
	MaxLookAhead   = 366 * 24 * time.Hour
	upcomingSteps  = 20_000
	upcomingLimit  = 500
	upcomingPlaces = "upcoming"
)

// UpcomingRequest asks for what is due next in a namespace.
type UpcomingRequest struct {
	Namespace string
	Job       string        // "": all
	For       time.Duration // 0: 24 h; ≤ MaxLookAhead
	Page      store.Page
}

// Upcoming is an instant to come.
type Upcoming struct {
	Fire
	Job  string
	Held string // by what pause; "": none
}

// place is where a page of instants goes on: behind an instant of a job.
type place struct {
	Until job.Instant `json:"u"`
	At    job.Instant `json:"a"`
	Job   string      `json:"j"`
}

// Upcoming lists the instants to come, in their order. bound is how far the list is complete when it could not look at
// everything; the zero time: it is. With a job, instants that a pause would hold are listed too.
func (c *Control) Upcoming(ctx context.Context, r UpcomingRequest) (items []Upcoming, next string, bound time.Time, err error) {
	if r.For == 0 {
		r.For = 24 * time.Hour
	}
	if r.For < 0 || r.For > MaxLookAhead {
		return nil, "", bound, job.Errorf(job.KindInvalid, "out_of_range", "how far to look ahead is from 1s to %dd", MaxLookAhead/(24*time.Hour)).WithField("query.for").
			WithHint("such as 24h or 7d")
	}
	var from place
	more, err := store.ParseAfter(upcomingPlaces, r.Page.After, &from)
	if err != nil {
		return nil, "", bound, err
	}
	now := c.instant()
	if !more {
		from = place{Until: now.Add(r.For), At: now}
	}
	from.Until = min(from.Until, now.Add(MaxLookAhead))
	var all []ahead
	if r.Job != "" {
		row, err := c.read.Job(ctx, r.Namespace, r.Job)
		if err != nil {
			return nil, "", bound, err
		}
		all = []ahead{aheadOf(&row.Definition, row.Cursors, now, max(from.At, now))}
	} else {
		rows, cut, err := c.read.Upcoming(ctx, r.Namespace, from.Until, store.MaxUpcoming)
		if err != nil {
			return nil, "", bound, err
		}
		if cut && len(rows) > 0 {
			from.Until = min(from.Until, rows[len(rows)-1].Cursor.Next)
			bound = from.Until.Time()
		}
		all = aheadOfAll(rows, now, max(from.At, now))
	}
	items, next = merge(all, from, min(r.Page.Rows(), upcomingLimit))
	return items, next, bound, nil
}

// merge lists the instants of all jobs in the order of (instant, job) behind a place.
func merge(all []ahead, from place, limit int) (items []Upcoming, next string) {
	for steps := 0; steps < upcomingSteps; steps++ {
		best, at := -1, time.Time{}
		for i := range all {
			if first, ok := all[i].first(); ok && (best < 0 || cmp.Or(first.Compare(at), cmp.Compare(all[i].def.Name, all[best].def.Name)) < 0) {
				best, at = i, first
			}
		}
		if best < 0 || job.InstantOf(at) > from.Until {
			return items, ""
		}
		if len(items) == limit {
			last := &items[limit-1]
			return items, store.After(upcomingPlaces, place{from.Until, job.InstantOf(last.At), last.Job})
		}
		u := all[best].take(at)
		if i := job.InstantOf(at); i > from.At || i == from.At && from.Job != "" && u.Job > from.Job {
			items = append(items, u)
		}
	}
	return items, ""
}
