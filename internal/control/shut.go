package control

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// shutMost bounds the jobs that are looked at for one changed calendar.
const shutMost = 100

// addShut names, for each changed calendar of a set, the jobs of which it leaves a schedule nothing; those that the set writes, too, are
// told of by themselves. A job that cannot be read is passed over: the write has been done, or was judged.
func (c *Control) addShut(ctx context.Context, set *AppliedSet) {
	written := map[string]bool{}
	for i := range set.Jobs {
		if d := &set.Jobs[i].Definition; set.Jobs[i].Action != store.ActionUnchanged {
			written[d.Namespace+"/"+d.Name] = true
		}
	}
	for i := range set.Calendars {
		k := &set.Calendars[i]
		if k.Action != store.ActionChanged || k.Jobs == 0 {
			continue
		}
		names, _, err := c.write.CalendarJobs(ctx, k.Calendar.Namespace, k.Calendar.Name, store.Page{Limit: shutMost})
		if err != nil {
			continue
		}
		for _, name := range names {
			row, err := c.read.Job(ctx, k.Calendar.Namespace, name)
			if err != nil || written[k.Calendar.Namespace+"/"+name] {
				continue
			}
			d := withCalendars(&row.Definition, set.Calendars)
			if shuts(d, k.Calendar.Name, c.now()) {
				k.Shut = append(k.Shut, name)
			}
		}
	}
}

// withCalendars is a definition with the calendars of a set as they are after it: a dry run has not written them.
func withCalendars(d *job.Definition, set []AppliedCalendar) *job.Definition {
	out := *d
	out.Calendars = maps.Clone(d.Calendars)
	for i := range set {
		if k := &set[i].Calendar; k.Namespace == d.Namespace && out.Calendars[k.Name] != nil {
			out.Calendars[k.Name] = k
		}
	}
	return &out
}

// shuts tells whether the calendars of a schedule that names one leave it no instant to come.
func shuts(d *job.Definition, name string, now time.Time) bool {
	has := func(s schedule.Schedule) bool {
		_, is := s.Next(now)
		return is
	}
	return slices.ContainsFunc(d.Spec.Schedules, func(x job.Schedule) bool {
		if !slices.Contains(x.Calendars, name) {
			return false
		}
		s, err := d.Parse(x.Spec)
		return err != nil || schedule.AllClosed(s, has) != "" // a window that calendars leave empty does not parse
	})
}
