package agent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
)

// family is the command of case C51, with a child that ignores SIGTERM and two that left the group, one of
// them without a trace of where it comes from.
func family(n int) string {
	return fmt.Sprintf("sleep %s & (trap '' TERM; sleep %s) & (setsid sleep %s &) ; (env -i setsid sleep %s &) ; sleep %s; exit $?",
		seconds(n), seconds(n+1), seconds(n+2), seconds(n+3), seconds(n+4))
}

func familyMembers(n int) (list []int) {
	for i := range 5 {
		list = append(list, sleepers(seconds(n+i))...)
	}
	return list
}

func awaitFamily(t *testing.T, n int) {
	t.Helper()
	until(t, "the whole family runs", func() bool { return len(familyMembers(n)) == 5 })
}

const (
	slack = 2 * time.Second // what case C51 allows for beside the grace
	busy  = 3 * time.Second // more, for a machine that has other things to do
)

// TestC51 is case C51: the children of a command that is stopped, by a time-out and by a person.
func TestC51ChildrenOfTheKilled(t *testing.T) {
	t.Parallel()
	r := start(t, fmt.Sprintf("\n  family: {command: {shell: %q}, grace: 1s}\n  cancelled: {command: {shell: %q}, grace: 1s}\n", family(10), family(20)))
	t.Run("time-out", func(t *testing.T) {
		const limit = 3 * time.Second
		id := r.trigger("family", takt.JobSpec{Timeout: &takt.TimeoutSpec{Attempt: takt.Duration(limit)}}, nil)
		awaitFamily(t, 10)
		e, s := r.wait(id)
		if e.State != "timed_out" || s.State != "timed_out" {
			t.Errorf("%s, %s", e.State, s.State)
		}
		if left := familyMembers(10); len(left) > 0 {
			t.Errorf("the server knows of the end, and %v still run", left)
		}
		if took := s.EndedAt.Sub(*s.StartedAt); took < limit || took > limit+time.Second+slack+busy {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		id := r.trigger("cancelled", takt.JobSpec{}, nil)
		awaitFamily(t, 20)
		asked := time.Now()
		if _, err := client.Cancel(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		if e, _ := r.wait(id); e.State != "cancelled" {
			t.Error(e.State)
		}
		if left := familyMembers(20); len(left) > 0 {
			t.Errorf("the server knows of the end, and %v still run", left)
		}
		if took := time.Since(asked); took > time.Second+slack+busy {
			t.Errorf("it took %v", took)
		}
	})
}

// process is an agent process of a test.
type agentProcess struct {
	cmd   *exec.Cmd
	state string
	id    string // of its execution
}

// launch starts an agent process with a handler "family" and waits until its command runs.
func launch(t *testing.T, r *rig, n int) *agentProcess {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "handlers.yaml")
	text := head + fmt.Sprintf("  family: {command: {shell: %q}, grace: 1s}\n", family(n))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &agentProcess{cmd: exec.Command(os.Args[0]), state: filepath.Join(dir, "state")}
	p.cmd.Env = append(os.Environ(), "AGENT_SERVER="+server, "AGENT_POOL="+r.pool, "AGENT_STATE="+p.state, "AGENT_FILE="+file)
	p.cmd.Stderr = &r.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.id = r.trigger("family", takt.JobSpec{}, nil)
	awaitFamily(t, n)
	return p
}

// orphan makes a rig without an agent.
func orphan(t *testing.T, pool string) *rig {
	return &rig{t: t, pool: pool}
}

// guardOf reads the run file of the one attempt below a state directory.
func runOf(t *testing.T, state string) (name string, run map[string]any) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(state, "*", "*", "run.json"))
	if err != nil || len(names) != 1 {
		t.Fatalf("run files: %v, %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil {
		t.Fatal(err)
	}
	return names[0], run
}

func guardPID(t *testing.T, state string) int {
	t.Helper()
	_, run := runOf(t, state)
	return int(run["guard"].(map[string]any)["pid"].(float64))
}

// Third variant of C51: kill -9 of the agent. Its guards end their trees.
func TestC51KilledAgent(t *testing.T) {
	t.Parallel()
	r := orphan(t, "c51-killed")
	p := launch(t, r, 30)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	until(t, "nothing is left", func() bool { return len(familyMembers(30)) == 0 })
	if took := time.Since(killed); took > slack+busy {
		t.Errorf("it took %v", took)
	}
	// The next agent finds the rest of the state and takes the shard again.
	next := start(t, "\n  family: {command: {shell: exit 0}}\n", func(c *agent.Config) {
		c.Worker.Pool, c.State = r.pool, p.state
	})
	if _, s := next.wait(p.id); s.State != "succeeded" || s.Losses != 1 {
		t.Errorf("%s after %d losses", s.State, s.Losses)
	}
	if lives, err := os.ReadDir(p.state); err != nil || len(lives) != 1 {
		t.Errorf("the state holds %v, %v; want that of the living agent", lives, err)
	}
}

// kill -9 of the agent and of its guard at once: the command itself is ended by the kernel, the rest by the
// next agent, before it opens a session.
func TestC51KilledAgentAndGuard(t *testing.T) {
	t.Parallel()
	r := orphan(t, "c51-both")
	p := launch(t, r, 40)
	guard := guardPID(t, p.state)
	_, run := runOf(t, p.state)
	command := int(run["command"].(map[string]any)["pid"].(float64))
	must(syscall.Kill(p.cmd.Process.Pid, syscall.SIGSTOP)) // it must not take over
	must(syscall.Kill(guard, syscall.SIGKILL))
	must(p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	defer func() {
		for _, pid := range familyMembers(40) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	until(t, "the kernel ends the command", func() bool { return !lives(command) })
	forgotten := sleepers(seconds(43)) // it has neither parent nor mark: what is documented as out of reach
	if left := familyMembers(40); len(left) != 5 {
		t.Fatalf("only %v are left to be found", left)
	}
	opened := make(chan []int, 1)
	next := start(t, "\n  family: {command: {shell: exit 0}}\n", func(c *agent.Config) {
		c.Worker.Pool, c.State = r.pool, p.state
		c.Worker.Logger = c.Worker.Logger.With("next", true)
	})
	go func() {
		for !strings.Contains(next.log.String(), "session opened") {
			time.Sleep(time.Millisecond)
		}
		opened <- familyMembers(40)
	}()
	left := <-opened
	if len(left) > len(forgotten) {
		t.Errorf("when the next agent opens its session %v still run", left)
	}
	if !strings.Contains(next.log.String(), "killed what an agent before this one left running") {
		t.Error("the next agent does not tell what it killed")
	}
	next.wait(p.id)
}

// SIGSTOP of the agent: its lease runs out, and the guard kills the tree before the server may give the
// shard to somebody else.
func TestStoppedAgent(t *testing.T) {
	t.Parallel()
	r := orphan(t, "stopped")
	p := launch(t, r, 50)
	until(t, "the lease was extended", func() bool { return r.shard(p.id).StartedAt != nil && time.Since(*r.shard(p.id).StartedAt) > ttl })
	if len(familyMembers(50)) != 5 {
		t.Fatal("the command did not live past its first lease")
	}
	must(p.cmd.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	until(t, "nothing is left", func() bool { return len(familyMembers(50)) == 0 })
	took := time.Since(stopped)
	if s := r.shard(p.id); s.Losses > 0 || s.State != "running" {
		t.Errorf("the server took the shard away first: %s, %d losses", s.State, s.Losses)
	}
	if took > ttl || took < ttl/4 {
		t.Errorf("the guard killed after %v, the lease is %v", took, ttl)
	}
	must(p.cmd.Process.Signal(syscall.SIGCONT))
	must(p.cmd.Process.Signal(syscall.SIGTERM))
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	next := start(t, "\n  family: {command: {shell: exit 0}}\n", func(c *agent.Config) { c.Worker.Pool = r.pool })
	next.wait(p.id)
}

// A guard that hangs or dies is no way out either: the agent ends its tree.
func TestGuardFails(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name string
		sig  syscall.Signal
	}{{"stopped", syscall.SIGSTOP}, {"killed", syscall.SIGKILL}} {
		t.Run(c.name, func(t *testing.T) {
			n := 60 + 10*i
			r := start(t, fmt.Sprintf("\n  family: {command: {shell: %q}, grace: 100ms}\n", family(n)))
			id := r.trigger("family", takt.JobSpec{}, nil)
			awaitFamily(t, n)
			must(syscall.Kill(guardPID(t, r.state), c.sig))
			if c.sig == syscall.SIGSTOP {
				if _, err := client.Cancel(t.Context(), id, ""); err != nil {
					t.Fatal(err)
				}
			}
			_, s := r.wait(id)
			left := familyMembers(n)
			if c.sig == syscall.SIGKILL { // what has no mark is out of reach then
				for _, pid := range sleepers(seconds(n + 3)) {
					must(syscall.Kill(pid, syscall.SIGKILL))
					left = left[1:]
				}
				if s.Error == nil || s.Error.Class != "killed" {
					t.Errorf("%s: %+v", s.State, s.Error)
				}
			}
			if len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

// Only processes that an attempt started are killed: not one that got the pid of an ended one, nor one
// whose mark is another's, nor any after the machine was started again.
func TestRecycledPidIsSpared(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", seconds(90))
	stranger.Env = []string{"TAKT_MARK=" + strings.Repeat("b", 32)}
	must(stranger.Start())
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	victim := exec.Command("sleep", seconds(91))
	victim.Env = []string{"TAKT_MARK=" + strings.Repeat("a", 32)}
	must(victim.Start())
	ended := make(chan struct{})
	go func() { _ = victim.Wait(); close(ended) }()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must(err)
	state := filepath.Join(t.TempDir(), "state")
	leave := func(life, mark, boot string, pid int, start uint64) {
		dir := filepath.Join(state, life, mark)
		must(os.MkdirAll(dir, 0o700))
		must(os.WriteFile(filepath.Join(state, life, "lock"), nil, 0o600))
		text, err := json.Marshal(map[string]any{"mark": mark, "boot": boot, "guard": map[string]any{"pid": pid, "start": start}})
		must(err)
		must(os.WriteFile(filepath.Join(dir, "run.json"), text, 0o600))
	}
	now := strings.TrimSpace(string(boot))
	leave("one", strings.Repeat("a", 32), now, stranger.Process.Pid, startOf(t, stranger.Process.Pid)-1)
	leave("two", strings.Repeat("b", 32), "another life of the machine", stranger.Process.Pid, startOf(t, stranger.Process.Pid))
	leave("three", "", now, stranger.Process.Pid, startOf(t, stranger.Process.Pid))
	r := start(t, "\n  x: {command: {shell: exit 0}}\n", func(c *agent.Config) { c.State = state })
	r.run("x", takt.JobSpec{}, nil)
	<-ended
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil || len(sleepers(seconds(90))) != 1 {
		t.Errorf("a process of somebody else was killed: %v", err)
	}
	r.stop()
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("the state holds %v, %v", left, err)
	}
}

// lives tells whether a process runs; one that ended and was not waited for does not.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(text) > 0
}

// startOf is when a process was started, in clock ticks since the machine was.
func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	must(err)
	defer func() { _ = f.Close() }()
	line, _ := bufio.NewReader(f).ReadString('\n')
	fields := strings.Fields(line[strings.LastIndex(line, ")")+1:])
	n, err := strconv.ParseUint(fields[19], 10, 64)
	must(err)
	return n
}

// The state of a living agent is left alone, and one in which others may write is refused.
func TestStateIsOnesOwn(t *testing.T) {
	t.Parallel()
	r := start(t, fmt.Sprintf("\n  x: {command: {shell: echo up; sleep %s}, grace: 10ms}\n", seconds(95)))
	id := r.trigger("x", takt.JobSpec{}, nil)
	until(t, "the command runs", func() bool { return len(sleepers(seconds(95))) == 1 })
	second := start(t, "\n  y: {command: {shell: exit 0}}\n", func(c *agent.Config) { c.State = r.state })
	second.run("y", takt.JobSpec{}, nil)
	second.state = filepath.Join(t.TempDir(), "none") // r's is in it
	second.stop()
	if len(sleepers(seconds(95))) != 1 {
		t.Error("the second agent killed what the first one runs")
	}
	if _, err := client.Cancel(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	r.wait(id)

	open, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	must(os.Chmod(open, 0o777))
	must(os.Symlink(r.state, link))
	h, err := agent.Parse("h", []byte(head+"  y: {command: {shell: exit 0}}\n"))
	must(err)
	for name, dir := range map[string]string{"open to all": open, "behind a link": link} {
		err = agent.Run(t.Context(), agent.Config{Handlers: h, State: dir, Worker: takt.WorkerConfig{Server: server, Pool: "p"}})
		if err == nil || !strings.Contains(err.Error(), "nobody else may write") {
			t.Errorf("a state directory %s: %v", name, err)
		}
	}
}
