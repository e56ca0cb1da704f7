package drill_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// needed are the crash points that the scenario must reach, or the test has lost its meaning.
var needed = []string{
	"before_commit/inbox", "before_commit/due", "before_commit/open", "before_commit/poll", "before_commit/report",
	"before_commit/close", "before_commit/tick", "before_commit/executions",
	"after_commit/inbox", "after_commit/due", "after_commit/open", "after_commit/poll", "after_commit/report",
	"after_commit/close", "after_commit/tick", "after_commit/executions",
	"between_effects/inbox", "between_effects/report", "between_effects/tick", "between_effects/executions",
}

// crashes counts crash points as they are passed, and lets the node die at one of them.
type crashes struct {
	mu    sync.Mutex
	at    string
	nth   int
	over  bool
	count map[string]int
}

func (c *crashes) point(p string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.count[p]++
	if p == c.at && c.count[p] == c.nth {
		panic("the drill wants the node to die at " + p)
	}
}

// end lets the rest pass without a crash.
func (c *crashes) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// TestCrashPoints lets the server die at every named point that the scenario passes, at its first passage
// and at one in the middle, and starts it again on the same directory.
func TestCrashPoints(t *testing.T) {
	dry := &crashes{count: map[string]int{}}
	synctest.Test(t, func(t *testing.T) { playCrash(t, dry) })
	for _, p := range needed {
		if dry.count[p] == 0 {
			t.Errorf("the scenario does not pass %s", p)
		}
	}
	for i, p := range slices.Sorted(maps.Keys(dry.count)) {
		for _, nth := range slices.Compact([]int{1, dry.count[p]/2 + 1}) {
			if raceOn && (nth > 1 || i%4 > 0) { // all of them are played without the race detector
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", p, nth), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := &crashes{at: p, nth: nth, count: map[string]int{}}
					if lives := playCrash(t, c); lives < 3 { // one more than without a crash
						t.Error("the node did not die")
					}
				})
			})
		}
	}
}

// playCrash runs everything that makes events: triggers, a schedule, a cancel, a rerun, workers that come,
// leave and die. It returns how many lives the server had.
func playCrash(t *testing.T, points *crashes) int {
	c := newCluster(t, 1, partition.Lease{})
	c.tune = func(p *partition.Config) { p.Crash = points.point }
	c.start()
	var gone sync.WaitGroup
	quit := make(chan struct{})
	gone.Go(func() { c.revive(quit) })
	stay := sync.OnceFunc(func() {
		points.end()
		close(quit)
		gone.Wait()
	})
	t.Cleanup(stay)

	c.put("j", takt.JobSpec{Pool: "p", Handler: "work", Shards: &takt.ShardsSpec{Count: 6}, Params: raw(t, work{Steps: 8, StepMs: 400, Checkpoint: 2}),
		Retry: &takt.RetrySpec{MaxAttempts: 3, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Second), Jitter: "none"}}})
	c.put("tick", takt.JobSpec{Pool: "p", Handler: "work", Schedule: &takt.ScheduleSpec{Every: takt.Duration(3 * time.Second)},
		Params: raw(t, work{Steps: 1, StepMs: 100})})
	a := c.join("A", 3)
	c.join("B", 3)
	time.Sleep(300 * time.Millisecond)
	first := c.mustTrigger("j", "one")
	time.Sleep(900 * time.Millisecond)
	d := c.join("D", 2)
	time.Sleep(time.Second)
	second := c.mustTrigger("j", "two")
	time.Sleep(time.Second)
	d.kill() // two shards of the second wait for its leases
	third := c.mustTrigger("j", "three")
	c.ask(c.people.Cancel, third)
	a.leave()
	c.join("C", 4)
	c.join("E", 4)
	c.ended(first)
	c.ended(second)
	c.server.stop() // a graceful end; revive starts it again when a tick is overdue
	time.Sleep(10 * time.Second)
	c.ask(c.people.Rerun, third)
	c.endedRound(third, 1)
	time.Sleep(2 * time.Second)
	stay()
	lives := c.lives
	h := c.close()
	sound(t, h)
	for _, x := range h.Executions {
		if x.Job == "j" && x.State != job.ExecutionSucceeded {
			t.Errorf("%s is %s (%s)", x.ID, x.State, x.Reason)
		}
	}
	return lives
}

func raw(t *testing.T, w work) json.RawMessage {
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// revive starts the server again whenever it has died, until quit.
func (c *cluster) revive(quit chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case err := <-c.server.done:
			if err != nil {
				c.t.Errorf("the server ended with %v", err)
			}
			time.Sleep(3200 * time.Millisecond)
			c.start()
		}
	}
}
