package drill_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// TestTriggerIsAskedAgain: the server dies after the trigger's commit and before its answer. The client asks
// again with its key and gets the one execution.
func TestTriggerIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, partition.Lease{})
		c.start()
		c.put("j", takt.JobSpec{Pool: "p", Handler: "work", Params: raw(t, work{Steps: 1, StepMs: 10})})
		c.join("A", 1)
		c.front.Rule(func(call drill.Call) drill.Verdict {
			if call.Name == "trigger" && call.N == 1 {
				c.later(time.Second, func() {
					c.end(true)
					c.start()
				})
				return drill.Verdict{Fault: drill.AnswerLost}
			}
			return drill.Verdict{}
		})
		var first takt.Triggered
		asked, err := c.people.Trigger(t.Context(), "j", takt.TriggerOptions{IdempotencyKey: "k"})
		if err == nil {
			first, err = c.people.Trigger(t.Context(), "j", takt.TriggerOptions{IdempotencyKey: "k"})
		}
		if err != nil {
			t.Fatal(err)
		}
		if !asked.Repeated || !first.Repeated || asked.Execution != first.Execution {
			t.Errorf("the answers are %+v and %+v, want the first execution again", asked, first)
		}
		c.ended(asked.Execution)
		h := c.close()
		sound(t, h)
		if len(h.Executions) != 1 || len(h.Effects) != 1 {
			t.Errorf("%d executions with %d effects, want one with one", len(h.Executions), len(h.Effects))
		}
	})
}

// TestTriggersInOneMillisecond: a thousand triggers of one job at one instant are a thousand executions
// with a thousand keys.
func TestTriggersInOneMillisecond(t *testing.T) {
	const many = 1000
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, partition.Lease{})
		c.start()
		c.put("j", takt.JobSpec{Pool: "p", Handler: "work", Params: raw(t, work{Steps: 1, StepMs: 10})})
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids := map[string]bool{}
		at := time.Now()
		for i := range many {
			wg.Go(func() {
				id, err := c.trigger("j", fmt.Sprintf("key-%d", i))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
			})
		}
		wg.Wait()
		c.join("A", 100)
		c.join("B", 100)
		c.settled(5 * time.Minute)
		h := c.close()
		sound(t, h)
		keys, planned := map[string]int{}, map[job.Instant]int{}
		for _, e := range h.Effects {
			keys[e.Key]++
		}
		for _, x := range h.Executions {
			planned[x.PlannedAt]++
		}
		if len(ids) != many || len(h.Executions) != many || len(keys) != many || len(h.Effects) != many {
			t.Errorf("%d ids, %d executions, %d keys, %d effects; want %d of each", len(ids), len(h.Executions), len(keys), len(h.Effects), many)
		}
		if planned[job.InstantOf(at)] != many {
			t.Errorf("%d of %d fell into one millisecond: this proves nothing", planned[job.InstantOf(at)], many)
		}
	})
}
