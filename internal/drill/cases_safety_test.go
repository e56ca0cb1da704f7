package drill_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
)

// paced is a job of the cluster's pool with so many steps of a second.
func paced(t *testing.T, shards int, w work) takt.JobSpec {
	t.Helper()
	params, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return takt.JobSpec{Pool: "p", Handler: "work", Params: params, Shards: &takt.ShardsSpec{Count: shards}, Retry: &takt.RetrySpec{MaxAttempts: 1}}
}

// grants lists the leases of an execution's shards in their order.
func grants(h *drill.History, execution string) map[int][]drill.Event {
	all := map[int][]drill.Event{}
	for _, e := range h.Events {
		if e.Kind == engine.FactLeaseGranted && e.Execution.String() == execution {
			all[e.Shard] = append(all[e.Shard], e)
		}
	}
	return all
}

// effectsOf counts the effects of an execution by shard and keeps the last instant of each.
func effectsOf(h *drill.History, execution string) (count map[int]int, at map[int]time.Time) {
	count, at = map[int]int{}, map[int]time.Time{}
	for _, x := range h.Effects {
		if x.Execution == execution {
			count[x.Shard]++
			at[x.Shard] = x.At
		}
	}
	return count, at
}

// TestC33OrderlyShutdown: a worker that is told to end takes nothing more, ends what fits into its grace, and hands the
// rest back: that is leased elsewhere at once, and costs no retry.
func TestC33OrderlyShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 33, classicLease)
		c.start()
		c.put("short", paced(t, 1, work{Steps: 8, StepMs: 1000}))
		c.put("long", paced(t, 1, work{Steps: 60, StepMs: 1000, Checkpoint: 1}))
		a := c.join("A", 2)
		time.Sleep(time.Second)
		short, long := c.mustTrigger("short", "s"), c.mustTrigger("long", "l")
		time.Sleep(5 * time.Second)
		c.join("B", 4)
		told := time.Now()
		c.later(time.Second, func() { _, _ = c.trigger("short", "behind") })
		a.leave() // grace 5 s: short needs 3 s more, long 55 s
		if took := time.Since(told); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("leaving took %v", took)
		}
		c.ended(short)
		c.ended(long)
		c.settled(time.Minute)
		h := c.close()
		sound(t, h)
		if g := grants(h, short)[0]; len(g) != 1 {
			t.Errorf("the short one was leased %d times", len(g))
		}
		g := grants(h, long)[0]
		if len(g) != 2 || g[1].Worker != "B" {
			t.Fatalf("the long one was leased %+v", g)
		}
		if after := g[1].When.Sub(told); after < 5*time.Second || after > 6*time.Second {
			t.Errorf("the long one was leased again %v after the signal; want at the end of the grace of 5 s, not of the lease", after)
		}
		for _, e := range h.Events {
			if e.Kind == engine.FactLeaseGranted && e.Worker == "A" && e.When.After(told) {
				t.Errorf("A was given work after the signal: %+v", e)
			}
		}
		for _, x := range h.Executions {
			if x.State != "succeeded" {
				t.Errorf("execution %s is %s: with one attempt allowed, a hand-over must not cost it", x.ID, x.State)
			}
		}
	})
}

// TestC37PartitionHeals: a worker that is cut off, both ways or only from answers, stops by itself before anyone else
// begins; after the healing it takes new work.
func TestC37PartitionHeals(t *testing.T) {
	for _, how := range []string{"both ways", "answers lost"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 37, classicLease)
				c.start()
				c.put("job", paced(t, 1, work{Steps: 12, StepMs: 1000}))
				a := c.join("A", 1)
				time.Sleep(time.Second)
				first := c.mustTrigger("job", "one")
				time.Sleep(3 * time.Second)
				b := c.join("B", 1)
				if how == "both ways" {
					a.link.Cut()
				} else {
					a.link.Rule(func(drill.Call) drill.Verdict { return drill.Verdict{Fault: drill.AnswerLost} })
				}
				time.Sleep(3 * c.lease.TTL)
				a.link.Rule(nil)
				a.link.Heal()
				c.ended(first)
				b.leave()
				second := c.mustTrigger("job", "two") // only A is left
				c.ended(second)
				c.settled(time.Minute)
				h := c.close()
				sound(t, h) // no effect under a lease that was over, no two holders, one result
				g := grants(h, first)[0]
				count, _ := effectsOf(h, first)
				if len(g) < 2 || g[len(g)-1].Worker != "B" || count[0] != 1 {
					t.Errorf("leases %+v, effects %v", g, count)
				}
				if g := grants(h, second)[0]; len(g) == 0 || g[len(g)-1].Worker != "A" {
					t.Errorf("after the healing: %+v", g)
				}
			})
		})
	}
}

// TestC43FailoverThenAgain: what a killed worker held goes on from its checkpoint, the others are not touched, and the
// next execution begins at nothing.
func TestC43FailoverThenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 43, classicLease)
		c.start()
		c.put("job", paced(t, 4, work{Steps: 30, StepMs: 1000, Checkpoint: 1}))
		workers := map[string]*member{}
		for _, name := range []string{"A", "B", "C"} {
			workers[name] = c.join(name, 4)
		}
		time.Sleep(time.Second)
		first := c.mustTrigger("job", "one")
		time.Sleep(25 * time.Second)
		list, err := c.people.Shards(t.Context(), first, takt.Page{})
		if err != nil || len(list.Items) != 4 {
			t.Fatalf("%+v, %v", list, err)
		}
		victim := list.Items[0].Worker
		workers[victim].kill()
		c.ended(first)
		second := c.mustTrigger("job", "two")
		c.ended(second)
		c.settled(time.Minute)
		h := c.close()
		sound(t, h)
		_, at := effectsOf(h, first)
		for shard, g := range grants(h, first) {
			want := 1
			if g[0].Worker == victim {
				want = 2
			}
			if len(g) != want {
				t.Errorf("shard %d: %d leases, want %d", shard, len(g), want)
			}
			if left := at[shard].Sub(g[len(g)-1].When); want == 2 && left > 8*time.Second {
				t.Errorf("shard %d needed %v after the failover: it did not go on from a checkpoint >= 23", shard, left)
			}
		}
		_, at = effectsOf(h, second)
		for shard, g := range grants(h, second) {
			if took := at[shard].Sub(g[0].When); len(g) != 1 || took < 30*time.Second {
				t.Errorf("shard %d of the next execution: %d leases, %v: it did not begin at nothing", shard, len(g), took)
			}
		}
		keys := map[string]int{}
		for _, x := range h.Effects {
			keys[x.Key]++
		}
		if len(keys) != 8 {
			t.Errorf("effects %v, want 8 keys", keys)
		}
	})
}
