package drill_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store/sqlite"
)

var (
	manyKills = flag.Int("kills", 50, "how often TestKillServer kills the server")
	killSeed  = flag.Uint64("killseed", 1, "when it does so")
)

// program is the real binary, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "takt-drill-")
	if err != nil {
		return "", err
	}
	programDir = dir
	name := filepath.Join(dir, "takt")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", name, "github.com/taktsched/takt/cmd/takt").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return name, nil
})

var programDir string // written by program

func removeProgram() {
	if programDir != "" {
		_ = os.RemoveAll(programDir) // a file that stays in the temporary directory harms nobody
	}
}

// killed is a drill on a real server process: real binary, real disk, real sockets. The workers live in
// the test's process and never die.
type killed struct {
	t     *testing.T
	dir   string
	addr  string
	lease partition.Lease
	tape  *drill.Tape
	cmd   *exec.Cmd
	log   *os.File

	mu      sync.Mutex
	acked   map[string]string // request key → execution
	asked   int               // shards of what is in acked
	effects map[string]int    // shard key → how often
	beats   map[string]time.Time
}

var killWorkers = []string{"A", "B", "C"}

const (
	shardsPerKill = 10 // that are asked for
	manyShards    = 6  // of the job "many"
)

func (k *killed) start() {
	k.t.Helper()
	bin, err := program()
	if err != nil {
		k.t.Fatal(err)
	}
	k.cmd = exec.Command(bin, "server", "--data", k.dir, "--listen", k.addr, "--lease-ttl", k.lease.TTL.String(), "--beat", k.lease.Beat.String())
	k.cmd.Stderr = k.log
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TAKT_") {
			k.cmd.Env = append(k.cmd.Env, e)
		}
	}
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
}

// kill is kill -9.
func (k *killed) kill() {
	k.t.Helper()
	if err := k.cmd.Process.Kill(); err != nil {
		k.t.Errorf("the server had ended by itself: %v", err)
	}
	_ = k.cmd.Wait() // says that it was killed
}

// TestKillServer kills the server at random moments under load and starts it again on the same directory.
// Nothing acknowledged is lost, nothing has an effect twice, and running shards keep their workers.
func TestKillServer(t *testing.T) {
	t.Parallel()
	kills := *manyKills
	switch {
	case testing.Short():
		kills = min(kills, 5)
	case raceOn: // which watches the workers; the server is a process that is not
		kills = min(kills, 10)
	}
	k := newKilled(t)
	k.start()
	ctx, stop := context.WithCancel(context.Background())
	var workers, load sync.WaitGroup
	defer func() {
		stop()
		load.Wait()
		workers.Wait()
	}()
	client := k.client()
	k.put(ctx, client, "one", takt.JobSpec{Pool: "p", Handler: "short"})
	k.put(ctx, client, "many", takt.JobSpec{Pool: "p", Handler: "long", Shards: &takt.ShardsSpec{Count: manyShards}})
	for _, name := range killWorkers {
		k.worker(ctx, &workers, name)
	}
	var over atomic.Bool
	for i := range 3 {
		load.Go(func() { k.load(ctx, client, i, &over) })
	}
	dice := rand.New(rand.NewPCG(*killSeed, 1))
	for n := range kills {
		time.Sleep(50*time.Millisecond + time.Duration(dice.Int64N(int64(900*time.Millisecond))))
		k.until("the load keeps up with the kills", func() bool { return k.asked >= shardsPerKill*(n-5) })
		k.until("every worker was heard lately", k.heard)
		k.kill()
		k.start()
	}
	k.until("there was enough load", func() bool { return k.asked >= shardsPerKill*kills })
	over.Store(true)
	load.Wait()
	k.await(ctx, client)
	stop()
	workers.Wait()
	k.kill()
	k.judge(kills)
}

func newKilled(t *testing.T) *killed {
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	k := &killed{t: t, dir: dir, addr: lastingAddress(t), lease: partition.Lease{TTL: 10 * time.Second, Beat: time.Second}.Filled(),
		tape: &drill.Tape{}, log: log, acked: map[string]string{}, effects: map[string]int{}, beats: map[string]time.Time{}}
	t.Cleanup(func() { // of a drill that went wrong
		if k.cmd != nil && k.cmd.ProcessState == nil {
			_ = k.cmd.Process.Kill()
			_ = k.cmd.Wait()
		}
	})
	return k
}

func (k *killed) client() *takt.Client {
	k.t.Helper()
	c, err := takt.NewClient(takt.ClientConfig{Server: k.addr, RetryFor: time.Minute})
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

func (k *killed) put(ctx context.Context, c *takt.Client, name string, spec takt.JobSpec) {
	k.t.Helper()
	j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: spec}
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err = c.PutJob(ctx, j, takt.PutOptions{}); err == nil {
			return
		}
	}
	k.t.Fatal(err)
}

// worker runs an SDK worker until ctx ends.
func (k *killed) worker(ctx context.Context, wg *sync.WaitGroup, name string) {
	k.t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	link := drill.NewLink(name, 1, transport, k.tape)
	w, err := takt.NewWorker(takt.WorkerConfig{Server: k.addr, Pool: "p", Name: name, Slots: 16, HTTPClient: &http.Client{Transport: &listening{k, name, link}},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		k.t.Fatal(err)
	}
	w.Handle("short", k.handler(name, 1, 10*time.Millisecond))
	w.Handle("long", k.handler(name, 4, 250*time.Millisecond))
	wg.Go(func() {
		defer transport.CloseIdleConnections()
		defer link.Close()
		if err := w.Run(ctx); err != nil {
			k.t.Errorf("worker %s ended with %v", name, err)
		}
	})
}

func (k *killed) handler(worker string, steps int, step time.Duration) takt.Handler {
	return func(ctx context.Context, t *takt.Task) error {
		done := 0
		if _, err := t.LastCheckpoint(&done); err != nil {
			return err
		}
		for ; done < steps; done++ {
			timer := time.NewTimer(step)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return context.Cause(ctx)
			}
			if err := t.Checkpoint(ctx, done+1); err != nil {
				return err
			}
		}
		began := time.Now()
		if err := t.Progress(1, 1, "effect"); err != nil {
			return err
		}
		k.mu.Lock()
		k.effects[t.Key()]++
		k.mu.Unlock()
		k.tape.Effect(drill.Effect{At: time.Now(), Began: began, Worker: worker, Execution: t.Execution(), Shard: t.Shard(),
			Token: job.Token(t.Token()), Attempt: t.Attempt(), Key: t.Key()})
		return nil
	}
}

// load asks for executions one after the other, each under a key of its own.
func (k *killed) load(ctx context.Context, c *takt.Client, who int, over *atomic.Bool) {
	for n := 0; !over.Load(); n++ {
		name, shards := "one", 1
		if n%10 == 0 {
			name, shards = "many", manyShards
		}
		key := fmt.Sprintf("%s-%d-%d", name, who, n)
		r, err := c.Trigger(ctx, name, takt.TriggerOptions{IdempotencyKey: key})
		if err != nil {
			k.t.Errorf("trigger %s: %v", key, err)
			return
		}
		k.mu.Lock()
		k.acked[key] = r.Execution
		k.asked += shards
		k.mu.Unlock()
		time.Sleep(30 * time.Millisecond)
	}
}

// await waits until everything acknowledged has ended.
func (k *killed) await(ctx context.Context, c *takt.Client) {
	k.t.Helper()
	end := time.Now().Add(90 * time.Second)
	for key, id := range k.acked {
		for ; ; time.Sleep(100 * time.Millisecond) {
			x, err := c.Execution(ctx, id)
			if err == nil && x.EndedAt != nil {
				break
			}
			if err != nil && errors.Is(err, takt.ErrNotFound) {
				k.t.Errorf("trigger %s was acknowledged as %s, which is not there", key, id)
				break
			}
			if time.Now().After(end) {
				k.t.Fatalf("trigger %s was acknowledged as %s, which is %q: %v", key, id, x.State, err)
			}
		}
	}
}

// judge reads the database and compares it with what was acknowledged and what had effects.
func (k *killed) judge(kills int) {
	t := k.t
	ctx := context.Background()
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(k.dir, "takt.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	rows, err := st.Journal(ctx, 0, 0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := drill.ReadJournal(rows)
	if err != nil {
		t.Fatal(err)
	}
	h := &drill.History{Events: journal, Wire: k.tape.Wire(), Effects: k.tape.Effects(), Executions: allExecutions(t, st), End: time.Now(),
		TTL: k.lease.TTL, Margin: k.lease.Margin, OwnerTTL: k.lease.OwnerTTL,
		Slack: time.Hour} // renewals died with the processes that saw them: that no verdict came late can not be told
	sound(t, h)

	lost, twice, moved, owners, shards := 0, 0, 0, 0, 0
	byID := map[string]job.Execution{}
	for _, x := range h.Executions {
		byID[x.ID.String()] = x
	}
	for key, id := range k.acked {
		x, there := byID[id]
		if !there || x.State != job.ExecutionSucceeded {
			lost++
			t.Errorf("trigger %s was acknowledged as %s, which is %q", key, id, x.State)
			continue
		}
		for i := range x.ShardTotal {
			shards++
			switch n := k.effects[job.Key(&x, i)]; {
			case n == 0:
				lost++
				t.Errorf("shard %d of %s succeeded without an effect", i, id)
			case n > 1:
				twice++
				t.Errorf("shard %d of %s had its effect %d times", i, id, n)
			}
		}
	}
	for _, e := range journal {
		switch {
		case e.Kind == engine.FactOwned:
			owners++
		case e.Kind == engine.FactLeaseGranted && e.Attempt > 1:
			moved++
			t.Errorf("shard %d of %s was given to %s as attempt %d at %s, although its worker lived", e.Shard, e.Execution, e.Worker, e.Attempt, e.At)
		}
	}
	t.Logf("lost=%d twice=%d moved=%d kills=%d owners=%d triggers=%d shards=%d", lost, twice, moved, kills, owners, len(k.acked), shards)
	if shards < shardsPerKill*kills {
		t.Errorf("%d shards under %d kills: too little load to prove anything", shards, kills)
	}
}
