package drill_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// fleet is a cluster of several servers on one database file, which stands for a shared database: each server has a
// way of its own to it, and the servers call each other over the cluster's network. Workers and clients know them all.
type fleet struct {
	*cluster
	file    *sqlite.Store
	names   []string
	servers map[string]*life
	lifeNo  map[string]int
	tuneOf  func(name string, p *partition.Config) // nil: nothing
	wallOff map[string]*atomic.Int64               // what a server's wall clock is ahead
	baseOff atomic.Int64                           // what the database's is
	stuck   map[string]chan struct{}               // servers whose runners hang; c.mu
}

const fleetPartitions = 4

// fleetPools are pools of different partitions.
var fleetPools = poolsApart(3)

func poolsApart(n int) (pools []string) {
	taken := map[int]bool{}
	for i := 0; len(pools) < n; i++ {
		pool := fmt.Sprintf("p%d", i)
		if p := partition.Of("default", pool, fleetPartitions); !taken[p] {
			taken[p] = true
			pools = append(pools, pool)
		}
	}
	return pools
}

// poolOfWorker: workers are called after their pool and a number, as "p1.7".
func poolOfWorker(worker string) string {
	pool, _, _ := strings.Cut(worker, ".")
	return pool
}

func newFleet(t *testing.T, seed uint64, names ...string) *fleet {
	t.Helper()
	var urls []string
	for _, name := range names {
		urls = append(urls, "http://"+name)
	}
	f := &fleet{names: names, servers: map[string]*life{}, lifeNo: map[string]int{}, wallOff: map[string]*atomic.Int64{}, stuck: map[string]chan struct{}{}}
	for _, name := range names {
		f.wallOff[name] = &atomic.Int64{}
	}
	f.cluster = newClusterAt(t, seed, partition.Lease{}, strings.Join(urls, ","), poolOfWorker)
	t.Cleanup(f.scuttle)
	file, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(f.dir, "takt.db"), Partitions: fleetPartitions, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	f.file = file
	return f
}

// launch begins a life of a server.
func (f *fleet) launch(name string) *life {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	f.lifeNo[name]++
	number := f.lifeNo[name]
	door, err := f.net.Listen(name)
	if err != nil {
		f.t.Fatal(err)
	}
	l := &life{st: &chaos{Store: f.file, pace: func(method string) { f.pace(name + method) }}, door: door, stop: stop, done: make(chan error, 1)}
	jitter := f.jitter(name)
	l.app, err = app.New(ctx, app.Config{
		Lease: f.lease, Wall: func() time.Time { return time.Now().Add(time.Duration(f.wallOff[name].Load())) }, Listener: door, Store: timed{l.st, f}, Server: name, Advertise: "http://" + name,
		Incarnation: fmt.Sprintf("%s-%d", name, number), Random: &dice{seed: f.seed + uint64(number)<<32 + uint64(slices.Index(f.names, name))<<48},
		PeerDial: func(ctx context.Context, _, to string) (net.Conn, error) { return f.net.DialFrom(ctx, name, to) },
		Tune: func(p *partition.Config) {
			p.Seed, p.Observe = f.seed, func(o partition.Observation) { f.observe(o); f.hangs(name) }
			p.Jitter = func() time.Duration { return jitter(20 * time.Microsecond) }
			if f.tuneOf != nil {
				f.tuneOf(name, p)
			}
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.servers[name] = l
	f.wg.Go(func() {
		err := l.app.Run(ctx)
		l.door.Drop()
		if errors.Is(err, partition.ErrCrashed) {
			err = nil
		}
		l.done <- err
	})
	return l
}

// sink ends a server: abruptly, as the death of its process does, or gracefully.
func (f *fleet) sink(name string, abrupt bool) {
	f.t.Helper()
	l := f.servers[name]
	f.letGo(name)
	if abrupt {
		l.st.die()
		l.door.Drop()
	}
	l.stop()
	if err := <-l.done; err != nil && !abrupt && !l.st.isDead() {
		f.t.Errorf("server %s ended with %v", name, err)
	}
	f.net.Deafen(name, false)
	delete(f.servers, name)
}

// up lists the servers that run, by name.
func (f *fleet) up() []string { return slices.Sorted(maps.Keys(f.servers)) }

// scuttle ends what a test that failed half-way has left.
func (f *fleet) scuttle() {
	for _, m := range f.members() {
		m.kill()
	}
	for _, name := range f.up() {
		f.servers[name].st.setCut(false)
		f.sink(name, true)
	}
	f.quiet()
	if f.file != nil {
		if err := f.file.Close(); err != nil {
			f.t.Error(err)
		}
	}
}

// history ends everything and gives what happened, the part of each partition apart: tokens and workers belong to one.
func (f *fleet) history() []*drill.History {
	f.t.Helper()
	for _, m := range f.members() {
		m.leave()
	}
	for _, name := range f.up() {
		f.sink(name, false)
	}
	if err := f.file.Close(); err != nil {
		f.t.Error(err)
	}
	f.file = nil
	whole := f.close()
	var parts []*drill.History
	for p := range fleetPartitions {
		h := *whole
		h.Slack = 12 * time.Second // nobody judges while there is no owner; one whose runner hung for up to P until it was not renewed and P − 0.5 s on its lease grants a full TTL (R7)
		h.Events = slices.DeleteFunc(slices.Clone(whole.Events), func(e drill.Event) bool { return e.Partition != p })
		h.Executions = slices.DeleteFunc(slices.Clone(whole.Executions), func(x job.Execution) bool { return partition.Of("default", x.Pool, fleetPartitions) != p })
		elsewhere := func(worker string) bool { return partition.Of("default", poolOfWorker(worker), fleetPartitions) != p }
		h.Wire = slices.DeleteFunc(slices.Clone(whole.Wire), func(n drill.WireNote) bool { return elsewhere(n.Worker) })
		h.Effects = slices.DeleteFunc(slices.Clone(whole.Effects), func(e drill.Effect) bool { return elsewhere(e.Worker) })
		h.Due = map[string][]job.Instant{}
		for name, due := range whole.Due {
			if pool := f.due[strings.TrimPrefix(name, "default/")].pool; partition.Of("default", pool, fleetPartitions) == p {
				h.Due[name] = due
			}
		}
		parts = append(parts, &h)
	}
	return append(parts, whole)
}

// soundFleet checks every partition, and over all of them that nothing was planned twice.
func soundFleet(t *testing.T, parts []*drill.History) {
	t.Helper()
	for _, h := range parts[:fleetPartitions] {
		sound(t, h)
	}
	made := map[job.ExecutionID]int{}
	for _, x := range parts[fleetPartitions].Executions {
		if made[x.ID]++; made[x.ID] > 1 {
			t.Errorf("execution %s is there twice", x.ID)
		}
	}
}

// owner is the server that has the engine of a pool now; "" when none has.
func (f *fleet) owner(pool string) string {
	for _, name := range f.up() {
		if h, ok := f.servers[name].app.Node().Owner(partition.Of("default", pool, fleetPartitions)); ok && h.Local {
			return name
		}
	}
	return ""
}

// allOwned waits until every partition has an engine somewhere.
func (f *fleet) allOwned(limit time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		n := 0
		for _, name := range f.up() {
			n += len(f.servers[name].app.Node().Stats())
		}
		if n == fleetPartitions {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%d of %d partitions have an owner after %v", n, fleetPartitions, limit)
		}
	}
}

// balanced waits until every partition is where it belongs among the servers that run.
func (f *fleet) balanced(limit time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		right := 0
		for _, name := range f.up() {
			for _, st := range f.servers[name].app.Node().Stats() {
				if partition.Rank(st.Partition, name, f.up()) == 0 {
					right++
				}
			}
		}
		if right == fleetPartitions {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%d of %d partitions are where they belong after %v", right, fleetPartitions, limit)
		}
	}
}

// ended waits until every execution has ended.
func (f *fleet) allEnded(limit time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Second) {
		var open []string
		for _, x := range allExecutions(f.t, f.file) {
			if !x.State.Ended() {
				open = append(open, fmt.Sprintf("%s %s (%s)", x.Job, x.ID, x.State))
			}
		}
		if len(open) == 0 {
			return
		}
		if time.Now().After(end) {
			f.t.Errorf("not ended after %s: %s", limit, open)
			return
		}
	}
}

var _ store.Servers = (*chaos)(nil)
