package drill_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/job"
)

// workerCalls are the calls of a worker and how to tell the one that is spoiled: the first of its kind
// that matters.
var workerCalls = []struct {
	name string
	hit  func(c drill.Call) bool
}{
	{"open", func(c drill.Call) bool { return c.Name == "open" }},
	{"poll", func(c drill.Call) bool { return c.Name == "poll" }},
	{"heartbeat", func(c drill.Call) bool { return c.Name == "heartbeat" && bytes.Contains(c.Body, []byte(`"token"`)) }},
	{"report started", func(c drill.Call) bool { return c.Name == "report" && bytes.Contains(c.Body, []byte(`"started"`)) }},
	{"report done", func(c drill.Call) bool { return c.Name == "report" && bytes.Contains(c.Body, []byte(`"done"`)) }},
	{"close", func(c drill.Call) bool { return c.Name == "close" }},
}

// TestCalls spoils one call of one worker in each way: the work is done all the same, every effect once.
func TestCalls(t *testing.T) {
	long(t)
	for _, call := range workerCalls {
		t.Run(call.name, func(t *testing.T) {
			for _, fault := range []drill.Fault{drill.RequestLost, drill.AnswerLost, drill.Doubled, drill.Late} {
				t.Run(string(fault), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { playCall(t, call.hit, fault) })
				})
			}
		})
	}
}

func playCall(t *testing.T, hit func(drill.Call) bool, fault drill.Fault) {
	c := newCluster(t, 1, classicLease)
	c.start()
	params, err := json.Marshal(work{Steps: 16, StepMs: 500, Checkpoint: 4})
	if err != nil {
		t.Fatal(err)
	}
	c.put("j", takt.JobSpec{Pool: "p", Handler: "work", Params: params, Shards: &takt.ShardsSpec{Count: 4}})
	delay := 50 * time.Millisecond
	if fault == drill.Late {
		delay = classicLease.TTL + time.Second
	}
	var spoiled atomic.Int32
	rule := func(call drill.Call) drill.Verdict {
		if !hit(call) || !spoiled.CompareAndSwap(0, 1) {
			return drill.Verdict{}
		}
		return drill.Verdict{Fault: fault, Delay: delay}
	}
	a := c.joinWith("A", 3, rule)
	c.join("B", 3)
	if _, err := c.trigger("j", "once"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	left := make(chan struct{})
	c.wg.Go(func() {
		defer close(left)
		if strings.Contains(t.Name(), "/close/") {
			a.leave() // in the middle: what it holds goes back
		}
	})
	c.settled(2 * time.Minute)
	time.Sleep(2 * delay) // what is late arrives
	<-left
	for _, m := range c.members() {
		m.leave()
	}
	h := c.close()
	sound(t, h)
	if spoiled.Load() == 0 {
		t.Fatal("no call was spoiled: this proves nothing")
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
	if len(effects) != 4 || len(h.Executions) != 1 || h.Executions[0].State != job.ExecutionSucceeded {
		t.Errorf("%d effects, executions %+v; want 4 and one that succeeded", len(effects), h.Executions)
	}
}
