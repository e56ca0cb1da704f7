package drill_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// TestDelayedRequests asks for thousands of executions at instants of the next ten minutes, moves and cancels some of them,
// and lets the server die again and again: each starts once, none before its instant, none is lost. (With -seeds 100 they
// are ten thousand.)
func TestDelayedRequests(t *testing.T) {
	long(t)
	n := 100 * *manySeeds
	if raceOn || testing.Short() {
		n = 1_000
	}
	synctest.Test(t, func(t *testing.T) { playDelayed(t, n) })
}

func playDelayed(t *testing.T, n int) {
	c := newCluster(t, 5, partition.Lease{})
	c.start()
	c.put("once", takt.JobSpec{Pool: "p", Handler: "work", Params: raw(t, work{Steps: 1, StepMs: 10})})
	for _, name := range []string{"A", "B", "C"} {
		c.join(name, 20)
	}
	r := rand.New(rand.NewPCG(5, 5))
	begun, want := time.Now(), map[string]time.Time{}
	for from := 0; from < n; from += 500 {
		var items []takt.TriggerItem
		for i := from; i < from+500; i++ {
			at := begun.Add(5*time.Second + time.Duration(i)*600*time.Second/time.Duration(n) + time.Duration(r.IntN(600_000/n))*time.Millisecond).Truncate(time.Millisecond)
			key := fmt.Sprintf("order-%d", i)
			want[key] = at
			items = append(items, takt.TriggerItem{Job: "once", Key: key, At: &at})
		}
		r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		if _, err := c.people.TriggerMany(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	cancelled := map[string]bool{}
	for life := range 8 {
		for range 5 {
			i := n*(life+2)/10 + r.IntN(n/10) // due a minute or two from now
			key, at := fmt.Sprintf("order-%d", i), begun.Add(time.Duration(300+r.IntN(300_000))*time.Millisecond+time.Since(begun))
			if cancelled[key] {
				continue
			}
			if i%2 == 0 {
				_, err := c.people.CancelRequested(t.Context(), "once", key, "")
				if err == nil {
					cancelled[key] = true
				}
			} else if moved, err := c.people.RescheduleRequested(t.Context(), "once", key, takt.RescheduleOptions{At: at}); err == nil {
				want[key] = moved.PlannedAt
			}
		}
		time.Sleep(time.Duration(30+r.IntN(30)) * time.Second)
		c.end(true)
		time.Sleep(time.Duration(r.IntN(15)) * time.Second)
		c.start()
	}
	time.Sleep(time.Until(begun.Add(17 * time.Minute)))
	c.settled(time.Minute)
	if len(cancelled) < 5 {
		t.Errorf("only %d were cancelled", len(cancelled))
	}
	h := c.close()
	sound(t, h)
	states := map[string]job.Execution{}
	for _, x := range h.Executions {
		states[x.RequestKey] = x
	}
	started := map[int64]int{} // by planned instant
	for _, run := range c.runs {
		started[run.Planned.UnixMilli()]++
		if run.Start.Before(run.Planned) {
			t.Errorf("planned for %v, started %v before", run.Planned, run.Planned.Sub(run.Start))
		}
	}
	planned := map[int64]int{} // several may have been moved to one instant
	for key, at := range want {
		x, ok := states[key]
		switch {
		case !ok:
			t.Errorf("%s has no execution", key)
		case cancelled[key] && x.State != job.ExecutionCancelled, !cancelled[key] && x.State != job.ExecutionSucceeded:
			t.Errorf("%s is %s, cancelled: %t", key, x.State, cancelled[key])
		case x.PlannedAt.Time().UnixMilli() != at.UnixMilli():
			t.Errorf("%s is planned for %v, want %v", key, x.PlannedAt.Time(), at)
		}
		if !cancelled[key] {
			planned[at.UnixMilli()]++
		}
	}
	for at, n := range planned {
		if started[at] != n {
			t.Errorf("%d executions for %v, %d runs", n, time.UnixMilli(at), started[at])
		}
	}
}
