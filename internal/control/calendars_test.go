package control_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

func calendarOf(name string, closed ...schedule.Dates) control.CalendarRequest {
	return control.CalendarRequest{Namespace: "default", Name: name, Spec: job.CalendarSpec{Calendar: schedule.Calendar{Closed: closed}}, Change: job.Change{By: "me"}}
}

// keeping is a job that is due at noon of each day that a calendar has open.
func keeping(name, calendar string) control.PutRequest {
	r := put(name, "web")
	r.Spec.Schedules = []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Cron: "0 12 * * *", Calendars: []string{calendar}, Closed: schedule.ClosedNext}}}
	return r
}

func days(all []control.Fire) (text string) {
	for _, f := range all {
		text += f.At.Format("01-02 ")
	}
	return text
}

// A set of a calendar and of jobs that name it: previews show what is due before and after, and why.
func TestApplyShowsWhatACalendarMoves(t *testing.T) {
	c, _ := open(t, &owner{}, nil)
	set := control.ApplyRequest{Calendars: []control.CalendarRequest{calendarOf("cn")}, Items: []control.PutRequest{keeping("j", "cn")}}
	done, err := c.Apply(t.Context(), set)
	if err != nil || done.Calendars[0].Action != store.ActionCreated || done.Calendars[0].Effect != control.Effective {
		t.Fatalf("%+v, %v", done, err)
	}
	set.Calendars[0] = calendarOf("cn", schedule.Dates{From: "2026-03-02", To: "2026-03-04", Name: "fair"})
	done, err = c.Apply(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	j := done.Jobs[0]
	if done.Calendars[0].Jobs != 1 || j.Action != store.ActionUnchanged || days(j.FiresBefore) != "03-02 03-03 03-04 03-05 03-06 " || days(j.Fires) != "03-05 03-06 03-07 03-08 03-09 " {
		t.Errorf("%d jobs, %s, %s, %s", done.Calendars[0].Jobs, j.Action, days(j.FiresBefore), days(j.Fires))
	}
}

func TestCalendarsOfOnePerson(t *testing.T) {
	o := &owner{}
	c, _ := open(t, o, func(c *control.Config) { c.EffectWait = 50 * time.Millisecond })
	_, err := c.PutJob(t.Context(), keeping("j", "cn"))
	wantCode(t, err, job.KindInvalid, "calendar_not_found")
	first, err := c.PutCalendar(t.Context(), calendarOf("cn"))
	if err != nil || first.Action != store.ActionCreated {
		t.Fatalf("%+v, %v", first, err)
	}
	mustPut(t, c, keeping("j", "cn"))
	bad := calendarOf("cn", schedule.Dates{From: "2026-13-01"})
	_, err = c.PutCalendar(t.Context(), bad)
	wantCode(t, err, job.KindInvalid, "bad_calendar")
	guarded := calendarOf("cn")
	guarded.IfRevision = 7
	_, err = c.PutCalendar(t.Context(), guarded)
	wantCode(t, err, job.KindConflict, "revision_changed")
	o.takes, o.woken = -1, nil
	second, err := c.PutCalendar(t.Context(), calendarOf("cn", schedule.Dates{From: "2026-03-02"}))
	if err != nil || second.Effect != control.Pending || len(o.woken) != 1 {
		t.Errorf("an owner that does not answer: %+v, woken %v, %v", second, o.woken, err)
	}
	o.takes = 0
	_, err = c.DeleteCalendar(t.Context(), calendarOf("cn"))
	wantCode(t, err, job.KindConflict, "calendar_in_use")
	back, err := c.RollbackCalendar(t.Context(), calendarOf("cn"), 1)
	if err != nil || back.Calendar.Revision != 3 || len(back.Calendar.Spec.Closed) != 0 {
		t.Errorf("%+v, %v", back, err)
	}
	_, err = c.RollbackCalendar(t.Context(), calendarOf("cn"), 9)
	wantCode(t, err, job.KindNotFound, "revision_not_found")
	all, _, err := c.CalendarRevisions(t.Context(), "default", "cn", store.Page{})
	if err != nil || len(all) != 3 || all[0].Change != (job.Change{By: "me", Reason: "rollback to revision 1"}) {
		t.Errorf("%+v, %v", all, err)
	}
}

// While a server of an older build is alive nothing is written that it would not understand.
func TestCalendarsWaitForOldServers(t *testing.T) {
	level := engine.LevelCalendars - 1
	c, _ := open(t, &owner{}, func(c *control.Config) { c.Level = func() int { return level } })
	_, err := c.PutCalendar(t.Context(), calendarOf("cn"))
	wantCode(t, err, job.KindUnavailable, "upgrade_unfinished")
	_, err = c.PutJob(t.Context(), keeping("j", "cn"))
	wantCode(t, err, job.KindUnavailable, "upgrade_unfinished")
	mustPut(t, c, put("other", "web"))
	level++
	if _, err := c.PutCalendar(t.Context(), calendarOf("cn")); err != nil {
		t.Error(err)
	}
}

// A write that tells many jobs waits once, not once for each.
func TestCalendarOfManyJobsWaitsOnce(t *testing.T) {
	o := &owner{}
	c, _ := open(t, o, func(c *control.Config) { c.EffectWait = 50 * time.Millisecond })
	set := control.ApplyRequest{Calendars: []control.CalendarRequest{calendarOf("cn")}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		r := keeping(name, "cn")
		r.Spec.Pool = name
		set.Items = append(set.Items, r)
	}
	if _, err := c.Apply(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	o.takes, o.woken = -1, nil
	done, err := c.PutCalendar(t.Context(), calendarOf("cn", schedule.Dates{From: "2026-03-02"}))
	if err != nil || done.Jobs != 8 || done.Effect != control.Pending || len(o.woken) != len(done.Written) || len(done.Written) > 4 {
		t.Errorf("%d jobs, %d receipts, woken %v, %s, %v", done.Jobs, len(done.Written), o.woken, done.Effect, err)
	}
}

// A job goes alone while a server is alive that would not cancel its executions.
func TestDeletionWithExecutionsWaitsForOldServers(t *testing.T) {
	level := engine.LevelMoves - 1
	c, _ := open(t, &owner{}, func(c *control.Config) { c.Level = func() int { return level } })
	mustPut(t, c, put("j", "web"))
	mustPut(t, c, put("k", "web"))
	_, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "j", Cancel: true})
	wantCode(t, err, job.KindUnavailable, "upgrade_unfinished")
	if _, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "k"}); err != nil {
		t.Error(err)
	}
	level++
	if _, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "j", Cancel: true}); err != nil {
		t.Error(err)
	}
}
