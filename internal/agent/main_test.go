//go:build unix

package agent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/partition"
)

// patience bounds what only ends early when something is broken.
const patience = 2 * time.Minute

const (
	ttl    = 6 * time.Second
	margin = time.Second
)

// guardProgram makes this binary a guard. By itself the race detector lets a program wait for a second before that ends, for what its
// goroutines still do; a guard has told what it had to, and there are a thousand of them.
var guardProgram = []string{"env", "GORACE=atexit_sleep_ms=0", os.Args[0], "agent-guard"}

// The test binary plays guards, and agents that are killed.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "agent-guard":
		if err := agent.Guard(os.Stdin); err != nil {
			os.Exit(1)
		}
	case os.Getenv("AGENT_SERVER") != "":
		playAgent()
	default:
		stop := startServer()
		code := m.Run()
		stop()
		if left := sleepers(""); len(left) > 0 {
			fmt.Fprintln(os.Stderr, "the tests left processes behind:", left)
			code = 1
		}
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
}

// playAgent is an agent process.
func playAgent() {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM) // until the process ends
	h, err := agent.Load(os.Getenv("AGENT_FILE"))
	if err == nil {
		err = agent.Run(ctx, agent.Config{Handlers: h, State: os.Getenv("AGENT_STATE"), Guard: guardProgram,
			Worker: takt.WorkerConfig{Server: os.Getenv("AGENT_SERVER"), Pool: os.Getenv("AGENT_POOL")}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var (
	server string // address of the one that all tests use
	client *takt.Client
)

func startServer() (stop func()) {
	dir, err := os.MkdirTemp("", "takt-agent-test-")
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, app.Config{DataDir: dir, Listen: "127.0.0.1:0", NoSync: true, Version: "test",
		Lease: partition.Lease{TTL: ttl, Beat: 500 * time.Millisecond, Margin: margin}})
	must(err)
	server = a.Addr()
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	client, err = takt.NewClient(takt.ClientConfig{Server: server, RetryFor: time.Minute})
	must(err)
	return func() {
		cancel()
		must(<-done)
		must(os.RemoveAll(dir))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// output collects what commands write, by stream.
type output struct {
	mu   sync.Mutex
	text map[string]*bytes.Buffer
}

func (o *output) stream(_ *takt.Task, stream string) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.text == nil {
			o.text = map[string]*bytes.Buffer{}
		}
		if o.text[stream] == nil {
			o.text[stream] = &bytes.Buffer{}
		}
		return o.text[stream].Write(p)
	})
}

func (o *output) of(stream string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text[stream] == nil {
		return ""
	}
	return o.text[stream].String()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// syncBuffer is a buffer for logs.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// rig is an agent of a test with a pool of its own.
type rig struct {
	t     *testing.T
	pool  string
	state string
	out   output
	log   syncBuffer
	stop  func()
}

const head = "apiVersion: takt/v1\nkind: Handlers\nhandlers:\n"

// start runs an agent with the handlers, each indented by two, until the test ends.
func start(t *testing.T, handlers string, tune ...func(*agent.Config)) *rig {
	t.Helper()
	r := &rig{t: t, pool: strings.ToLower(rand.Text()), state: filepath.Join(t.TempDir(), "state")}
	h, err := agent.Parse("h.yaml", []byte(head+handlers))
	if err != nil {
		t.Fatal(err)
	}
	cfg := agent.Config{Handlers: h, State: r.state, Guard: guardProgram, Output: r.out.stream,
		Worker: takt.WorkerConfig{Server: server, Pool: r.pool, Slots: 8, Logger: slog.New(slog.NewTextHandler(&r.log, nil))}}
	for _, f := range tune {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, cfg) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
		if lives, err := os.ReadDir(r.state); err == nil && len(lives) > 0 {
			t.Errorf("the state directory holds %v", lives)
		}
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// trigger makes an execution of a handler.
func (r *rig) trigger(handler string, spec takt.JobSpec, params any) string {
	r.t.Helper()
	spec.Pool, spec.Handler = r.pool, handler
	name := strings.ToLower(rand.Text())
	j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: spec}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := client.PutJob(ctx, j, takt.PutOptions{}); err != nil {
		r.t.Fatal(err)
	}
	made, err := client.Trigger(ctx, name, takt.TriggerOptions{Params: params})
	if err != nil {
		r.t.Fatal(err)
	}
	return made.Execution
}

// wait gives an execution when it has ended, with its one shard.
func (r *rig) wait(id string) (takt.Execution, takt.ShardStatus) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e, err := client.Wait(ctx, id)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, r.log.String())
	}
	return e, r.shard(id)
}

func (r *rig) shard(id string) takt.ShardStatus {
	r.t.Helper()
	list, err := client.Shards(context.Background(), id, takt.Page{})
	if err != nil || len(list.Items) != 1 {
		r.t.Fatalf("%d shards, %v", len(list.Items), err)
	}
	return list.Items[0]
}

func (r *rig) run(handler string, spec takt.JobSpec, params any) (takt.Execution, takt.ShardStatus) {
	r.t.Helper()
	return r.wait(r.trigger(handler, spec, params))
}

// until polls what has no signal: the processes of the system and what the server shows.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// seconds is an argument of sleep by which its process is known again.
func seconds(n int) string { return fmt.Sprintf("86%03d.%d", n, os.Getpid()) }

// sleepers lists living processes with an argument that ends with the text, if it is one of seconds.
func sleepers(arg string) []int {
	if arg == "" {
		arg = "." + strconv.Itoa(os.Getpid())
	}
	var list []int
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) || err != nil {
			continue
		}
		for word := range strings.SplitSeq(string(text), "\x00") {
			if strings.HasPrefix(word, "86") && strings.HasSuffix(word, arg) {
				pid, err := strconv.Atoi(strings.Split(name, "/")[2])
				must(err)
				list = append(list, pid)
				break
			}
		}
	}
	return list
}
