package control

import (
	"context"
	"fmt"
	"maps"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// CalendarRequest creates or changes a calendar.
type CalendarRequest struct {
	Namespace  string
	Name       string
	Labels     map[string]string
	Spec       job.CalendarSpec
	IfRevision int64 // as in PutRequest
	Change     job.Change
}

// AppliedCalendar is what became of one calendar of a set.
type AppliedCalendar struct {
	store.AppliedCalendar
	Effect Effect   // on the jobs that name it
	Shut   []string // jobs that the set does not write, of which a schedule has no instant to come by it
}

func checkCalendar(r *CalendarRequest) error {
	c := job.Calendar{Namespace: r.Namespace, Name: r.Name, Labels: r.Labels, Spec: r.Spec}
	return c.Check()
}

func (r *CalendarRequest) toStore(at job.Instant, by job.Change) store.PutCalendar {
	return store.PutCalendar{Calendar: job.Calendar{Namespace: r.Namespace, Name: r.Name, Labels: r.Labels, Spec: r.Spec},
		IfRevision: r.IfRevision, At: at, Change: by}
}

// checkCalendars judges the calendars of a set, each by itself.
func (c *Control) checkCalendars(r *ApplyRequest, at job.Instant, refused *job.SetError) (out []store.PutCalendar) {
	seen := map[string]int{}
	for i := range r.Calendars {
		item := &r.Calendars[i]
		if faults := job.FaultsOf(checkCalendar(item)); len(faults) > 0 {
			refused.AddCalendar(i, faults...)
			continue
		}
		id := item.Namespace + "/" + item.Name
		if first, doubled := seen[id]; doubled {
			refused.AddCalendar(i, job.Errorf(job.KindInvalid, "doubled_calendar", "the calendar %s is calendar %d of the set too", id, first).
				WithField("metadata.name").WithHint("keep one of them"))
			continue
		}
		seen[id] = i
		out = append(out, item.toStore(at, r.Change))
	}
	return out
}

// calendarsKnown refuses what names calendars while a server of a build that does not know them is alive: it would plan
// nothing for such a job.
func (c *Control) calendarsKnown(calendars bool, all []PutRequest) error {
	for i := range all {
		calendars = calendars || len(all[i].Spec.Calendars()) > 0
	}
	if !calendars || c.allKnow(engine.LevelCalendars) {
		return nil
	}
	return job.Errorf(job.KindUnavailable, "upgrade_unfinished", "a server of an older build that does not know calendars is alive").
		WithHint("try again when all servers run this build; `takt get servers` shows them")
}

// PutCalendar writes a new revision of a calendar, or none when nothing differs. Errors: KindInvalid with the field,
// KindConflict "revision_changed".
func (c *Control) PutCalendar(ctx context.Context, r CalendarRequest) (AppliedCalendar, error) {
	done, err := c.Apply(ctx, ApplyRequest{Calendars: []CalendarRequest{r}, Change: r.Change})
	if set, ok := asSet(err); ok {
		return AppliedCalendar{}, set.Faults().Err()
	}
	if err != nil {
		return AppliedCalendar{}, err
	}
	return done.Calendars[0], nil
}

// Calendar reads a calendar.
func (c *Control) Calendar(ctx context.Context, namespace, name string) (job.Calendar, error) {
	return c.write.Calendar(ctx, namespace, name)
}

// Calendars lists calendars by name.
func (c *Control) Calendars(ctx context.Context, namespace string, p store.Page) ([]job.Calendar, string, error) {
	return c.write.Calendars(ctx, namespace, p)
}

// CalendarJobs lists the names of the jobs that name a calendar.
func (c *Control) CalendarJobs(ctx context.Context, namespace, name string, p store.Page) ([]string, string, error) {
	return c.write.CalendarJobs(ctx, namespace, name, p)
}

// CalendarRevisions lists the revisions of a calendar, newest first, over all lives of the name.
func (c *Control) CalendarRevisions(ctx context.Context, namespace, name string, p store.Page) ([]store.CalendarRevision, string, error) {
	return c.write.CalendarRevisions(ctx, namespace, name, p)
}

// DeleteCalendar errors: KindNotFound; KindConflict "revision_changed", "calendar_in_use".
func (c *Control) DeleteCalendar(ctx context.Context, r CalendarRequest) (job.Calendar, error) {
	if err := checkChange(r.Change); err != nil {
		return job.Calendar{}, err
	}
	return c.write.DeleteCalendar(ctx, store.DeleteCalendar{Namespace: r.Namespace, Name: r.Name, IfRevision: r.IfRevision, At: c.instant(), Change: r.Change})
}

// RollbackCalendar makes a new revision that says what an older one said. Errors: KindNotFound "calendar_not_found",
// "revision_not_found", and those of PutCalendar.
func (c *Control) RollbackCalendar(ctx context.Context, r CalendarRequest, to int64) (AppliedCalendar, error) {
	if _, err := c.write.Calendar(ctx, r.Namespace, r.Name); err != nil {
		return AppliedCalendar{}, err
	}
	old, err := c.write.CalendarRevision(ctx, r.Namespace, r.Name, to)
	if err != nil {
		return AppliedCalendar{}, err
	}
	if r.Change.Reason == "" {
		r.Change.Reason = fmt.Sprintf("rollback to revision %d", to)
	}
	r.Labels, r.Spec = old.Calendar.Labels, old.Calendar.Spec
	return c.PutCalendar(ctx, r)
}

// told waits for the jobs of a set's calendars, and says of each calendar whether all have heard of it.
func (c *Control) told(ctx context.Context, all []store.AppliedCalendar) []AppliedCalendar {
	var receipts []store.Written
	for i := range all {
		receipts = append(receipts, all[i].Written...)
	}
	effects := c.effects(ctx, receipts)
	out := make([]AppliedCalendar, len(all))
	for i := range all {
		out[i] = AppliedCalendar{AppliedCalendar: all[i], Effect: Effective}
		for range all[i].Written {
			if effects[0] == Pending {
				out[i].Effect = Pending
			}
			effects = effects[1:]
		}
	}
	return out
}

// calendarsBefore is a definition with the calendars of a set as they were before it.
func calendarsBefore(d *job.Definition, all []store.AppliedCalendar) *job.Definition {
	if len(d.Calendars) == 0 {
		return d
	}
	old := *d
	old.Calendars = maps.Clone(d.Calendars)
	for i := range all {
		c := &all[i].Calendar
		if c.Namespace != d.Namespace || old.Calendars[c.Name] == nil {
			continue
		}
		if old.Calendars[c.Name] = all[i].Before; all[i].Before == nil {
			delete(old.Calendars, c.Name)
		}
	}
	return &old
}
