package drill_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// cluster is a real server on a real SQLite file, real SDK workers and a real client, on an in-memory
// network in one bubble. It must be made and closed inside the bubble.
type cluster struct {
	t     *testing.T
	seed  uint64
	dir   string
	lease partition.Lease
	wall  func() time.Time        // nil: the bubble's
	tune  func(*partition.Config) // nil: nothing
	where string                  // addresses of the servers
	pools func(worker string) string

	net    *drill.Network
	tape   *drill.Tape
	people *takt.Client
	front  *drill.Link // of the client
	lives  int
	server *life
	wg     sync.WaitGroup

	mu      sync.Mutex
	traces  []drill.Event
	seen    map[[2]int64]time.Time
	steps   map[[2]int64]time.Duration // mono of the step, by partition and seq
	runs    []*drill.Run               // what handlers witnessed
	sights  []sight                    // what they saw of their parents
	due     map[string]duty            // by job
	healed  time.Time                  // until when duties are judged
	workers map[string]*member
	joined  int
	doors   []*http.Transport
}

// life is one life of the server.
type life struct {
	app  *app.App
	st   *chaos
	door *drill.Listener
	stop context.CancelFunc
	done chan error
}

func newCluster(t *testing.T, seed uint64, lease partition.Lease) *cluster {
	return newClusterAt(t, seed, lease, "http://server", func(string) string { return "p" })
}

// newClusterAt makes a cluster whose servers are somewhere else and whose workers have pools by their names.
func newClusterAt(t *testing.T, seed uint64, lease partition.Lease, where string, pools func(string) string) *cluster {
	c := &cluster{t: t, seed: seed, dir: t.TempDir(), where: where, pools: pools, lease: lease.Filled(), net: drill.NewNetwork(), tape: &drill.Tape{},
		seen: map[[2]int64]time.Time{}, steps: map[[2]int64]time.Duration{}, due: map[string]duty{}, workers: map[string]*member{}}
	t.Cleanup(c.abandon)
	c.people, c.front = c.asker("people")
	return c
}

// asker makes a client with a link of its own. Calls that go at one time have one each: then what the dice
// say about one does not depend on the others.
func (c *cluster) asker(name string) (*takt.Client, *drill.Link) {
	link := drill.NewLink(name, c.seed, c.transport(name), c.tape)
	client, err := takt.NewClient(takt.ClientConfig{Server: c.where, HTTPClient: &http.Client{Transport: link},
		RetryFor: 2 * time.Minute, Jitter: c.jitter(name)})
	if err != nil {
		c.t.Error(err)
	}
	return client, link
}

func (c *cluster) transport(name string) *http.Transport {
	d := &http.Transport{DialContext: func(ctx context.Context, _, to string) (net.Conn, error) { return c.net.DialFrom(ctx, name, to) }}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doors = append(c.doors, d)
	return d
}

// jitter draws by who asks, from where in the code, and when: so that the draw does not depend on the
// order in which goroutines run.
func (c *cluster) jitter(who string) func(time.Duration) time.Duration {
	return func(upTo time.Duration) time.Duration {
		if upTo <= 0 {
			return 0
		}
		var pcs [4]uintptr
		at := ""
		frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
		for {
			f, more := frames.Next()
			at += f.Function + strconv.Itoa(f.Line)
			if !more {
				break
			}
		}
		return time.Duration(drill.Draw(c.seed, who, at, strconv.FormatInt(time.Now().UnixNano(), 10)) % uint64(upTo))
	}
}

// pace keeps answers of the store from coming at one instant.
func (c *cluster) pace(method string) {
	time.Sleep(time.Microsecond + time.Duration(drill.Draw(c.seed, "store", method, strconv.FormatInt(time.Now().UnixNano(), 10))%4_000))
}

// dice is a reader of bytes drawn from the seed and the instant.
type dice struct {
	mu   sync.Mutex
	seed uint64
	n    uint64
}

func (d *dice) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := 0; i < len(p); i += 8 {
		d.n++
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], drill.Draw(d.seed, "dice", strconv.FormatUint(d.n, 10)))
		copy(p[i:], b[:])
	}
	return len(p), nil
}

var _ io.Reader = (*dice)(nil)

// start begins a life of the server on the cluster's directory.
func (c *cluster) start() {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c.lives++
	file, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(c.dir, "takt.db"), NoSync: true})
	if err != nil {
		c.t.Fatal(err)
	}
	door, err := c.net.Listen("server")
	if err != nil {
		c.t.Fatal(err)
	}
	l := &life{st: &chaos{Store: file, pace: c.pace}, door: door, stop: stop, done: make(chan error, 1)}
	jitter := c.jitter("server")
	l.app, err = app.New(ctx, app.Config{
		DataDir: c.dir, Lease: c.lease, Wall: c.wall, Listener: door, Store: l.st, Server: "s",
		Incarnation: fmt.Sprintf("life-%d", c.lives), Random: &dice{seed: c.seed + uint64(c.lives)<<32},
		Tune: func(p *partition.Config) {
			p.Seed, p.Observe = c.seed, c.observe
			p.Jitter = func() time.Duration { return jitter(20 * time.Microsecond) }
			if c.tune != nil {
				c.tune(p)
			}
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.server = l
	c.wg.Go(func() {
		err := l.app.Run(ctx)
		l.door.Drop()
		if errors.Is(err, partition.ErrCrashed) {
			err = nil
		}
		l.done <- errors.Join(err, file.Close())
	})
}

// end waits for the end of the server's life; abrupt ends break its connections first and let nothing
// more be written, as the death of the process does.
func (c *cluster) end(abrupt bool) {
	c.t.Helper()
	l := c.server
	if abrupt {
		l.st.die()
		l.door.Drop()
	}
	l.stop()
	c.await(l)
}

func (c *cluster) await(l *life) {
	c.t.Helper()
	if err := <-l.done; err != nil && !l.st.isDead() {
		c.t.Errorf("the server ended with %v", err)
	}
	c.server = nil
}

func (c *cluster) observe(o partition.Observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(o.Facts) > 0 {
		c.seen[[2]int64{int64(o.Partition), o.Seq}] = time.Now()
		c.steps[[2]int64{int64(o.Partition), o.Seq}] = o.Now.Mono
	}
	for _, f := range o.Trace {
		c.traces = append(c.traces, drill.Event{Partition: o.Partition, Seq: o.Seq, Epoch: o.Epoch, At: o.Now.Wall, When: time.Now(), Mono: o.Now.Mono,
			Trace: true, After: len(o.Facts) == 0, Fact: f})
	}
}

// put stores a job.
func (c *cluster) put(name string, spec takt.JobSpec) takt.Job {
	c.t.Helper()
	j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: spec}
	var err error
	for range 50 { // the client sends it once
		made, e := c.people.PutJob(c.t.Context(), j, takt.PutOptions{})
		if e == nil {
			return made
		}
		err = e
		time.Sleep(300 * time.Millisecond)
	}
	c.t.Fatal(err)
	return j
}

// trigger asks for an execution and returns its id.
func (c *cluster) trigger(name, key string) (string, error) {
	r, err := c.people.Trigger(c.t.Context(), name, takt.TriggerOptions{IdempotencyKey: key})
	return r.Execution, err
}

// later does something after d.
func (c *cluster) later(d time.Duration, do func()) {
	c.wg.Go(func() {
		time.Sleep(d)
		do()
	})
}

// ask sends a cancel or a rerun until it is answered: these calls are not repeated by the client.
func (c *cluster) ask(call func(context.Context, string, string) (takt.Asked, error), id string) {
	c.t.Helper()
	var err error
	for range 50 {
		if _, err = call(c.t.Context(), id, ""); err == nil || errors.Is(err, takt.ErrConflict) {
			return // a conflict: an earlier sending has had its effect
		}
		time.Sleep(300 * time.Millisecond)
	}
	c.t.Fatalf("no answer in time: %v", err)
}

// ended waits until an execution has ended.
func (c *cluster) ended(id string) { c.endedRound(id, 0) }

// endedRound waits until an execution has ended its n-th rerun.
func (c *cluster) endedRound(id string, round int) {
	c.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		x, err := c.people.Execution(c.t.Context(), id)
		if err == nil && x.EndedAt != nil && x.Round >= round {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s has not ended: %s, %v", id, x.State, err)
		}
	}
}

// abandon ends what a test that failed half-way has left, so that the bubble can end.
func (c *cluster) abandon() {
	for _, m := range c.members() {
		m.kill()
	}
	if c.server != nil {
		c.server.stop()
	}
	c.quiet()
}

func (c *cluster) quiet() {
	c.front.Close()
	for _, d := range c.doors {
		d.CloseIdleConnections()
	}
	c.wg.Wait()
}

func (c *cluster) mustTrigger(name, key string) string {
	c.t.Helper()
	id, err := c.trigger(name, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// close ends everything that is left and returns the history.
func (c *cluster) close() *drill.History {
	c.t.Helper()
	for _, m := range c.members() {
		m.leave()
	}
	if c.server != nil {
		c.end(false)
	}
	c.quiet()
	h := &drill.History{Wire: c.tape.Wire(), Effects: c.tape.Effects(), End: time.Now(),
		TTL: c.lease.TTL, Margin: c.lease.Margin, OwnerTTL: c.lease.OwnerTTL, Slack: 3 * time.Second}
	c.read(h)
	h.Due = c.instants()
	return h
}

// settled waits until every execution has ended.
func (c *cluster) settled(limit time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Second) {
		open := ""
		for _, x := range allExecutions(c.t, c.server.st) {
			if !x.State.Ended() {
				open += fmt.Sprintf(" %s %s (%s)", x.Job, x.ID, x.State)
			}
		}
		if open == "" {
			return
		}
		if time.Now().After(end) {
			c.t.Errorf("not ended after %s:%s", limit, open)
			return
		}
	}
}

// sound fails the test for every violation.
func sound(t *testing.T, h *drill.History) {
	t.Helper()
	for i, v := range drill.Check(h) {
		if i == 20 {
			t.Error("… and more")
			return
		}
		t.Error(v)
	}
}
