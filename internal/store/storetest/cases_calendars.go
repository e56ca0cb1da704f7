package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

func putCalendar(name string, weekly ...string) store.PutCalendar {
	return store.PutCalendar{At: noon + 3, Change: job.Change{By: "me", Reason: "why " + name},
		Calendar: job.Calendar{Namespace: "ns", Name: name, Spec: job.CalendarSpec{Title: "t", Calendar: schedule.Calendar{Weekly: weekly}}}}
}

func keepsTo(calendars ...string) job.Spec {
	return job.Spec{Pool: "p", Handler: "h", Schedules: []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "0 9 * * *", Calendars: calendars}}}}
}

// applied must go through.
func (d *desk) applied(a store.ApplyJobs) store.AppliedSet {
	d.tb.Helper()
	got, err := d.s.ApplyJobs(ctx, a)
	if err != nil {
		d.tb.Fatalf("ApplyJobs: %v", err)
	}
	return got
}

func (d *desk) dropInbox() {
	d.tb.Helper()
	page, err := d.s.InboxPage(ctx, 0, 1000)
	wantVerdict(d.tb, "InboxPage", err, "ok")
	var b engine.Batch
	for _, e := range page.Entries {
		b.Consumed = append(b.Consumed, e.ID)
	}
	d.commit(b)
}

var calendarCases = []examCase{
	{"Calendars/a set of both", func(tb TB, s store.Store) {
		d := sit(tb, s)
		both := item("j", 1, "h")
		both.Definition.Spec = keepsTo("cn")
		a := store.ApplyJobs{Items: []store.PutJob{both}}
		var refused *job.SetError
		d.unchanged("without the calendar", "invalid/calendar_not_found", func() error { _, err := s.ApplyJobs(ctx, a); errors.As(err, &refused); return err })
		if refused == nil || refused.Items[0].Err.Field != "spec.schedule.calendars[0]" || refused.Items[0].Calendar {
			tb.Errorf("refused: %+v", refused)
		}
		a.Calendars = []store.PutCalendar{putCalendar("cn", "MON-FRI")}
		a.DryRun = true
		before := d.everything()
		dry := d.applied(a)
		equal(tb, "a dry run writes nothing", d.everything(), before)
		a.DryRun = false
		got := d.applied(a)
		if c := got.Calendars[0]; c.Action != store.ActionCreated || c.Calendar.Revision != 1 || c.Before != nil || c.Jobs != 0 || c.Written != nil {
			tb.Errorf("calendar: %+v", c)
		}
		equal(tb, "of a dry run", dry.Calendars[0].Calendar, got.Calendars[0].Calendar)
		equal(tb, "the job has it", got.Jobs[0].Definition.Calendars["cn"].Spec, a.Calendars[0].Calendar.Spec)
		a.Calendars[0].IfRevision, a.Items[0].IfRevision = 7, 7
		d.unchanged("another revision", "conflict/revision_changed", func() error { _, err := s.ApplyJobs(ctx, a); errors.As(err, &refused); return err })
		if len(refused.Items) != 1 || !refused.Items[0].Calendar {
			tb.Errorf("refused: %+v", refused)
		}
	}},
	{"Calendars/a change tells the jobs that name it", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("cn"), putCalendar("other")}})
		d.putJob("a", 1, keepsTo("cn"))
		d.putJob("b", 2, keepsTo("other"))
		d.putJob("c", 3, keepsTo("other", "cn"))
		d.putJob("d", 4, keepsTo("cn"))
		d.putJob("d", 4, keepsTo()) // not any more
		d.putJob("e", 5, keepsTo("cn"))
		_, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "e", Deletion: job.Deletion{At: noon}})
		wantVerdict(tb, "DeleteJob", err, "ok")
		d.dropInbox()
		same := d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("cn")}})
		equal(tb, "the same again", []any{same.Calendars[0].Action, same.Calendars[0].Written == nil}, []any{store.ActionUnchanged, true})
		got := d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("cn", "MON")}}).Calendars[0]
		equal(tb, "jobs", []any{got.Action, got.Calendar.Revision, got.Before.Revision, got.Jobs}, []any{store.ActionChanged, int64(2), int64(1), 2})
		page, err := s.InboxPage(ctx, 0, 1000)
		wantVerdict(tb, "InboxPage", err, "ok")
		var told []string
		for _, e := range page.Entries {
			told = append(told, fmt.Sprintf("%s %s %d", e.Kind, e.Definition.Name, e.Definition.Calendars["cn"].Revision))
		}
		equal(tb, "told", told, []string{"job_changed a 2", "job_changed c 2"})
		equal(tb, "the receipt is the last of them", got.Written, []store.Written{{Partition: 0, Entry: page.Entries[1].ID}})
		equal(tb, "namers", all(tb, func(p store.Page) ([]string, string, error) { return s.CalendarJobs(ctx, "ns", "cn", p) }, func(name string) string { return name }), "a c ")
	}},
	{"Calendars/definitions carry the newest", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("cn"), putCalendar("unused")}})
		_, put := d.putJob("a", 1, keepsTo("cn"))
		c := job.Cursor{Job: job.UID{1}, Schedule: "main", Revision: 1, Stamp: 1, Next: noon}
		e, b := d.execution(job.ExecutionRunning, job.ShardRunning)
		b.Executions[0].Row.JobUID, b.Cursors, b.Consumed = job.UID{1}, []job.Cursor{c}, []int64{put.Entry}
		d.commit(b)
		d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("cn", "MON")}})
		check := func(what string, got *job.Definition) {
			tb.Helper()
			if got == nil || len(got.Calendars) != 1 || got.Calendars["cn"].Revision != 2 || got.Stamp() != 2 {
				tb.Errorf("%s: %+v", what, got)
			}
		}
		due, err := s.DuePage(ctx, 0, engine.WantDue{Until: endOfTime, Limit: 10})
		wantVerdict(tb, "DuePage", err, "ok")
		equal(tb, "its cursor is older", due.Items[0].Cursor, c)
		check("DuePage", due.Items[0].Definition)
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		check("LoadPartition", loaded.Executions[0].Definition)
		check("ExecutionPage", d.found(e.ID).Definition)
		row, err := s.Job(ctx, "ns", "a")
		wantVerdict(tb, "Job", err, "ok")
		check("Job", &row.Definition)
		equal(tb, "cursors", row.Cursors, []job.Cursor{c})
		rows, _, err := s.Jobs(ctx, "ns", store.Page{})
		wantVerdict(tb, "Jobs", err, "ok")
		check("Jobs", &rows[0].Definition)
		v, err := s.Revision(ctx, "ns", "a", 1)
		wantVerdict(tb, "Revision", err, "ok")
		check("Revision", &v.Definition)
		c.Stamp, c.Next = 2, noon+1
		d.commit(engine.Batch{Cursors: []job.Cursor{c}})
		row, err = s.Job(ctx, "ns", "a")
		wantVerdict(tb, "Job", err, "ok")
		equal(tb, "a cursor is changed", row.Cursors, []job.Cursor{c})
	}},
	{"Calendars/what was said before comes with an entry", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("cn"), putCalendar("us"), putCalendar("jp")}})
		d.putJob("b", 2, keepsTo())
		d.putJob("b", 2, keepsTo("jp"))
		page, _ := s.InboxPage(ctx, 0, 1000)
		equal(tb, "never taken in", []any{len(page.Entries[0].Past.Revisions), len(page.Entries[0].Past.Calendars)}, []any{1, 1})
		d.dropInbox()
		d.putJob("a", 1, keepsTo("cn"))
		c := job.Cursor{Job: job.UID{1}, Schedule: "main", Revision: 1, Stamp: 1, Next: endOfTime}
		d.commit(engine.Batch{Cursors: []job.Cursor{c}})
		past := func() string {
			page, err := s.InboxPage(ctx, 0, 1000)
			wantVerdict(tb, "InboxPage", err, "ok")
			text := ""
			for _, e := range page.Entries {
				if e.Past == nil {
					return "none"
				}
				text = ""
				for _, d := range e.Past.Revisions {
					text += fmt.Sprintf("%d%v ", d.Revision, d.Spec.Calendars())
				}
				for _, c := range e.Past.Calendars {
					text += fmt.Sprintf("%s %d %s ", c.Name, c.Revision, c.UpdatedAt)
				}
			}
			return text
		}
		at := func(name string, at job.Instant, days ...string) store.PutCalendar {
			p := putCalendar(name, days...)
			p.At = at
			return p
		}
		d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{at("cn", noon+4, "MON")}})
		equal(tb, "one change, nothing due before it", past(), "none")
		c.Next = noon + 4
		d.commit(engine.Batch{Cursors: []job.Cursor{c}})
		equal(tb, "one change, and what was due", past(), fmt.Sprintf("cn 2 %s cn 1 %s ", noon+4, noon+3))
		c.Next = endOfTime
		d.commit(engine.Batch{Cursors: []job.Cursor{c}})
		d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{at("cn", noon+5, "TUE")}})
		equal(tb, "two changes", past(), fmt.Sprintf("cn 3 %s cn 2 %s cn 1 %s ", noon+5, noon+4, noon+3))
		d.putJob("a", 1, keepsTo("us"))
		d.putJob("a", 1, keepsTo())
		equal(tb, "of the job, too", past(), fmt.Sprintf("2[us] 1[cn] cn 3 %s cn 2 %s cn 1 %s us 1 %s ", noon+5, noon+4, noon+3, noon+3))
		c.Revision, c.Stamp = 3, 0
		d.commit(engine.Batch{Cursors: []job.Cursor{c}})
		equal(tb, "taken in", past(), "none")
		for n := range engine.PastMax + 3 {
			d.putJob("a", 1, job.Spec{Pool: "p", Handler: fmt.Sprint("h", n)})
		}
		page, _ = s.InboxPage(ctx, 0, 1000)
		p := page.Entries[0].Past.Revisions
		equal(tb, "the newest, and the cursor's", []any{len(p), p[0].Revision, p[len(p)-1].Revision}, []any{engine.PastMax + 1, int64(engine.PastMax + 5), int64(3)})
		d.dropInbox()
		d.putJob("b", 2, keepsTo("cn"))
		for n := range engine.PastMax + 4 { // of a calendar more are known
			d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{at("cn", noon+job.Instant(10+n), []string{"MON", "TUE"}[n%2])}})
		}
		d.commit(engine.Batch{Cursors: []job.Cursor{{Job: job.UID{2}, Schedule: "main", Revision: 1, Stamp: 3, Next: noon + 5}}})
		page, _ = s.InboxPage(ctx, 0, 1000)
		known := slices.DeleteFunc(page.Entries[0].Past.Calendars, func(c job.Calendar) bool { return c.Name != "cn" })
		equal(tb, "all of the calendar", []any{len(known) > engine.PastMax+4, int64(len(known))}, []any{true, known[0].Revision})
		d.dropInbox()
		big := job.Spec{Pool: "p", Handler: "h", Params: json.RawMessage(`"` + strings.Repeat("x", job.MaxParams-2) + `"`)}
		for n := range byte(4) { // together more than a page may bring
			for range 12 {
				big.Handler += "h"
				d.putJob(fmt.Sprintf("big%d", n), 10+n, big)
			}
			d.commit(engine.Batch{Cursors: []job.Cursor{{Job: job.UID{10 + n}, Schedule: "main", Revision: 1}}})
		}
		page, _ = s.InboxPage(ctx, 0, 1000)
		equal(tb, "the page is cut", []any{page.Partial, len(page.Entries) > 0 && len(page.Entries) < 4*12}, []any{true, true})
	}},
	{"Calendars/lives of a name", func(tb TB, s store.Store) {
		d := sit(tb, s)
		first := d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("cn")}}).Calendars[0].Calendar
		d.putJob("a", 1, keepsTo("cn"))
		gone := store.DeleteCalendar{Namespace: "ns", Name: "cn", IfRevision: 9, At: noon + 9, Change: job.Change{By: "you", Reason: "over"}}
		d.unchanged("another revision", "conflict/revision_changed", func() error { _, err := s.DeleteCalendar(ctx, gone); return err })
		gone.IfRevision = 1
		d.unchanged("in use", "conflict/calendar_in_use", func() error { _, err := s.DeleteCalendar(ctx, gone); return err })
		d.putJob("a", 1, keepsTo())
		got, err := s.DeleteCalendar(ctx, gone)
		wantVerdict(tb, "delete", err, "ok")
		equal(tb, "deleted", got, first)
		d.unchanged("again", "not_found/calendar_not_found", func() error { _, err := s.DeleteCalendar(ctx, gone); return err })
		_, err = s.Calendar(ctx, "ns", "cn")
		wantVerdict(tb, "read", err, "not_found/calendar_not_found")
		_, _, err = s.PutJob(ctx, store.PutJob{At: noon, Definition: job.Definition{UID: job.UID{9}, Namespace: "ns", Name: "b", Spec: keepsTo("cn")}})
		wantVerdict(tb, "named", err, "invalid/calendar_not_found")
		again := putCalendar("cn", "SUN")
		again.At, again.IfRevision = noon+20, -1
		next := d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{again}}).Calendars[0]
		equal(tb, "the next life", []any{next.Action, next.Calendar.Revision, next.Calendar.CreatedAt}, []any{store.ActionCreated, int64(3), noon + 20})
		equal(tb, "history", all(tb, func(p store.Page) ([]store.CalendarRevision, string, error) {
			return s.CalendarRevisions(ctx, "ns", "cn", p)
		},
			func(v store.CalendarRevision) string {
				return fmt.Sprintf("%d %s %v", v.Calendar.Revision, v.Change.By, v.Deleted)
			}), "3 me false 2 you true 1 me false ")
		v, err := s.CalendarRevision(ctx, "ns", "cn", 1)
		wantVerdict(tb, "first", err, "ok")
		equal(tb, "first", v.Calendar.Spec, first.Spec)
		_, err = s.CalendarRevision(ctx, "ns", "cn", 2)
		wantVerdict(tb, "the deletion", err, "not_found/revision_not_found")
		_, err = s.CalendarRevision(ctx, "ns", "x", 1)
		wantVerdict(tb, "no such calendar", err, "not_found/calendar_not_found")
	}},
	{"Calendars/unfit", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.applied(store.ApplyJobs{Calendars: []store.PutCalendar{putCalendar("json"), putCalendar("bad"), putCalendar("good")}})
		for i, name := range []string{"json", "bad", "good"} {
			d.putJob(name, byte(i+1), keepsTo(name))
		}
		for name, spec := range map[string]string{"json": `{"weekly": `, "bad": `{"weekly":["XYZ"]}`} {
			if err := s.(Spoiler).Spoil(ctx, `UPDATE calendar_revisions SET spec = '`+spec+`' WHERE name = '`+name+`'`); err != nil { //nolint:forcetypeassert // of the exam
				tb.Fatalf("Spoil: %v", err)
			}
		}
		for name, unfit := range map[string]bool{"json": true, "bad": true, "good": false} {
			row, err := s.Job(ctx, "ns", name)
			wantVerdict(tb, name, err, "ok")
			def := row.Definition
			if _, err := def.Parse(def.Spec.Schedules[0].Spec); (err != nil) != unfit || (def.Calendars[name].Unfit != "") != unfit {
				tb.Errorf("%s: %v, %+v", name, err, def.Calendars[name])
			}
		}
	}},
}
