package drill_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
)

// classicLease is the exercise's: a lease of 3 ticks of a second, a beat each tick.
var classicLease = partition.Lease{TTL: 3 * time.Second, Beat: time.Second, Margin: 600 * time.Millisecond}

// TestClassicRun is the exercise that every text on distributed scheduling tells (MISSION A5): 8 shards
// on A, B and C, B falls silent at t=4, its last renewal was at t=3, so that at t=6, and not before, its
// shards 1, 4 and 7 go to C, A and C.
func TestClassicRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, classicLease)
		c.start()
		params, err := json.Marshal(work{Steps: 7, StepMs: 1000})
		if err != nil {
			t.Fatal(err)
		}
		c.put("classic", takt.JobSpec{Pool: "p", Handler: "work", Params: params, Shards: &takt.ShardsSpec{Count: 8}})
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(2 * time.Second)))
		c.join("A", 4)
		b := c.join("B", 4)
		c.join("C", 4)
		time.Sleep(time.Second)
		began := time.Now() // t=0: a beat of each of the three falls here
		if _, err := c.trigger("classic", "once"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(began.Add(3500 * time.Millisecond)))
		b.link.Cut() // its beat of t=4 meets silence
		time.Sleep(time.Until(began.Add(20 * time.Second)))
		b.link.Heal()
		c.settled(time.Minute)
		h := c.close()
		sound(t, h)

		first, later := map[int]string{}, map[int]string{}
		for _, e := range h.Events {
			if e.Kind != engine.FactLeaseGranted {
				continue
			}
			if e.Attempt == 1 {
				first[e.Shard] = e.Worker
				continue
			}
			later[e.Shard] = e.Worker
			if at := e.When.Sub(began); at < 6*time.Second || at >= 6*time.Second+time.Millisecond {
				t.Errorf("shard %d went to %s at %s, want it in [6 s, 6.001 s)", e.Shard, e.Worker, at)
			}
		}
		for shard, want := range []string{"A", "B", "C", "A", "B", "C", "A", "B"} {
			if first[shard] != want {
				t.Errorf("shard %d began on %s, want %s", shard, first[shard], want)
			}
		}
		for shard, want := range map[int]string{1: "C", 4: "A", 7: "C"} {
			if later[shard] != want {
				t.Errorf("shard %d was taken over by %q, want %s", shard, later[shard], want)
			}
		}
		if len(later) != 3 {
			t.Errorf("taken over: %v, want 1, 4 and 7", later)
		}
		effects := map[string]int{}
		for _, x := range h.Effects {
			effects[x.Key]++
		}
		for key, n := range effects {
			if n != 1 {
				t.Errorf("%d effects of %s, want 1", n, key)
			}
		}
		if len(effects) != 8 || h.Executions[0].State != "succeeded" {
			t.Errorf("%d effects, execution %s; want 8 of 8 and succeeded", len(effects), h.Executions[0].State)
		}
	})
}
