package storetest

import (
	"fmt"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// someCalendars are the names that a schedule keeps to, or none; sometimes one that is not there.
func (h *history) someCalendars() (names []string) {
	for n := range 3 {
		if h.rng.IntN(4) == 0 {
			names = append(names, fmt.Sprintf("cal-%d", n))
		}
	}
	return names
}

func (h *history) someCalendar() (namespace, name string) {
	return pick(h, []string{"a", "b"}), fmt.Sprintf("cal-%d", h.rng.IntN(3))
}

func (h *history) putCalendars() (all []store.PutCalendar) {
	named := map[jobName]bool{}
	for range h.rng.IntN(4) {
		namespace, name := h.someCalendar()
		if named[jobName{namespace, name}] {
			continue
		}
		named[jobName{namespace, name}] = true
		p := store.PutCalendar{At: h.clock, IfRevision: pick(h, []int64{0, 0, 0, 0, 0, 0, 1, -1}), Change: job.Change{By: "me", Reason: h.text()},
			Calendar: job.Calendar{Namespace: namespace, Name: name, Spec: job.CalendarSpec{Title: pick(h, []string{"", "ünï"}),
				Calendar: schedule.Calendar{Weekly: pick(h, [][]string{nil, {"MON-FRI"}})}}}}
		if h.rng.IntN(3) == 0 {
			p.Calendar.Labels = map[string]string{"x": pick(h, []string{"1", "2"})}
			p.Calendar.Spec.Closed = []schedule.Dates{{From: "10-01", To: "10-07", Name: "国庆节"}}
		}
		if h.rng.IntN(20) == 0 {
			p.Calendar.Spec.Title = "nul\x00"
		}
		all = append(all, p)
	}
	return all
}

// changeCalendars writes or deletes some and looks at one.
func (h *history) changeCalendars() {
	namespace, name := h.someCalendar()
	h.clock++
	if h.rng.IntN(3) == 0 {
		d := store.DeleteCalendar{Namespace: namespace, Name: name, IfRevision: pick(h, []int64{0, 0, 0, 1}), At: h.clock, Change: job.Change{By: "me", Reason: h.text()}}
		_, _ = both(h, "DeleteCalendar", func(s store.Store) (job.Calendar, error) { return s.DeleteCalendar(ctx, d) })
	} else {
		a := store.ApplyJobs{Calendars: h.putCalendars(), DryRun: h.rng.IntN(4) == 0}
		_, _ = both(h, "ApplyJobs of calendars", func(s store.Store) (store.AppliedSet, error) { return s.ApplyJobs(ctx, a) })
	}
	h.compareCalendar(namespace, name)
}

func (h *history) compareCalendar(namespace, name string) {
	h.tb.Helper()
	n := h.rng.Int64N(4)
	_, _ = both(h, "Calendar", func(s store.Store) (job.Calendar, error) { return s.Calendar(ctx, namespace, name) })
	_, _ = both(h, "CalendarRevision", func(s store.Store) (store.CalendarRevision, error) {
		return s.CalendarRevision(ctx, namespace, name, n)
	})
	_, _ = both(h, "CalendarRevisions", walk(3, func(s store.Store, p store.Page) ([]store.CalendarRevision, string, error) {
		return s.CalendarRevisions(ctx, namespace, name, p)
	}))
	_, _ = both(h, "CalendarJobs", walk(1, func(s store.Store, p store.Page) ([]string, string, error) {
		return s.CalendarJobs(ctx, namespace, name, p)
	}))
	_, _ = both(h, "Calendars", walk(2, func(s store.Store, p store.Page) ([]job.Calendar, string, error) {
		return s.Calendars(ctx, namespace, p)
	}))
}
