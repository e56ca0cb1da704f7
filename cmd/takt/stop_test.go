package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// program is a takt process, with what it writes line by line.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	seen  strings.Builder
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	return startIn(t, t.TempDir(), args...)
}

func startIn(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	path, err := exec.LookPath("takt")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.Command(path, args...), lines: make(chan string, 1024)}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "HOME="+p.cmd.Dir, "TAKT_CONTEXT=", "TAKT_SERVER=")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go func() {
		defer close(p.lines)
		for in := bufio.NewScanner(r); in.Scan(); {
			p.lines <- in.Text()
		}
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

// await reads on until a line fits, and gives its submatches.
func (p *program) await(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("it ended without %q:\n%s", pattern, p.seen.String())
			}
			p.seen.WriteString(line + "\n")
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		case <-late:
			p.t.Fatalf("no %q:\n%s", pattern, p.seen.String())
		}
	}
}

func (p *program) interrupt() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
}

// end is the exit code.
func (p *program) end() int {
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	for line := range p.lines {
		p.seen.WriteString(line + "\n")
	}
	_ = p.cmd.Wait() // the exit code says it
	return p.cmd.ProcessState.ExitCode()
}

const stubborn = `
apiVersion: takt/v1
kind: Handlers
handlers:
  stubborn:
    command: {shell: "trap '' TERM INT; echo started; while :; do sleep 0.2; done"}
`

// lingering are handlers that wait for a service which never answers, and that the system has stopped.
const lingering = `  hang: {http: {url: 'http://%s/', timeout: 10m, allowPrivate: true}}
  frozen: {command: {shell: 'kill -STOP $$'}}
`

// pile asks for many runs of each handler.
func pile(t *testing.T, server, pool string, handlers ...string) {
	t.Helper()
	c, err := takt.NewClient(takt.ClientConfig{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range handlers {
		j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: h}, Spec: takt.JobSpec{Pool: pool, Handler: h, Shards: &takt.ShardsSpec{Count: 100}}}
		if _, err := c.PutJob(t.Context(), j, takt.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Trigger(t.Context(), h, takt.TriggerOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// busy has the stubborn command running for the pool and returns when it runs.
func busy(t *testing.T, server, pool string) {
	t.Helper()
	c, err := takt.NewClient(takt.ClientConfig{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: "stubborn"}, Spec: takt.JobSpec{Pool: pool, Handler: "stubborn"}}
	if _, err := c.PutJob(t.Context(), j, takt.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := c.Trigger(t.Context(), "stubborn", takt.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		logs, err := c.Logs(t.Context(), made.Execution, takt.LogQuery{})
		if err != nil {
			t.Fatal(err)
		}
		if len(logs.Items) > 0 { // it has set its trap
			return
		}
	}
}

// stopping are the three that run until they are told to stop, each with something that makes it linger.
func stopping(t *testing.T) map[string]func(t *testing.T) *program {
	handlers := filepath.Join(t.TempDir(), "handlers.yaml")
	if err := os.WriteFile(handlers, []byte(stubborn), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(t *testing.T) (*program, string) {
		p := start(t, "server", "--data", "data", "--listen", "127.0.0.1:0")
		return p, p.await(`msg=serving address=(\S+)`)[1]
	}
	return map[string]func(t *testing.T) *program{
		"dev": func(t *testing.T) *program {
			p := start(t, "dev", "--listen", "127.0.0.1:0", "--handlers", handlers)
			busy(t, p.await(`(http://127\.0\.0\.1:\d+)/api`)[1], devPool)
			return p
		},
		"dev with much to do": func(t *testing.T) *program {
			silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes calls and never answers
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = silent.Close() })
			file := filepath.Join(t.TempDir(), "handlers.yaml")
			if err := os.WriteFile(file, []byte(stubborn+fmt.Sprintf(lingering, silent.Addr())), 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t, "dev", "--listen", "127.0.0.1:0", "--handlers", file)
			address := p.await(`(http://127\.0\.0\.1:\d+)/api`)[1]
			busy(t, address, devPool)
			pile(t, address, devPool, "hang", "frozen")
			return p
		},
		"agent": func(t *testing.T) *program {
			_, address := server(t)
			p := start(t, "agent", "--server", "http://"+address, "--pool", "p", "--handlers", handlers, "--state", "state")
			busy(t, "http://"+address, "p")
			return p
		},
		"server": func(t *testing.T) *program {
			p, address := server(t)
			half, err := net.Dial("tcp", address) // a call that never comes to its end
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = half.Close() })
			if _, err := fmt.Fprintf(half, "POST /api/v1/apply HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", address); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(half, make([]byte, len("HTTP/1.1 100"))); err != nil { // it is being read
				t.Fatal(err)
			}
			return p
		},
	}
}

// slack is what a loaded machine may make of a promised time before a test calls it broken.
const slack = 4

// The promise: Ctrl-C ends in less than 5 s with exit code 0.
func TestFirstInterruptEndsGracefully(t *testing.T) {
	if !canSignal {
		t.Skip("a process cannot be sent SIGINT here")
	}
	for name, begin := range stopping(t) {
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			began := time.Now()
			p.interrupt()
			code := p.end()
			took := time.Since(began)
			t.Logf("ended after %v", took)
			if code != 0 || took >= slack*5*time.Second {
				t.Errorf("exit code %d after %v, want 0 in less than 5 s:\n%s", code, took, p.seen.String())
			}
		})
	}
}

// The second one does not wait for what the first one waits for.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	if !canSignal {
		t.Skip("a process cannot be sent SIGINT here")
	}
	for name, begin := range stopping(t) {
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			p.interrupt()
			p.await("stopping; once more")
			time.Sleep(2 * sameSignal) // one that comes within it counts as the first one again
			p.interrupt()
			if code := p.end(); code != exitInterrupted {
				t.Errorf("exit code %d, want %d:\n%s", code, exitInterrupted, p.seen.String())
			}
		})
	}
}

// What takt dev says to try works as it stands.
func TestDevSaysWhatWorks(t *testing.T) {
	if !canSignal {
		t.Skip("commands of the agent need a unix system")
	}
	p := start(t, "dev", "--listen", "127.0.0.1:0")
	p.await("Try next")
	for _, want := range []string{`^  (echo .*takt apply.*)$`, `^  (takt trigger .*)$`, `^  (takt get .*)$`} {
		line := p.await(want)[1]
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = p.cmd.Dir, p.cmd.Env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	p.interrupt()
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.seen.String())
	}
	if _, err := os.Stat(filepath.Join(p.cmd.Dir, "takt-data", "takt.db")); err != nil {
		t.Error(err)
	}
}

// A watch in a pipe appends what changes, and ends with Ctrl-C.
func TestWatchAppendsInAPipe(t *testing.T) {
	if !canSignal {
		t.Skip("a process cannot be sent SIGINT here")
	}
	server := start(t, "server", "--data", "data", "--listen", "127.0.0.1:0")
	address := server.await(`msg=serving address=(\S+)`)[1]
	p := start(t, "get", "jobs", "-w", "--every", "100ms", "--server", "http://"+address)
	p.await("^NAME ")
	c, err := takt.NewClient(takt.ClientConfig{Server: address})
	if err != nil {
		t.Fatal(err)
	}
	j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: "late"}, Spec: takt.JobSpec{Pool: "p", Handler: "h"}}
	if _, err := c.PutJob(t.Context(), j, takt.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("^late .* true ")
	if _, err := c.PauseJob(t.Context(), "late", time.Time{}, takt.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("^late .* paused ")
	p.interrupt()
	if code := p.end(); code != exitInterrupted {
		t.Errorf("exit code %d:\n%s", code, p.seen.String())
	}
}
