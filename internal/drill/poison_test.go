package drill_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// marker is what the test's database refuses to store.
const marker = "poison"

// refuseMarker refuses every commit whose rows hold the marker.
func refuseMarker(_ string, b *engine.Batch) commitFault {
	for _, w := range b.Executions {
		if bytes.Contains(w.Row.Params, []byte(marker)) {
			return commitRefused
		}
	}
	for _, w := range b.Shards {
		if bytes.Contains(w.Row.Checkpoint, []byte(marker)) {
			return commitRefused
		}
	}
	return ""
}

// TestPoison: one bad event never stops a partition (R3). Each case brings one, while another job runs on
// the same workers; that one must not notice.
func TestPoison(t *testing.T) {
	cases := []struct {
		name     string
		do       func(c *cluster)
		byEngine bool
	}{
		{"an inbox entry that the store refuses", func(c *cluster) {
			c.put("bad", takt.JobSpec{Pool: "p", Handler: "work", Params: []byte(`{"steps":1,"note":"poison"}`)})
			c.mustTrigger("bad", "bad")
		}, false},
		{"a report that the store refuses", func(c *cluster) {
			c.put("bad", takt.JobSpec{Pool: "p", Handler: "work", Params: []byte(`{"steps":1,"stepMs":10,"say":"pois\u006fn"}`)})
			c.mustTrigger("bad", "bad")
		}, false},
		{"a schedule that does not parse", func(c *cluster) {
			putUnchecked(c, job.Spec{Pool: "p", Handler: "work", Schedules: []job.Schedule{{ID: "s", Spec: schedule.Spec{Cron: "no cron at all"}}}})
		}, true},
	}
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playPoison(t, k.do, k.byEngine) })
		})
	}
}

// putUnchecked writes the job bad past the checks of the API.
func putUnchecked(c *cluster, spec job.Spec) {
	def := job.Definition{UID: job.UID{9}, Namespace: "default", Name: "bad", Spec: spec}
	if _, _, err := c.server.st.PutJob(c.t.Context(), store.PutJob{Definition: def, At: job.InstantOf(time.Now())}); err != nil {
		c.t.Fatal(err)
	}
}

func playPoison(t *testing.T, do func(c *cluster), byEngine bool) {
	c := newCluster(t, 1, partition.Lease{})
	c.start()
	c.server.st.setRule(refuseMarker)
	c.join("A", 4)
	c.join("B", 4)
	c.put("good", takt.JobSpec{Pool: "p", Handler: "work", Shards: &takt.ShardsSpec{Count: 4},
		Params: raw(t, work{Steps: 6, StepMs: 1000, Checkpoint: 1})})
	first := c.mustTrigger("good", "first")
	time.Sleep(1500 * time.Millisecond)
	do(c)
	c.ended(first)
	c.ended(c.mustTrigger("good", "second"))
	time.Sleep(15 * time.Second) // the careful time is over
	c.ended(c.mustTrigger("good", "third"))
	poisoned := c.server.app.Node().Stats()[0].Poisoned
	h := c.close()
	sound(t, h)
	// A report of several items is set aside whole; then its worker sends them one by one. A schedule is set
	// aside by the engine itself.
	aside := int64(0)
	attempts := map[job.ExecutionID]int{}
	for _, e := range h.Events {
		switch e.Kind {
		case engine.FactSetAside:
			aside++
		case engine.FactLeaseGranted:
			attempts[e.Execution]++
		}
	}
	byItself := aside
	if !byEngine {
		byItself = 0
	}
	if aside != 1 && aside != 2 || poisoned != aside-byItself {
		t.Errorf("the journal tells of %d events set aside, the server of %d; want 1, or 2 for a report", aside, poisoned)
	}
	for _, x := range h.Executions {
		if x.Job == "good" && (x.State != job.ExecutionSucceeded || attempts[x.ID] != 4) {
			t.Errorf("%s of the good job is %s after %d grants, want succeeded after 4", x.ID, x.State, attempts[x.ID])
		}
	}
}
