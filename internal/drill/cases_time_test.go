package drill_test

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// clock is an instant of the first day of a bubble, or of a later one.
func clock(text string, days int) time.Time {
	at, err := time.Parse(time.TimeOnly, text)
	if err != nil {
		panic(err)
	}
	return time.Date(2000, 1, 1+days, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// until sleeps until a time of the first day.
func until(text string) { time.Sleep(time.Until(clock(text, 0))) }

// away lets the server die at one time of the first day and come back at another one.
func (c *cluster) away(from, to string) {
	c.t.Helper()
	until(from)
	c.end(true)
	until(to)
	c.start()
}

// planned lists the planned instants of a job's executions, in their order, that a trigger made; "": any.
func planned(h *drill.History, name string, trigger job.Trigger) (all []string) {
	var at []job.Instant
	for _, x := range h.Executions {
		if x.Job == name && (trigger == "" || x.Trigger == trigger) {
			at = append(at, x.PlannedAt)
		}
	}
	slices.Sort(at)
	for _, i := range at {
		all = append(all, i.Time().Format("02 15:04:05"))
	}
	return all
}

// decided counts the instants of a job that became no execution, by what was decided and why.
func decided(h *drill.History, name string) map[string]int64 {
	all := map[string]int64{}
	for _, e := range h.Events {
		if e.Kind == engine.FactDecided && e.Job == "default/"+name {
			all[e.To+" "+string(e.Reason)] += e.Count
		}
	}
	return all
}

// lateness is by how much the executions of a job began late at most, of those that a trigger made.
func lateness(h *drill.History, name string, trigger job.Trigger) (most time.Duration) {
	made := map[job.ExecutionID]bool{}
	for _, x := range h.Executions {
		made[x.ID] = x.Trigger == trigger
	}
	for _, s := range spans(h, name) {
		if made[s.id] {
			most = max(most, s.begin.Sub(s.planned.Time()))
		}
	}
	return most
}

// easyLease makes hours cheap: little is asked while nothing happens.
var easyLease = partition.Lease{OwnerTTL: 20 * time.Second, Renew: 6 * time.Second, Look: 5 * time.Second, TTL: 2 * time.Minute, Beat: 30 * time.Second, Margin: 10 * time.Second}

// soonEnough is what a look of the database and a poll may cost.
const soonEnough = 1200 * time.Millisecond

func (c *cluster) change(change func() (takt.Job, error)) {
	c.t.Helper()
	if _, err := change(); err != nil {
		c.t.Error(err)
	}
}

func wantPlanned(t *testing.T, h *drill.History, name string, trigger job.Trigger, want ...string) {
	t.Helper()
	if got := planned(h, name, trigger); !slices.Equal(got, want) {
		t.Errorf("%s, made by %q: %v, want %v", name, trigger, got, want)
	}
}

func wantDecided(t *testing.T, h *drill.History, name, what string, want int64) {
	t.Helper()
	got := decided(h, name)
	if len(got) > 1 || got[what] != want || want == 0 && len(got) > 0 {
		t.Errorf("%s: decided %v, want %d %q", name, got, want, what)
	}
}

// TestC15FixedRate: a rate keeps its anchor over restarts and edits, does not drift, and follows the misfire policy over an
// outage. The other kind, which counts from the end, has a name of its own.
func TestC15FixedRate(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		until("07:10:00")
		c := newCluster(t, 15, easyLease)
		c.start()
		c.join("A", 4)
		hourly := paced(t, 1, work{Steps: 1, StepMs: 3000})
		hourly.Schedule = &takt.ScheduleSpec{Every: takt.Duration(time.Hour)}
		anchor := job.InstantOf(*c.put("hourly", hourly).Metadata.CreatedAt)
		phased := hourly
		phased.Schedule = &takt.ScheduleSpec{Every: takt.Duration(time.Hour), Phase: new(takt.Duration(10 * time.Minute))}
		minutely := hourly
		minutely.Schedule = &takt.ScheduleSpec{Every: takt.Duration(time.Minute), MaxRuns: 100}
		c.put("minutely", minutely)
		both := hourly
		both.Schedule = &takt.ScheduleSpec{Every: takt.Duration(time.Hour), Delay: takt.Duration(time.Hour)}
		if _, err := c.people.PutJob(t.Context(), takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: "both"}, Spec: both}, takt.PutOptions{}); err == nil {
			t.Error("a schedule is both a rate and a delay")
		}
		until("07:30:00")
		c.put("phased", phased)
		c.away("09:30:00", "09:30:05")
		until("09:45:00")
		hourly.Description, phased.Description = "edited", "edited"
		c.put("hourly", hourly)
		c.put("phased", phased)
		c.away("11:05:00", "11:20:00")
		until("12:11:00")
		c.settled(time.Minute)
		h := c.close()
		sound(t, h)
		wantPlanned(t, h, "phased", job.TriggerSchedule, "01 08:10:00", "01 09:10:00", "01 10:10:00", "01 12:10:00")
		wantPlanned(t, h, "phased", job.TriggerCatchUp, "01 11:10:00")
		var all []job.Instant
		for _, x := range h.Executions {
			if x.Job == "hourly" {
				all = append(all, x.PlannedAt)
			}
		}
		slices.Sort(all)
		for i, at := range all {
			if want := anchor.Add(time.Duration(i+1) * time.Hour); at != want {
				t.Errorf("hourly: run %d is planned %s, its anchor says %s", i, at, want)
			}
		}
		if len(all) != 5 {
			t.Errorf("hourly ran %d times, want 5", len(all))
		}
		runs := serial(t, h, "minutely")
		if len(runs) != 100 {
			t.Fatalf("minutely ran %d times", len(runs))
		}
		for i, r := range runs {
			if r.planned != runs[0].planned.Add(time.Duration(i)*time.Minute) {
				t.Errorf("minutely: run %d is planned %s", i, r.planned)
			}
		}
		for _, name := range []string{"hourly", "phased", "minutely"} {
			if late := lateness(h, name, job.TriggerSchedule); late > soonEnough {
				t.Errorf("%s began %s late", name, late)
			}
		}
	})
}

// TestC17MisfirePolicies: of seven instants that were missed as many run as the policy says, each with its own planned
// instant and as catch-up; the others are recorded; what is on time runs on time.
func TestC17MisfirePolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until("12:00:20")
		c := newCluster(t, 17, partition.Lease{})
		c.start()
		c.join("A", 8)
		for name, m := range map[string]*takt.MisfireSpec{"skip": {Policy: "skip"}, "once": {Policy: "once"}, "all": {Policy: "all", Limit: 5}, "serial": {Policy: "all", Limit: 5}} {
			spec := paced(t, 1, work{Steps: 1, StepMs: 7000})
			spec.Schedule, spec.Misfire = &takt.ScheduleSpec{Cron: "*/5 * * * *"}, m
			if name != "serial" {
				spec.Overlap = &takt.OverlapSpec{Policy: "allow"}
			}
			c.put(name, spec)
		}
		c.away("12:01:00", "12:38:00")
		until("12:41:00")
		c.settled(time.Minute)
		h := c.close()
		h.Beside = map[string]bool{"skip": true, "once": true, "all": true}
		sound(t, h)
		newest := []string{"01 12:15:00", "01 12:20:00", "01 12:25:00", "01 12:30:00", "01 12:35:00"}
		wantPlanned(t, h, "skip", job.TriggerCatchUp)
		wantPlanned(t, h, "once", job.TriggerCatchUp, newest[4:]...)
		wantPlanned(t, h, "all", job.TriggerCatchUp, newest...)
		wantPlanned(t, h, "serial", job.TriggerCatchUp, newest...)
		wantDecided(t, h, "skip", "skipped misfire_skip", 7)
		wantDecided(t, h, "once", "missed missed_down", 6)
		wantDecided(t, h, "all", "missed misfire_limit", 2)
		wantDecided(t, h, "serial", "missed misfire_limit", 2)
		serial(t, h, "serial")
		for _, name := range []string{"skip", "once", "all", "serial"} {
			wantPlanned(t, h, name, job.TriggerSchedule, "01 12:40:00")
			if late := lateness(h, name, job.TriggerSchedule); late > soonEnough {
				t.Errorf("%s: 12:40 began %s late", name, late)
			}
			all := spans(h, name)
			slices.SortStableFunc(all, func(a, b span) int { return cmp.Or(a.begin.Compare(b.begin), cmp.Compare(a.planned, b.planned)) })
			if !slices.IsSortedFunc(all, func(a, b span) int { return int(a.planned - b.planned) }) {
				t.Errorf("%s: ran out of order: %+v", name, all)
			}
		}
	})
}

// TestC19EnableAfterAPause: what a pause held, or came due while a job was disabled, does not fire when that ends; the next
// instant does. Ending it twice changes nothing.
func TestC19EnableAfterAPause(t *testing.T) {
	long(t)
	for _, how := range []string{"paused", "disabled"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until("07:00:20")
				c := newCluster(t, 19, easyLease)
				c.start()
				c.join("A", 4)
				spec := func(s takt.ScheduleSpec) takt.JobSpec {
					spec := paced(t, 1, work{Steps: 1, StepMs: 10})
					spec.Schedule = &s
					return spec
				}
				shot := clock("07:20:00", 0)
				jobs := map[string]takt.JobSpec{"five": spec(takt.ScheduleSpec{Cron: "*/5 * * * *"}), "daily": spec(takt.ScheduleSpec{Cron: "0 9 * * *"}),
					"late": spec(takt.ScheduleSpec{Cron: "0 9 * * *"}), "shot": spec(takt.ScheduleSpec{At: &shot})}
				for name, s := range jobs {
					c.put(name, s)
				}
				off := func(name string) {
					if s := jobs[name]; how == "disabled" {
						s.Enabled = new(bool)
						c.put(name, s)
						return
					}
					c.change(func() (takt.Job, error) {
						return c.people.PauseJob(t.Context(), name, time.Time{}, takt.ChangeOptions{})
					})
				}
				on := func(name string) {
					for range 2 {
						if how == "disabled" {
							c.put(name, jobs[name])
						} else {
							c.change(func() (takt.Job, error) { return c.people.ResumeJob(t.Context(), name) })
						}
					}
				}
				for _, do := range []struct {
					at   string
					do   func(string)
					name string
				}{{"07:02:00", off, "five"}, {"07:08:20", on, "five"}, {"07:12:00", off, "shot"}, {"07:16:00", off, "five"}, {"07:25:00", on, "shot"}, {"08:50:00", off, "daily"},
					{"08:50:10", off, "late"}, {"08:55:00", on, "daily"}, {"09:30:00", on, "late"}} {
					until(do.at)
					do.do(do.name)
				}
				for name, want := range map[string][]time.Time{"late": {clock("09:00:00", 1)}, "daily": {clock("09:00:00", 1)}, "shot": nil} {
					list, err := c.people.Upcoming(t.Context(), name, 30*time.Hour, takt.Page{})
					var next []time.Time
					for _, x := range list.Items {
						next = append(next, x.At)
					}
					if err != nil || !slices.EqualFunc(next, want, time.Time.Equal) {
						t.Errorf("%s: next are %v, want %v (%v)", name, next, want, err)
					}
				}
				x, err := c.people.Explain(t.Context(), "shot", shot.Format(time.RFC3339))
				if want := map[string]string{"paused": "skipped", "disabled": "missed"}[how]; err != nil || x.Verdict != want || len(x.Decisions) != 1 {
					t.Errorf("the instant of shot is explained as %+v, %v", x, err)
				}
				time.Sleep(time.Minute)
				c.settled(time.Minute)
				h := c.close()
				sound(t, h)
				wantPlanned(t, h, "five", "", "01 07:10:00", "01 07:15:00")
				wantPlanned(t, h, "daily", "", "01 09:00:00")
				wantPlanned(t, h, "late", "")
				wantPlanned(t, h, "shot", "")
				// What came due while it was disabled is none of its instants; what a pause held is a decision.
				wantDecided(t, h, "late", "skipped paused", map[string]int64{"paused": 1}[how])
				wantDecided(t, h, "shot", map[string]string{"paused": "skipped paused", "disabled": "missed passed"}[how], 1)
			})
		})
	}
}

// TestC21ASecondLateIsNoMisfire: within the grace an instant runs as if it were on time; behind it the policy judges, and says so.
func TestC21ASecondLateIsNoMisfire(t *testing.T) {
	for _, x := range []struct {
		back  string
		runs  []string // that the schedule made
		late  time.Duration
		blame int64
	}{
		{"00:10:03", []string{"01 00:08:00", "01 00:09:00", "01 00:10:00", "01 00:11:00", "01 00:12:00"}, 3 * time.Second, 0},
		{"00:11:28", []string{"01 00:08:00", "01 00:09:00", "01 00:11:00", "01 00:12:00"}, 28 * time.Second, 1},
	} {
		t.Run(x.back, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until("00:07:30")
				c := newCluster(t, 21, partition.Lease{})
				c.start()
				c.join("A", 4)
				spec := paced(t, 1, work{Steps: 1, StepMs: 10})
				spec.Schedule, spec.Misfire = &takt.ScheduleSpec{Cron: "* * * * *"}, &takt.MisfireSpec{Policy: "skip", Grace: takt.Duration(time.Minute)}
				c.put("minutely", spec)
				c.away("00:09:58", x.back)
				until("00:12:20")
				c.settled(time.Minute)
				h := c.close()
				sound(t, h)
				wantPlanned(t, h, "minutely", job.TriggerSchedule, x.runs...)
				wantPlanned(t, h, "minutely", job.TriggerCatchUp)
				wantDecided(t, h, "minutely", "skipped misfire_skip", x.blame)
				// A worker whose poll the dead server held asks again within some seconds.
				if late := lateness(h, "minutely", job.TriggerSchedule); late < x.late || late > x.late+8*time.Second {
					t.Errorf("began %s late, want %s and what the worker needs to ask again", late, x.late)
				}
			})
		})
	}
}
