package drill_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
)

// executionAt finds the execution of a job's planned instant; zero when there is none.
func (c *cluster) executionAt(name string, at time.Time) (found takt.Execution) {
	c.t.Helper()
	list, err := c.people.Executions(c.t.Context(), takt.ExecutionQuery{Job: name, Page: takt.Page{Limit: 100}})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, x := range list.Items {
		if x.PlannedAt.Equal(at) {
			if found.ID != "" {
				c.t.Errorf("%s of %s has two executions", name, at)
			}
			found = c.state(x.ID)
		}
	}
	return found
}

// wantParent checks where an execution stands and by which one execution of its parent.
func (c *cluster) wantParent(when string, child takt.Execution, state, reason, parent, parentState string) {
	c.t.Helper()
	if child.State != state || child.Reason != reason {
		c.t.Errorf("%s: %s (%s), want %s (%s)", when, child.State, child.Reason, state, reason)
	}
	if len(child.Parents) != 1 || child.Parents[0].Job != "load" || child.Parents[0].Execution != parent || child.Parents[0].State != parentState {
		c.t.Errorf("%s: shown with %+v, want %q %s", when, child.Parents, parent, parentState)
	}
}

// TestC63WhichRunOfTheParent: a job at 02:00 in New York runs after that of the same day, in one named zone, at 01:00 in
// Shanghai (17:00 UTC of the day before).
func TestC63WhichRunOfTheParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		utc := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
		sleep := func(day, hour int) { time.Sleep(time.Until(utc(day, hour).Add(30 * time.Second))) }
		time.Sleep(time.Until(utc(7, 16)))
		c := newCluster(t, 63, easyLease)
		var worker *member
		// Nothing happens in between: nobody need be there.
		skip := func(day, hour int) {
			if worker != nil {
				worker.leave()
				c.end(false)
			}
			time.Sleep(time.Until(utc(day, hour).Add(-30 * time.Second)))
			c.start()
			worker = c.join("A", 4)
			sleep(day, hour)
		}
		c.start()
		worker = c.join("A", 4)
		good := paced(t, 1, work{Steps: 1, StepMs: 10})
		good.Schedule, good.Overlap = &takt.ScheduleSpec{Cron: "0 1 * * *", TimeZone: "Asia/Shanghai"}, &takt.OverlapSpec{Policy: "allow"}
		bad := paced(t, 1, work{Steps: 1, StepMs: 10, FailIn1000: 1000})
		bad.Schedule, bad.Overlap = good.Schedule, good.Overlap
		c.put("load", good)
		report := paced(t, 1, work{Steps: 1, StepMs: 10})
		report.Schedule = &takt.ScheduleSpec{Cron: "0 2 * * *", TimeZone: "America/New_York"}
		report.After = []takt.AfterSpec{{Job: "load", Match: "day", TimeZone: "Asia/Shanghai", Within: takt.Duration(6 * time.Hour)}}
		if j := c.put("report", report); len(j.Spec.After) != 1 || j.Spec.After[0].TimeZone != "Asia/Shanghai" {
			t.Errorf("the zone of the day is not shown: %+v", j.Spec.After)
		}

		// The 8th has no 02:00 in New York: the child is due at 03:00 there, on the date of the 8th in Shanghai.
		skip(7, 17)
		skip(8, 7)
		first := c.executionAt("load", utc(7, 17))
		c.wantParent("the day of the gap", c.executionAt("report", utc(8, 7)), "succeeded", "", first.ID, "succeeded")

		// On the 9th the parent has failed, and fails again by hand while the child waits: the newest attempt counts.
		c.put("load", bad)
		skip(8, 17)
		skip(9, 6)
		second := c.executionAt("load", utc(8, 17))
		c.wantParent("its parent failed", c.executionAt("report", utc(9, 6)), "scheduled", "upstream", second.ID, "failed")
		c.ask(c.people.Rerun, second.ID)
		c.endedRound(second.ID, 1)
		time.Sleep(30 * time.Second)
		c.wantParent("its rerun failed", c.executionAt("report", utc(9, 6)), "scheduled", "upstream", second.ID, "failed")
		if again := c.state(second.ID); again.Round != 1 || again.State != "failed" {
			t.Errorf("the parent was run again: %+v", again)
		}

		// Another date is run by a backfill, and succeeds: the child goes on waiting.
		c.put("load", good)
		b, err := c.people.Backfill(t.Context(), "load", takt.BackfillRequest{From: utc(6, 17).Format(time.RFC3339), To: utc(6, 17).Format(time.RFC3339)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if b, err = c.people.BackfillByID(t.Context(), b.ID); err != nil || b.State != "done" || b.Succeeded != 1 {
			t.Errorf("the backfill: %+v, %v", b, err)
		}
		c.wantParent("another date was run", c.executionAt("report", utc(9, 6)), "scheduled", "upstream", second.ID, "failed")

		// One of the same date, asked for by hand, is the newest: it counts, and is shown.
		asked := c.mustTrigger("load", "")
		c.ended(asked)
		time.Sleep(30 * time.Second)
		c.wantParent("one of the same date succeeded", c.executionAt("report", utc(9, 6)), "succeeded", "", asked, "succeeded")

		// A parent that is waited for cannot be deleted, and one that never comes is not waited for without an end.
		if _, err := c.people.DeleteJob(t.Context(), "load", false, takt.ChangeOptions{}); !errors.Is(err, takt.ErrConflict) {
			t.Errorf("the parent was deleted: %v", err)
		}
		off := good
		off.Enabled = new(bool)
		c.put("load", off)
		skip(10, 6)
		skip(10, 11)
		c.wantParent("none came yet", c.executionAt("report", utc(10, 6)), "scheduled", "upstream", "", "")
		skip(10, 12)
		x := c.executionAt("report", utc(10, 6))
		c.wantParent("none came in time", x, "cancelled", "upstream_missing", "", "")
		if x.EndedAt == nil || x.EndedAt.Before(utc(10, 12)) || x.EndedAt.After(utc(10, 12).Add(10*time.Second)) {
			t.Errorf("its wait ended at %v, want 12:00", x.EndedAt)
		}
		h := c.close()
		h.Beside = map[string]bool{"load": true}
		sound(t, h)
	})
}
