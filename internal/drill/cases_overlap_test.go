package drill_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// span is the time of an execution from its first lease to its end.
type span struct {
	id         job.ExecutionID
	planned    job.Instant
	begin, end time.Time
}

// spans lists what ran of a job, by begin.
func spans(h *drill.History, name string) (all []span) {
	for _, x := range h.Executions {
		s := span{id: x.ID, planned: x.PlannedAt}
		for _, e := range h.Events {
			switch {
			case e.Execution != x.ID || x.Job != name:
			case e.Kind == engine.FactLeaseGranted && s.begin.IsZero():
				s.begin = e.When
			case e.Kind == engine.FactExecutionState && job.ExecutionState(e.To).Ended():
				s.end = e.When
			}
		}
		if !s.begin.IsZero() {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.begin.Compare(b.begin) })
	return all
}

// serial is I25: what ran of a job did so one by one, in the order of planned time.
func serial(t *testing.T, h *drill.History, name string) []span {
	t.Helper()
	all := spans(h, name)
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; b.begin.Before(a.end) || b.planned <= a.planned {
			t.Errorf("I25: %s (planned %s) begins at %v, %s (planned %s) ends at %v", b.id, b.planned, b.begin, a.id, a.planned, a.end)
		}
	}
	return all
}

// blocked counts the instants of a job that were dropped for a reason.
func blocked(h *drill.History, name string, why job.Reason) (n int64) {
	for _, e := range h.Events {
		if e.Kind == engine.FactDecided && e.Job == "default/"+name && e.To == string(job.DecisionBlocked) && e.Reason == why {
			n += e.Count
		}
	}
	return n
}

func (c *cluster) state(id string) takt.Execution {
	c.t.Helper()
	x, err := c.people.Execution(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return x
}

// TestC55CancellingWhatWaits: one runs, five wait. What waits ends when it is cancelled; when the one that runs is, the next
// one starts; when all are, nothing is left and the next instant runs.
func TestC55CancellingWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 55, classicLease)
		c.start()
		spec := paced(t, 1, work{Steps: 60, StepMs: 1000})
		five := 5
		spec.Overlap, spec.Schedule = &takt.OverlapSpec{MaxQueued: &five}, &takt.ScheduleSpec{Every: takt.Duration(10 * time.Minute)}
		c.put("serial", spec)
		c.join("A", 4)
		time.Sleep(time.Second)
		var ids []string
		for range 6 {
			ids = append(ids, c.mustTrigger("serial", ""))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		over := c.mustTrigger("serial", "")
		if x := c.state(over); x.State != "cancelled" || x.Reason != "overlap_full" {
			t.Errorf("the seventh is %s (%s)", x.State, x.Reason)
		}
		if x := c.state(ids[3]); x.State != "scheduled" || x.Waits != "overlap" || x.WaitsFor != ids[0] {
			t.Errorf("the third that waits: %+v", x)
		}
		c.ask(c.people.Cancel, ids[3])
		time.Sleep(time.Second)
		if x := c.state(ids[3]); x.State != "cancelled" {
			t.Errorf("cancelled while it waited, and %s", x.State)
		}
		c.ask(c.people.Cancel, ids[0])
		time.Sleep(10 * time.Second)
		if a, b := c.state(ids[0]), c.state(ids[1]); a.State != "cancelled" || b.State != "running" || b.StartedAt.Sub(*a.EndedAt) > time.Second {
			t.Errorf("the one that ran: %+v, the next: %+v", a, b)
		}
		for _, id := range []string{ids[5], ids[1], ids[2], ids[4]} {
			c.ask(c.people.Cancel, id)
		}
		time.Sleep(20 * time.Second)
		if j, err := c.people.Job(t.Context(), "serial"); err != nil || j.Status.Live != nil {
			t.Errorf("all are cancelled: %+v, %v", j.Status, err)
		}
		time.Sleep(11 * time.Minute)
		c.settled(5 * time.Minute)
		h := c.close()
		sound(t, h)
		serial(t, h, "serial")
		for _, id := range []string{ids[3], ids[5]} {
			if g := grants(h, id)[0]; len(g) > 0 {
				t.Errorf("cancelled while it waited, and leased: %+v", g)
			}
		}
		next := slices.IndexFunc(h.Executions, func(x job.Execution) bool { return x.Trigger == job.TriggerSchedule })
		if next < 0 || h.Executions[next].State != job.ExecutionSucceeded {
			t.Errorf("the next instant: %d of %+v", next, h.Executions)
		}
	})
}

// TestC57ForbidAfterACrash: the worker, the server or the way between them dies in the midst of a run. Nothing runs beside
// it, and nothing is blocked for longer than it lasts.
func TestC57ForbidAfterACrash(t *testing.T) {
	long(t)
	for _, how := range []string{"worker", "server", "partition"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 57, classicLease)
				c.start()
				spec := paced(t, 1, work{Steps: 65, StepMs: 1000})
				spec.Overlap, spec.Schedule = &takt.OverlapSpec{Policy: "skip"}, &takt.ScheduleSpec{Every: takt.Duration(time.Minute)}
				c.promise("minutely", spec)
				a := c.join("A", 1)
				time.Sleep(70 * time.Second)
				c.join("B", 1)
				time.Sleep(10 * time.Second)
				switch how {
				case "worker":
					a.kill()
				case "server":
					c.end(true)
					time.Sleep(5 * time.Second)
					c.start()
				case "partition":
					a.link.Cut()
					c.later(2*time.Minute, a.link.Heal)
				}
				time.Sleep(10 * time.Minute)
				c.healed = time.Now()
				spec.Schedule = nil
				c.put("minutely", spec)
				c.settled(5 * time.Minute)
				h := c.close()
				sound(t, h) // each instant is an execution or a decision
				ran := serial(t, h, "minutely")
				skipped := blocked(h, "minutely", job.ReasonOverlapSkip)
				if len(ran) < 4 || skipped < 4 {
					t.Errorf("%d ran, %d were skipped", len(ran), skipped)
				}
				for i := 1; i < len(ran); i++ {
					if gap := ran[i].begin.Sub(ran[i-1].end); gap > c.lease.TTL+time.Minute {
						t.Errorf("nothing ran for %v behind %s", gap, ran[i-1].id)
					}
				}
			})
		})
	}
}

// TestC59ReplaceAndQueueGrowth: a newer execution replaces the one that runs as soon as that has stopped, other jobs go on;
// and what queues behind runs that are longer than their period is bounded, recorded and told.
func TestC59ReplaceAndQueueGrowth(t *testing.T) {
	long(t)
	minutes, least := 40, 1 // of drops; the two hours of the case with -seeds 100
	if *manySeeds > 20 {
		minutes, least = 120, 8
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 59, classicLease)
		c.start()
		every := func(name string, d time.Duration, o *takt.OverlapSpec, steps int) {
			spec := paced(t, 1, work{Steps: steps, StepMs: 5000})
			spec.Schedule, spec.Overlap = &takt.ScheduleSpec{Every: takt.Duration(d)}, o
			c.promise(name, spec)
		}
		every("cover", 10*time.Second, &takt.OverlapSpec{Policy: "replace"}, 5)
		every("serial", time.Minute, nil, 13)
		every("other", 2*time.Minute, nil, 18)
		c.join("A", 6)
		waited := 0
		for range 2 * minutes {
			time.Sleep(30 * time.Second)
			j, err := c.people.Job(t.Context(), "serial")
			if err != nil {
				t.Fatal(err)
			}
			if live := j.Status.Live; live != nil && live.Waiting > 0 {
				waited++
				if live.Waiting > 1 || len(live.Running) != 1 || live.WaitingSince == nil {
					t.Errorf("its backlog is told as %+v", live)
				}
			}
		}
		if waited < minutes*100/120 {
			t.Errorf("seen to wait %d times of %d", waited, 2*minutes)
		}
		c.healed = time.Now()
		for _, name := range []string{"cover", "serial", "other"} {
			c.put(name, takt.JobSpec{Pool: "p", Handler: "work"})
		}
		c.settled(5 * time.Minute)
		h := c.close()
		sound(t, h)
		for _, name := range []string{"cover", "serial", "other"} {
			serial(t, h, name)
		}
		replaced, ended := 0, map[string]int{}
		for _, x := range h.Executions {
			ended[x.Job+" "+string(x.State)]++
			if x.Job == "cover" && x.State == job.ExecutionCancelled && x.Reason == job.ReasonReplaced {
				replaced++
			}
		}
		if ended["cover cancelled"] < 6*minutes-20 || replaced != ended["cover cancelled"] {
			t.Errorf("cover: %d replaced, ends %v", replaced, ended)
		}
		if ended["other succeeded"] != minutes/2 {
			t.Errorf("the other job was touched: %v", ended)
		}
		dropped := blocked(h, "serial", job.ReasonOverlapFull)
		if int(dropped) < least || ended["serial succeeded"]+int(dropped) != minutes {
			t.Errorf("serial: %d dropped, ends %v", dropped, ended)
		}
	})
}
