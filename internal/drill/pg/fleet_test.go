//go:build linux

package pg_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/partition"
)

// length is how long a drill lasts: TAKT_DRILL, or short.
func length(t *testing.T, short time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("TAKT_DRILL")
	if text == "" {
		return short
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// waits is for a drill that lasts for more than one lease, most of which it waits: it runs beside others, and not with -short.
func waits(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a minute of waiting for leases")
	}
	t.Parallel()
}

// drilled leaves a drill out unless TAKT_DRILL asks for it, as make drill does: each takes minutes of real leases.
func drilled(t *testing.T) {
	t.Helper()
	if os.Getenv("TAKT_DRILL") == "" {
		t.Skip("a drill of minutes: make drill, or TAKT_DRILL=20s")
	}
}

// drillLease has the default lengths: on a machine that is busy with other things shorter ones end by themselves.
func drillLease() partition.Lease { return partition.Lease{}.Filled() }

// child is a process of a drill.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how
}

func (c *child) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Errorf("signal %v to %d: %v", s, c.cmd.Process.Pid, err)
	}
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}

// server is one place in the fleet, with the process that has it now.
type server struct {
	*child
	name, addr  string
	dsn         string // "": the fleet's
	incarnation string
	lives       int
}

// fleet is several servers on one database, workers, and people who ask for work.
type fleet struct {
	t       *testing.T
	dsn     string
	loss    string
	dir     string
	lease   partition.Lease
	pools   []string
	servers []*server
	workers []*child
	table   string // see workerRole

	mu    sync.Mutex
	acked map[string]string // request key → execution
	over  atomic.Bool
	load  sync.WaitGroup
	began time.Time
}

func newFleet(t *testing.T, dsn string, servers int, lease partition.Lease) *fleet {
	t.Helper()
	f := &fleet{t: t, dsn: dsn, dir: t.TempDir(), lease: lease, acked: map[string]string{}, began: time.Now()}
	for i := range 6 {
		f.pools = append(f.pools, fmt.Sprintf("pool-%d", i))
	}
	for i := range servers {
		f.servers = append(f.servers, &server{name: fmt.Sprintf("s%d", i), addr: lastingAddress(t)})
	}
	t.Cleanup(f.end)
	go stalls(filepath.Join(f.dir, "stalls-test"))
	return f
}

// end kills what is left, and shows the logs of a drill that went wrong. TAKT_DRILL_KEEP names a directory for what drills leave.
func (f *fleet) end() {
	f.over.Store(true)
	for _, w := range f.workers {
		w.kill()
	}
	for _, s := range f.servers {
		if s.child != nil {
			s.kill()
		}
	}
	f.load.Wait()
	if keep := os.Getenv("TAKT_DRILL_KEEP"); keep != "" {
		if err := os.CopyFS(filepath.Join(keep, f.t.Name()), os.DirFS(f.dir)); err != nil {
			f.t.Log(err)
		}
	}
	if !f.t.Failed() {
		return
	}
	names, _ := filepath.Glob(filepath.Join(f.dir, "*.log"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		f.t.Logf("%s:\n%s", filepath.Base(name), text[max(0, len(text)-4000):])
	}
}

// spawn starts a process of a drill, which ends with this one.
func (f *fleet) spawn(name string, r role) *child {
	f.t.Helper()
	r.Stalls = filepath.Join(f.dir, "stalls-"+name)
	text, err := json.Marshal(r)
	if err != nil {
		f.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(f.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	c := &child{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TAKT_") && !strings.HasPrefix(e, "PG") {
			c.cmd.Env = append(c.cmd.Env, e)
		}
	}
	c.cmd.Env = append(c.cmd.Env, envRole+"="+string(text))
	c.cmd.Stderr = log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() { c.err = c.cmd.Wait(); close(c.done) }()
	return c
}

// start starts a server, as a new incarnation.
func (f *fleet) start(s *server) {
	f.t.Helper()
	s.lives++
	s.incarnation = fmt.Sprintf("%s.%d.%d", s.name, s.lives, time.Now().UnixNano())
	s.child = f.spawn(s.name, role{Server: &serverRole{DSN: cmp.Or(s.dsn, f.dsn), Listen: s.addr, Name: s.name, Incarnation: s.incarnation, Loss: f.loss, Lease: f.lease}})
}

func (f *fleet) startAll() {
	f.t.Helper()
	for _, s := range f.servers {
		f.start(s)
		f.ready(s)
	}
}

func (f *fleet) startWorker(name string, slots int) *child {
	f.t.Helper()
	c := f.spawn(name, role{Worker: &workerRole{Servers: f.addresses(), Name: name, Pools: f.pools, Slots: slots, Table: f.table,
		Witness: filepath.Join(f.dir, name+".witness")}})
	f.workers = append(f.workers, c)
	return c
}

func (f *fleet) addresses() (all []string) {
	for _, s := range f.servers {
		all = append(all, s.addr)
	}
	return all
}

// client asks the servers in a random order.
func (f *fleet) client(retryFor time.Duration) *takt.Client {
	f.t.Helper()
	all := f.addresses()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	c, err := takt.NewClient(takt.ClientConfig{Servers: all, RetryFor: retryFor})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// put writes a job.
func (f *fleet) put(name, pool string, e errand, change func(*takt.JobSpec)) takt.Job {
	f.t.Helper()
	params, err := json.Marshal(e)
	if err != nil {
		f.t.Fatal(err)
	}
	spec := takt.JobSpec{Pool: pool, Handler: "run", Params: params}
	if change != nil {
		change(&spec)
	}
	c := f.client(time.Minute)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		made, err := c.PutJob(context.Background(), takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: spec}, takt.PutOptions{})
		if err == nil {
			return made
		}
		if time.Now().After(end) {
			f.t.Fatal(err)
		}
	}
}

// trigger asks under a key, through a random server, and notes what was acknowledged.
func (f *fleet) trigger(c *takt.Client, job, key string) error {
	r, err := c.Trigger(context.Background(), job, takt.TriggerOptions{IdempotencyKey: key})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, again := f.acked[key]; again && other != r.Execution {
		f.t.Errorf("key %s made %s and %s", key, other, r.Execution)
	}
	f.acked[key] = r.Execution
	return nil
}

// ask triggers jobs in turn until the drill is over, each with a key of its own; fault hears of what no retry healed.
func (f *fleet) ask(who string, pause, retryFor time.Duration, fault func(key string, err error), jobs ...string) {
	f.load.Go(func() {
		for n := 0; !f.over.Load(); n++ {
			key := fmt.Sprintf("%s-%d", who, n)
			if err := f.trigger(f.client(retryFor), jobs[n%len(jobs)], key); err != nil {
				fault(key, err)
			}
			time.Sleep(pause)
		}
	})
}

// waves is ask for many executions of one job at a time, through one server.
func (f *fleet) waves(who string, many int, pause, retryFor time.Duration, fault func(key string, err error), jobs ...string) {
	f.load.Go(func() {
		for n := 0; !f.over.Load(); n++ {
			c := f.client(retryFor)
			var wave sync.WaitGroup
			for i := range many {
				wave.Go(func() {
					key := fmt.Sprintf("%s-%d-%d", who, n, i)
					if err := f.trigger(c, jobs[n%len(jobs)], key); err != nil {
						fault(key, err)
					}
				})
			}
			wave.Wait()
			time.Sleep(pause)
		}
	})
}

// lastingAddress is one that stays free while nobody listens there: below the ports of outgoing connections.
func lastingAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// patience bounds waits that a slow machine only makes longer.
const patience = 90 * time.Second

// until waits for something, and says how long that took.
func until(t *testing.T, what string, ok func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := ok()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > patience {
			t.Fatalf("waited in vain until %s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

var errNotYet = errors.New("not yet")

func yes(ok bool) error {
	if ok {
		return nil
	}
	return errNotYet
}
