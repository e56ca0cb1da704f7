package drill_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// The runners of an owner stand still while its renewals and its address are well: the watchdog ends its ownership.
func TestHangingRunners(t *testing.T) {
	inFleet(t, func(f *fleet) {
		pool := fleetPools[0]
		name := f.owner(pool)
		f.hang(name)
		time.Sleep(20 * time.Second)
		if now := f.owner(pool); now == "" || now == name {
			t.Errorf("owned by %q, twenty seconds after the runners of %s stand still", now, name)
		}
		begun := time.Now()
		_, err := f.servers[name].app.Node().Call(t.Context(), partition.Of("default", pool, fleetPartitions), 0, engine.Inspect{})
		if took := time.Since(begun); job.KindOf(err) != job.KindNoOwner || took > time.Second {
			t.Errorf("%s, whose runners stand still, answers %v after %v", name, err, took)
		}
		f.letGo(name)
		time.Sleep(20 * time.Second)
		f.allOwned(time.Second)
	})
}

// The connections of an owner are busy for longer than its commits may take; its renewals have one of their own. It is slow,
// and nothing breaks.
func TestStarvedPool(t *testing.T) {
	inFleet(t, func(f *fleet) {
		st := f.servers[f.owner(fleetPools[0])].st
		st.starve(func(string) time.Duration { return 2500 * time.Millisecond })
		time.Sleep(20 * time.Second)
		st.starve(func(string) time.Duration { return time.Minute })
		time.Sleep(20 * time.Second)
		st.starve(nil)
		time.Sleep(15 * time.Second)
		f.allOwned(time.Second)
	})
}

// One server gets no answers from another one, which gets its own: everybody else reaches both, so nobody sits out, and
// what is forwarded that way is asked again elsewhere.
func TestOneWayCut(t *testing.T) {
	parts := inFleet(t, func(f *fleet) {
		owner := f.owner(fleetPools[0])
		for _, name := range f.names {
			if name != owner {
				f.net.Mute(name, owner, true)
				break
			}
		}
		time.Sleep(30 * time.Second)
		if now := f.owner(fleetPools[0]); now != owner {
			t.Errorf("owned by %q, although only one server does not reach %s", now, owner)
		}
		for _, name := range f.names {
			f.net.Mute(name, owner, false)
		}
		time.Sleep(10 * time.Second)
	})
	if n := restarts(parts[fleetPartitions]); n > 0 {
		t.Errorf("%d leases expired or shards were begun again", n)
	}
}

// The database's clock is set an hour forth and back, those of the servers, too. No instant fires twice, no lease
// notices, and every step is recorded.
func TestDatabaseClockSteps(t *testing.T) {
	parts := inFleet(t, func(f *fleet) {
		for _, name := range f.names {
			f.wallOff[name].Store(int64(-time.Hour))
			time.Sleep(5 * time.Second)
		}
		f.baseOff.Store(int64(time.Hour))
		time.Sleep(40 * time.Second)
		for _, name := range f.names {
			if c := f.servers[name].app.Node().Clock(); !c.Alarm || c.Ahead > -time.Hour {
				t.Errorf("%s says of its clock %+v", name, c)
			}
		}
		f.baseOff.Store(0)
		time.Sleep(40 * time.Second)
		f.sink(f.owner(fleetPools[0]), true) // its successor knows the true time only
		time.Sleep(20 * time.Second)
		for _, name := range f.names {
			f.wallOff[name].Store(0)
			if f.servers[name] == nil {
				f.launch(name)
			}
		}
		time.Sleep(20 * time.Second)
	})
	whole := parts[fleetPartitions]
	if n := restarts(whole); n > 0 {
		t.Errorf("%d leases noticed the clock", n)
	}
	steps := map[int]int{}
	for _, e := range whole.Events {
		if e.Kind == engine.FactClockStepped {
			steps[e.Partition]++
		}
	}
	if len(steps) != fleetPartitions {
		t.Errorf("steps were recorded in %d of %d partitions", len(steps), fleetPartitions)
	}
}

// Two of three servers die; then the last one is cut off from the database for a while. What is left plans within an owner's
// lease and three looks (I30), and again within ten seconds of the database's return.
func TestLastServer(t *testing.T) {
	inFleet(t, func(f *fleet) {
		last := f.owner(fleetPools[0])
		lease := f.lease
		for _, name := range f.names {
			if name != last {
				f.sink(name, true)
			}
		}
		died := time.Now()
		bound := lease.OwnerTTL + 2*500*time.Millisecond + 3*lease.Look // two ranks, three looks
		f.planned(died, bound)
		st := f.servers[last].st
		st.setCut(true)
		time.Sleep(40 * time.Second)
		if n := len(f.servers[last].app.Node().Stats()); n > 0 {
			t.Errorf("%d engines without a database", n)
		}
		st.setCut(false)
		f.planned(time.Now(), 10*time.Second)
		time.Sleep(5 * time.Second)
	})
}

// planned waits until every pool has an execution that was made after the given instant.
func (f *fleet) planned(after time.Time, limit time.Duration) {
	f.t.Helper()
	for {
		time.Sleep(100 * time.Millisecond)
		made := map[string]bool{}
		for _, x := range allExecutions(f.t, f.file) {
			if x.Trigger == job.TriggerSchedule && x.CreatedAt.Time().After(after) {
				made[x.Pool] = true
			}
		}
		switch took := time.Since(after); {
		case len(made) == len(fleetPools):
			f.t.Logf("planned everywhere after %v, at most %v", took, limit)
			return
		case took > limit:
			f.t.Errorf("planned in %d of %d pools after %v", len(made), len(fleetPools), took)
			return
		}
	}
}
