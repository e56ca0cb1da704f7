package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/partition"
)

// workAs makes the test binary a worker, as its value says.
const workAs = "TAKT_APP_TEST_WORK_AS"

// workPlan is what such a worker is.
type workPlan struct {
	Server, Name, Witness string
	Slots                 int
	Grace                 time.Duration
}

// runFor is the params of the worker's one handler. A later attempt than the first returns at once.
type runFor struct {
	For time.Duration `json:"for"`
}

// sight is a line of the witness: a handler began, or ended as said.
type sight struct {
	What, Key, Worker string
	Token             int64
	At                time.Time
}

// work runs a worker until SIGTERM.
func work(text string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := runWork(ctx, text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runWork(ctx context.Context, text string) error {
	var plan workPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return err
	}
	witness, err := os.OpenFile(plan.Witness, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w, err := takt.NewWorker(takt.WorkerConfig{Server: plan.Server, Pool: "p", Name: plan.Name, Slots: plan.Slots, Grace: plan.Grace,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	w.Handle("run", func(ctx context.Context, t *takt.Task) error {
		var p runFor
		err := json.Unmarshal(t.Params(), &p)
		see := func(what string) { // one write each: lines of several processes do not mix
			line, e := json.Marshal(sight{what, t.Key(), plan.Name, t.Token(), time.Now()})
			if e == nil {
				_, e = witness.Write(append(line, '\n'))
			}
			err = errors.Join(err, e)
		}
		see("began")
		if t.Attempt() == 1 {
			select {
			case <-time.After(p.For):
			case <-ctx.Done():
				see("stopped")
				return errors.Join(err, context.Cause(ctx))
			}
		}
		see("done")
		return err
	})
	return errors.Join(w.Run(ctx), witness.Close())
}

// crew is a server with workers in processes of their own.
type crew struct {
	t       *testing.T
	server  string // what workers call
	client  *takt.Client
	witness string
}

// muster runs a server with the usual lease divided by three.
func muster(t *testing.T) *crew {
	t.Helper()
	lease := partition.Lease{TTL: 6 * time.Second, Beat: 500 * time.Millisecond, Margin: time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, app.Config{DataDir: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", NoSync: true, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	c := &crew{t: t, server: a.Addr(), witness: filepath.Join(t.TempDir(), "witness")}
	if c.client, err = takt.NewClient(takt.ClientConfig{Server: a.Addr(), RetryFor: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return c
}

// worker starts one; it is killed at the latest when the test ends.
func (c *crew) worker(name string, slots int, grace time.Duration) *exec.Cmd {
	c.t.Helper()
	plan, err := json.Marshal(workPlan{Server: c.server, Name: name, Witness: c.witness, Slots: slots, Grace: grace})
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), workAs+"="+string(plan)), os.Stderr
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// ends sends SIGTERM and waits for the end, which must be in peace.
func (c *crew) ends(cmd *exec.Cmd) {
	c.t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		c.t.Errorf("a worker that was told to end: %v", err)
	}
}

// job has no second attempt for a failure.
func (c *crew) job(name string) {
	c.t.Helper()
	j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name},
		Spec: takt.JobSpec{Pool: "p", Handler: "run", Retry: &takt.RetrySpec{MaxAttempts: 1}}}
	if _, err := c.client.PutJob(c.t.Context(), j, takt.PutOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) trigger(job string, length time.Duration) string {
	c.t.Helper()
	made, err := c.client.Trigger(c.t.Context(), job, takt.TriggerOptions{Params: runFor{length}})
	if err != nil {
		c.t.Fatal(err)
	}
	return made.Execution
}

// ended is an execution that has ended, with its one shard.
func (c *crew) ended(id string) (takt.Execution, takt.ShardStatus) {
	c.t.Helper()
	e, err := c.client.Wait(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	list, err := c.client.Shards(c.t.Context(), id, takt.Page{})
	if err != nil || len(list.Items) != 1 {
		c.t.Fatalf("%d shards, %v", len(list.Items), err)
	}
	return e, list.Items[0]
}

// seen is the witness so far.
func (c *crew) seen() (all []sight) {
	c.t.Helper()
	text, err := os.ReadFile(c.witness)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var s sight
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		all = append(all, s)
	}
	return all
}

func (c *crew) count(what, worker string) (n int) {
	c.t.Helper()
	for _, s := range c.seen() {
		if s.What == what && s.Worker == worker {
			n++
		}
	}
	return n
}
