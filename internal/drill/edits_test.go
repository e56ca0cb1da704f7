package drill_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
)

const (
	editJobs   = 3
	editRounds = 12
)

// version is what a job's schedule said from when it may have been in force, and from when it was.
type version struct {
	cron     string
	calendar schedule.Calendar
	may      time.Time // before it was written
	is       time.Time // after the commit that took it in; zero: never seen
}

// has tells whether an instant is one of the version.
func (v *version) has(t *testing.T, at time.Time) bool {
	s, err := schedule.Parse(schedule.Spec{Cron: v.cron, Calendars: []string{"hours"}, Resolve: func(string) *schedule.Calendar { return &v.calendar }}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	next, ok := s.Next(at.Add(-time.Millisecond))
	return ok && next.Equal(at)
}

// editor changes schedules, and the calendar that all of them keep to.
type editor struct {
	c    *cluster
	dice *rand.Rand
	now  version // of the calendar; its cron is none
	of   [editJobs][]version
}

func editName(i int) string { return fmt.Sprintf("j%d", i) }

// hours opens the calendar in some stretches of the coming minutes.
func (e *editor) hours() (out takt.Calendar) {
	cal := schedule.Calendar{}
	for at := time.Now().UTC().Add(-20 * time.Second); len(cal.Daily) < 12; {
		to := at.Add(time.Duration(5+e.dice.IntN(20)) * time.Second)
		cal.Daily = append(cal.Daily, schedule.Window{From: at.Format(time.TimeOnly), To: to.Format(time.TimeOnly)})
		at = to.Add(time.Duration(1+e.dice.IntN(9)) * time.Second)
	}
	out = takt.Calendar{APIVersion: takt.APIVersion, Kind: "Calendar", Metadata: takt.CalendarMetadata{Name: "hours"}}
	for _, w := range cal.Daily {
		out.Spec.Daily = append(out.Spec.Daily, takt.CalendarWindow{From: w.From, To: w.To})
	}
	e.now.calendar = cal
	return out
}

// asks sends a change until it is answered.
func (e *editor) asks(send func() error) {
	var err error
	for range 100 {
		if err = send(); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	e.c.t.Errorf("no answer in time: %v", err)
}

func (e *editor) putCalendar() {
	began, cal := time.Now(), e.hours()
	for i := range e.of {
		if all := e.of[i]; len(all) > 0 {
			e.of[i] = append(all, version{cron: all[len(all)-1].cron, calendar: e.now.calendar, may: began})
		}
	}
	e.asks(func() error {
		_, err := e.c.people.PutCalendar(e.c.t.Context(), cal, takt.ChangeOptions{})
		return err
	})
}

func (e *editor) putJob(i int) {
	cron := fmt.Sprintf("%d-59/%d * * * * *", e.dice.IntN(3), 2+e.dice.IntN(5))
	e.of[i] = append(e.of[i], version{cron: cron, calendar: e.now.calendar, may: time.Now()})
	spec := takt.JobSpec{Pool: "p", Handler: "work", Overlap: &takt.OverlapSpec{Policy: "allow"}, Schedule: &takt.ScheduleSpec{Cron: cron, Calendars: []string{"hours"}}}
	e.asks(func() error {
		j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: editName(i)}, Spec: spec}
		_, err := e.c.people.PutJob(e.c.t.Context(), j, takt.PutOptions{})
		return err
	})
}

// TestEditsOverCrashes: calendars and schedules are changed while the server dies in the midst of it. Each instant of the
// version in force becomes one execution or one decision; around a change, of the old one or of the new one; nothing else
// becomes anything.
func TestEditsOverCrashes(t *testing.T) {
	long(t)
	for seed := uint64(1); seed <= uint64(max(2, *manySeeds/10)); seed++ {
		synctest.Test(t, func(t *testing.T) { playEdits(t, seed) })
	}
}

func playEdits(t *testing.T, seed uint64) {
	until("06:00:00")
	c := newCluster(t, seed, partition.Lease{})
	e := &editor{c: c, dice: rand.New(rand.NewPCG(seed, 11))}
	c.start()
	e.putCalendar()
	for i := range editJobs {
		e.putJob(i)
	}
	begin := time.Now().Add(5 * time.Second)
	time.Sleep(10 * time.Second)
	for range editRounds {
		which, how := e.dice.IntN(editJobs+1), e.dice.IntN(3)
		// About when something is due.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second - time.Duration(e.dice.IntN(1500))*time.Microsecond)))
		if how > 0 { // the change is written, and nothing takes it in before the server dies
			fault := []commitFault{commitFails, commitLost, commitLanded}[e.dice.IntN(3)]
			c.server.st.setRule(func(string, *engine.Batch) commitFault { return fault })
		}
		alive := time.Duration(e.dice.IntN([]int{500, 30_000, 2_000_000}[how])) * time.Microsecond
		done := make(chan struct{})
		c.wg.Go(func() { // it has the dice until it is done
			defer close(done)
			for range 1 + how { // several may be written before one is taken in
				if which == editJobs {
					e.putCalendar()
				} else {
					e.putJob(which)
				}
				if how == 2 {
					time.Sleep(1100 * time.Millisecond)
				}
			}
		})
		time.Sleep(alive)
		c.end(true)
		time.Sleep(time.Duration(300+rand.New(rand.NewPCG(seed, uint64(c.lives))).IntN(4000)) * time.Millisecond)
		c.start()
		<-done
		time.Sleep(time.Duration(8+e.dice.IntN(8)) * time.Second)
	}
	end := time.Now().Add(-3 * time.Second)
	e.explained(seed, begin, end)
	h := c.close()
	checked := 0
	for i := range e.of {
		checked += e.judge(t, seed, h, i, begin, end)
	}
	if checked < 10*editJobs {
		t.Errorf("seed %d: only %d instants were certain", seed, checked)
	}
}

// explained asks about each second: nothing may be without a reason.
func (e *editor) explained(seed uint64, begin, end time.Time) {
	for i := range e.of {
		for at := begin.Truncate(time.Second); at.Before(end); at = at.Add(time.Second) {
			got, err := e.c.people.Explain(e.c.t.Context(), editName(i), at.Format(time.RFC3339))
			if err != nil || got.Verdict == string(control.VerdictUnexplained) {
				e.c.t.Errorf("seed %d: %s at %s: %s %s, %v", seed, editName(i), at.Format(time.TimeOnly), got.Verdict, got.Text, err)
			}
		}
	}
}

// judge compares what became of each second with what the versions of a job say; it tells how many of them were certain.
func (e *editor) judge(t *testing.T, seed uint64, h *drill.History, i int, begin, end time.Time) int {
	name, all := editName(i), e.of[i]
	fates := map[job.Instant]int{}
	for _, x := range h.Executions {
		if x.Job == name {
			fates[x.PlannedAt]++
		}
	}
	for _, ev := range h.Events {
		switch {
		case ev.Job != "default/"+name:
		case ev.Kind == engine.FactUnexplained:
			t.Errorf("seed %d: %s: unexplained: %+v", seed, name, ev)
		case ev.Kind == engine.FactDecided && ev.Count != 1:
			t.Errorf("seed %d: %s: more than one instant is decided at once: %+v", seed, name, ev)
		case ev.Kind == engine.FactDecided:
			fates[ev.PlannedAt]++
		case ev.Kind == engine.FactJobChanged:
			for v := range all { // the oldest that was written and not yet seen: the next one is written later
				if all[v].is.IsZero() && !ev.When.Before(all[v].may) {
					all[v].is = ev.When
					break
				}
			}
		}
	}
	checked, open := 0, 0
	for at := begin.Truncate(time.Second); at.Before(end); at = at.Add(time.Second) {
		can, must := false, true
		for v := range all {
			over := v+1 < len(all) && !all[v+1].is.IsZero() && at.After(all[v+1].is)
			if at.Before(all[v].may) || over {
				continue
			}
			has := all[v].has(t, at)
			can, must = can || has, must && has
		}
		switch n := fates[job.InstantOf(at)]; {
		case n > 1, n == 1 && !can, n == 0 && must && can:
			t.Errorf("seed %d: %s: %s has %d fates; an instant of a version: %t, of all that may be in force: %t", seed, name, at.Format(time.TimeOnly), n, can, must)
		case can && must:
			checked++
		case can:
			open++
		}
	}
	t.Logf("seed %d: %s: %d versions, %d instants were certain, %d of one of two versions", seed, name, len(all), checked, open)
	return checked
}
