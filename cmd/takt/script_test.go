package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/taktsched/takt"
)

// patience bounds what only ends early when something is broken.
const patience = time.Minute

// envRace tunes the race detector. By itself it lets a program wait for a second before that ends, for what its goroutines still
// do; a process of the tests has told what it had to, and there are some thousand of them.
const envRace = "GORACE"

func TestMain(m *testing.M) {
	if _, set := os.LookupEnv(envRace); !set {
		if err := os.Setenv(envRace, "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"takt": main, "testworker": testWorker})
}

// TestScripts runs the scripts of testdata/script against real processes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":       exits,
			"startserver": startServer,
			"stopserver":  stopServer,
			"startagent":  startAgent,
			"stopagent":   stopAgent,
			"signal":      sendSignal,
			"tree":        tree,
			"commandtree": commandTree,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "signals" { // a process can be sent SIGINT and SIGTERM
				return canSignal, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			dir, err := filepath.Abs(filepath.Join("..", "..", "examples"))
			e.Setenv("EXAMPLES", dir)
			e.Setenv(envRace, os.Getenv(envRace))
			return err
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits CODE COMMAND… runs a command that must end with the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	checkExit(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func checkExit(ts *testscript.TestScript, want string, err error) {
	code := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		code = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("run: %v", err)
	}
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// background is a process with what it has written to standard error.
type background struct {
	cmd    *exec.Cmd
	out    bytes.Buffer
	mu     sync.Mutex
	errOut bytes.Buffer
	done   chan struct{} // closed when standard error has ended
	lines  chan string
}

// launch starts a command of the script; its standard error arrives line by line.
func launch(ts *testscript.TestScript, name string, args ...string) *background {
	path, err := exec.LookPath(name)
	ts.Check(err)
	b := &background{cmd: exec.Command(path, args...), done: make(chan struct{}), lines: make(chan string, 1024)}
	b.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TAKT_SERVER", "TAKT_TOKEN_FILE", "TAKT_LEASE_TTL", envRace} {
		if v := ts.Getenv(name); v != "" {
			b.cmd.Env = append(b.cmd.Env, name+"="+v)
		}
	}
	b.cmd.Stdout = &b.out
	stderr, err := b.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(b.cmd.Start())
	go func() {
		defer close(b.done)
		defer close(b.lines)
		for in := bufio.NewScanner(stderr); in.Scan(); {
			b.mu.Lock()
			b.errOut.WriteString(in.Text() + "\n")
			b.mu.Unlock()
			select {
			case b.lines <- in.Text():
			default: // nobody waits for it any more
			}
		}
	}()
	return b
}

// await gives the submatches of the first line of standard error that fits.
func (b *background) await(ts *testscript.TestScript, pattern string) []string {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	late := time.After(patience)
	for {
		select {
		case line, ok := <-b.lines:
			if !ok {
				b.end(ts)
				ts.Fatalf("the process ended without %q on standard error:\n%s", pattern, b.errOut.String())
			}
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		case <-late:
			_ = b.cmd.Process.Kill()
			ts.Fatalf("no %q on standard error:\n%s", pattern, b.errOut.String())
		}
	}
}

// end waits for the process, by force after patience.
func (b *background) end(ts *testscript.TestScript) error {
	timer := time.AfterFunc(patience, func() { _ = b.cmd.Process.Kill() })
	defer timer.Stop()
	<-b.done
	err := b.cmd.Wait()
	_, _ = io.Copy(ts.Stdout(), &b.out)
	_, _ = io.Copy(ts.Stderr(), &b.errOut)
	return err
}

var servers sync.Map // *testscript.TestScript → *background

// startserver FLAGS… starts a server on $WORK/data and a free port and sets TAKT_SERVER to its address.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	b := launch(ts, "takt", append([]string{"server", "--data", ts.MkAbs("data"), "--listen", "127.0.0.1:0"}, args...)...)
	ts.Defer(func() {
		if _, running := servers.LoadAndDelete(ts); running {
			_ = b.cmd.Process.Kill()
			_ = b.cmd.Wait()
		}
	})
	servers.Store(ts, b)
	m := b.await(ts, `msg=serving address=(\S+)`)
	ts.Setenv("TAKT_SERVER", "http://"+m[1])
	c, err := takt.NewClient(takt.ClientConfig{Server: m[1]})
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Any answer but "not yet" will do: a server with a token refuses us.
	for errors.Is(func() error { _, err := c.Pools(ctx); return err }(), takt.ErrUnavailable) && ctx.Err() == nil {
	}
}

// stopserver CODE sends SIGTERM; the server must end with the exit code.
func stopServer(ts *testscript.TestScript, neg bool, args []string) {
	v, ok := servers.LoadAndDelete(ts)
	if !ok || len(args) != 1 {
		ts.Fatalf("usage: stopserver CODE, after startserver")
	}
	b := v.(*background)
	ts.Check(terminate(b.cmd.Process))
	checkExit(ts, args[0], b.end(ts))
}

// signal INT|TERM CODE PATTERN COMMAND… sends the signal when a line of standard error fits the pattern.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 4 {
		ts.Fatalf("usage: signal INT|TERM CODE PATTERN COMMAND…")
	}
	b := launch(ts, args[3], args[4:]...)
	b.await(ts, args[2])
	if args[0] == "TERM" {
		ts.Check(terminate(b.cmd.Process))
	} else {
		ts.Check(b.cmd.Process.Signal(os.Interrupt))
	}
	checkExit(ts, args[1], b.end(ts))
}

// tree DIR N makes a directory with N small files.
func tree(ts *testscript.TestScript, neg bool, args []string) {
	dir := ts.MkAbs(args[0])
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.MkdirAll(dir, 0o755))
	for i := range n {
		ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", i)), []byte("x\n"), 0o644))
	}
}

// testWorker is a worker process with handlers that end as their names say.
func testWorker() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	w, err := takt.NewWorker(takt.WorkerConfig{Server: os.Getenv("TAKT_SERVER"), Pool: "scripts", Name: "scripted", Slots: 4,
		Token: os.Getenv("TAKT_TOKEN"), Grace: -1})
	if err != nil {
		panic(err)
	}
	w.Handle("ok", func(_ context.Context, t *takt.Task) error { return t.SetResult(t.Params()) })
	w.Handle("fail", func(context.Context, *takt.Task) error { return takt.Fatal(errors.New("no such invoice")) })
	w.Handle("chatty", chatty)
	w.Handle("forever", func(ctx context.Context, _ *takt.Task) error { <-ctx.Done(); return context.Cause(ctx) })
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
}

// chatty writes what is hard to show, and a last line without a newline.
func chatty(_ context.Context, t *takt.Task) error {
	t.Log().Info("begins", "shard", t.Shard())
	for i := range 1000 {
		if _, err := fmt.Fprintf(t.Output("stdout"), "line %d\n", i); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	_, err := io.WriteString(t.Output("stderr"), "\x1b[2J\x1b]8;;http://evil\aclick\u202e\xff\nthe last line")
	return err
}
