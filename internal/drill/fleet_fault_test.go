package drill_test

import (
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// inFleet plays a scenario on three servers that share the partitions as they should, with workers in every pool, a
// tick each second and a long run in each, and returns what happened.
func inFleet(t *testing.T, play func(f *fleet)) (parts []*drill.History) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, "a", "b", "c")
		for _, name := range f.names {
			f.launch(name)
		}
		f.balanced(2 * time.Minute)
		time.Sleep(time.Minute) // what has just moved rests
		for _, pool := range fleetPools {
			f.put("tick-"+pool, takt.JobSpec{Pool: pool, Handler: "work", Schedule: &takt.ScheduleSpec{Every: takt.Duration(time.Second)},
				Params: raw(t, work{Steps: 1, StepMs: 20})})
			f.put("long-"+pool, takt.JobSpec{Pool: pool, Handler: "work", Shards: &takt.ShardsSpec{Count: 4}, Params: raw(t, work{Steps: 60, StepMs: 1000, Checkpoint: 5})})
			f.join(pool+".1", 8)
			f.join(pool+".2", 8)
			f.mustTrigger("long-"+pool, "long-"+pool)
		}
		time.Sleep(5 * time.Second)
		play(f)
		for _, pool := range fleetPools {
			j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: "tick-" + pool},
				Spec: takt.JobSpec{Pool: pool, Handler: "work", Params: raw(t, work{Steps: 1, StepMs: 20})}}
			if _, err := f.people.PutJob(t.Context(), j, takt.PutOptions{}); err != nil { // no more ticks
				t.Error(err)
			}
		}
		f.allEnded(5 * time.Minute)
		parts = f.history()
		soundFleet(t, parts)
	})
	return parts
}

// restarts counts leases that were judged over and shards that were begun again.
func restarts(h *drill.History) (n int) {
	for _, e := range h.Events {
		if e.Kind == engine.FactLeaseExpired || e.Kind == engine.FactLeaseGranted && e.Attempt > 1 {
			n++
		}
	}
	return n
}

// latest is by how much the latest tick was begun too late.
func latest(h *drill.History) (late time.Duration) {
	for _, e := range h.Events {
		if e.Kind != engine.FactLeaseGranted {
			continue
		}
		for _, x := range h.Executions {
			if x.ID == e.Execution && drill.Planned(&x) {
				late = max(late, e.When.Sub(x.PlannedAt.Time()))
			}
		}
	}
	return late
}

// Three servers are restarted in turn under load: no planned instant comes more than a second late, and no shard is
// begun again.
func TestRollingRestart(t *testing.T) {
	parts := inFleet(t, func(f *fleet) {
		for _, name := range f.names {
			begun := time.Now()
			f.sink(name, false)
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("the stop of %s took %v", name, took)
			}
			f.launch(name)
			time.Sleep(10 * time.Second)
		}
	})
	whole := parts[fleetPartitions]
	if late := latest(whole); late > time.Second {
		t.Errorf("a planned instant came %v late", late)
	}
	if n := restarts(whole); n > 0 {
		t.Errorf("%d leases expired or shards were begun again", n)
	}
}

// An owner dies: its workers keep what they run.
func TestDeathUnderLoad(t *testing.T) {
	parts := inFleet(t, func(f *fleet) {
		dead := f.owner(fleetPools[0])
		f.sink(dead, true)
		time.Sleep(20 * time.Second)
		f.launch(dead)
		time.Sleep(20 * time.Second)
	})
	if n := restarts(parts[fleetPartitions]); n > 0 {
		t.Errorf("%d leases expired or shards were begun again, although a successor was there in time", n)
	}
	if late := latest(parts[fleetPartitions]); late > 10*time.Second {
		t.Errorf("a planned instant came %v late", late)
	}
}

// The commit of an owner is on its way when that is cut off; it lands when somebody else has decided otherwise.
func TestLateCommitAfterTakeover(t *testing.T) {
	inFleet(t, func(f *fleet) {
		pool := fleetPools[0]
		old := f.servers[f.owner(pool)]
		name := f.owner(pool)
		old.st.setRule(func(string, *engine.Batch) commitFault { return commitLater })
		time.Sleep(1500 * time.Millisecond)
		old.st.setCut(true)
		old.st.setRule(nil)
		if old.st.waiting() == 0 {
			t.Error("no commit is on its way: this proves nothing")
		}
		time.Sleep(15 * time.Second)
		if now := f.owner(pool); now == "" || now == name {
			t.Errorf("owned by %q after %s was cut off", now, name)
		}
		for old.st.waiting() > 0 {
			if err := old.st.land(); job.KindOf(err) != job.KindFenced {
				t.Errorf("a commit that came late: %v, want it refused by the fence", err)
			}
		}
		old.st.setCut(false)
		time.Sleep(5 * time.Second)
	})
}

// A server hangs for a minute. It has dropped its engines when it wakes, and is no owner of anything before it has
// been given something again.
func TestFrozenServer(t *testing.T) {
	inFleet(t, func(f *fleet) {
		pool := fleetPools[0]
		name := f.owner(pool)
		old := f.servers[name]
		old.st.setCut(true)
		f.net.Deafen(name, true)
		time.Sleep(time.Minute)
		if n := len(old.app.Node().Stats()); n > 0 {
			t.Errorf("a server that hangs has %d engines", n)
		}
		_, err := old.app.Node().Call(t.Context(), partition.Of("default", pool, fleetPartitions), 0, engine.Inspect{})
		if job.KindOf(err) != job.KindNoOwner {
			t.Errorf("it answers %v", err)
		}
		old.st.setCut(false)
		f.net.Deafen(name, false)
		time.Sleep(10 * time.Second)
		f.allOwned(time.Second)
	})
}

// A server that only the database hears gives its partitions away, and its pools go on.
func TestDeafServer(t *testing.T) {
	inFleet(t, func(f *fleet) {
		pool := fleetPools[0]
		name := f.owner(pool)
		f.net.Deafen(name, true)
		time.Sleep(20 * time.Second)
		if now := f.owner(pool); now == "" || now == name {
			t.Errorf("owned by %q, twenty seconds after nobody reaches %s", now, name)
		}
		f.net.Deafen(name, false)
		time.Sleep(30 * time.Second)
	})
}
