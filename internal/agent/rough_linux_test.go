package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
)

// once is a job that gets no second attempt.
var once = takt.JobSpec{Retry: &takt.RetrySpec{MaxAttempts: 1}}

// Whatever a command does to its control descriptor, what it said well counts and its exit code decides.
func TestControlDescriptorIsHostile(t *testing.T) {
	t.Parallel()
	r := start(t, `
  closed: {command: {shell: 'exec 3>&-; exit 0'}}
  endless: {command: {shell: 'head -c 50000000 /dev/zero >&3; echo >&3; echo "{\"result\": 1}" >&3'}}
  deep: {command: {shell: '{ printf "{\"checkpoint\":"; head -c 400000 /dev/zero | tr "\0" "["; echo; echo "{\"result\": 2}"; } >&3'}}
  flood: {command: {shell: 'for i in 1 2 3 4 5 6 7 8 9; do yes "{\"progress\": {\"done\": $i}}" | head -n 2000 >&3; done; echo "{\"result\": 3}" >&3'}}
  large: {command: {shell: '{ printf "{\"result\": \""; head -c 300000 /dev/zero | tr "\0" x; echo "\"}"; echo "{\"result\": 4}"; } >&3'}}
  unended: {command: {shell: 'printf "{\"result\": 5}\n{\"result\": " >&3'}}
  numbers: {command: {shell: 'printf "{\"progress\": {\"done\": 1e400}}\n{\"progress\": {\"done\": -1}}\n{\"result\": 6}\n" >&3'}}
  bytes: {command: {shell: 'head -c 100000 /dev/urandom >&3; printf "\n{\"result\": 7}" >&3'}}
  inherited: {command: {shell: '(sleep 0.2; echo "{\"result\": 8}" >&3) & exit 0'}}
  split: {command: {shell: 'printf "{\"res" >&3; sleep 0.1; printf "ult\": 9}" >&3'}}
`)
	for name, want := range map[string]string{"closed": "", "endless": "1", "deep": "2", "flood": "3", "large": "4", "unended": "5", "numbers": "6",
		"bytes": "7", "inherited": "8", "split": "9"} {
		t.Run(name, func(t *testing.T) {
			if _, s := r.run(name, once, nil); s.State != "succeeded" || string(s.Result) != want {
				t.Errorf("%s with %s, want %s: %+v", s.State, s.Result, want, s.Error)
			}
		})
	}
}

// zombies counts children of this process that ended and were not waited for.
func zombies() (n int) {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	must(err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		var state string
		var parent int
		_, err = fmt.Sscanf(string(text[bytes.LastIndexByte(text, ')')+1:]), "%s %d", &state, &parent)
		if err == nil && state == "Z" && parent == os.Getpid() {
			n++
		}
	}
	return n
}

func pipes() (n int) {
	names, err := filepath.Glob("/proc/self/fd/*")
	must(err)
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "pipe:") {
			n++
		}
	}
	return n
}

// Many short commands in a row leave no zombie, no descriptor and no file.
func TestShortCommandsLeaveNothing(t *testing.T) {
	count := 1000
	if testing.Short() {
		count = 200
	}
	r := start(t, "\n  short: {command: {argv: ['true']}}\n")
	r.run("short", once, nil)
	before := pipes()
	spec := takt.JobSpec{Shards: &takt.ShardsSpec{Count: count}}
	began := time.Now()
	e, err := client.Wait(t.Context(), r.trigger("short", spec, nil))
	if err != nil || e.State != "succeeded" {
		t.Fatalf("%s, %v", e.State, err)
	}
	t.Logf("%.0f commands a second", float64(count)/time.Since(began).Seconds())
	if n := zombies(); n > 0 {
		t.Errorf("%d zombies", n)
	}
	if n := pipes(); n > before {
		t.Errorf("%d pipes are open, %d were before", n, before)
	}
	if left, err := filepath.Glob(filepath.Join(r.state, "*", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left in the state directory: %v, %v", left, err)
	}
}

// A full disk under the agent is no fault of the handler: the shard comes again and burns no attempt.
func TestFullStateBurnsNoAttempt(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system is not allowed here: %v", err)
	}
	defer func() { must(syscall.Unmount(disk, syscall.MNT_DETACH)) }()
	r := start(t, "\n  work: {command: {shell: 'cat \"$TAKT_PARAMS_FILE\"'}}\n", func(c *agent.Config) { c.State = filepath.Join(disk, "state") })
	r.run("work", once, nil)
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	must(err)
	if _, err := io.Copy(f, endless{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	must(f.Close())
	id := r.trigger("work", once, map[string]string{"large": strings.Repeat("x", 10_000)})
	until(t, "the agent says so", func() bool { return strings.Contains(r.log.String(), "no space left on device") })
	must(os.Remove(filler))
	if _, s := r.wait(id); s.State != "succeeded" || s.Faults > 0 {
		t.Errorf("%s after %d faults: %+v", s.State, s.Faults, s.Error)
	}
	r.stop()
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A command reads the agent's token nowhere below /proc, though both run as the same user.
func TestCommandsCannotReadTheAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		must(os.Chmod(d, 0o755)) //nolint:gosec // another user starts a program in it
	}
	program, err := os.ReadFile(os.Args[0])
	must(err)
	must(os.WriteFile(filepath.Join(dir, "program"), program, 0o755)) //nolint:gosec // the same
	look := `for p in /proc/[0-9]*; do tr "\0" "\n" <$p/environ; cat $p/cmdline; done 2>/dev/null | grep -c "the-agents-own[-]token"; ls /proc/self/fd`
	must(os.WriteFile(filepath.Join(dir, "h.yaml"), []byte(head+fmt.Sprintf("  look: {command: {shell: %q}}\n", look)), 0o644)) //nolint:gosec // the same
	must(os.Mkdir(filepath.Join(dir, "state"), 0o700))
	cmd := exec.Command(filepath.Join(dir, "program"))
	r := orphan(t, "sealed")
	cmd.Env = append(os.Environ(), "AGENT_SERVER="+server, "AGENT_POOL="+r.pool, "AGENT_STATE="+filepath.Join(dir, "state"),
		"AGENT_FILE="+filepath.Join(dir, "h.yaml"), "TAKT_TOKEN=the-agents-own-token", "TMPDIR=/tmp")
	cmd.Stderr = &r.log
	if os.Getuid() == 0 {
		const nobody = 65534
		must(os.Chown(filepath.Join(dir, "state"), nobody, nobody))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	must(cmd.Start())
	defer func() {
		must(cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agent ended with %v: %s", err, r.log.String())
		}
	}()
	e, s := r.run("look", once, nil)
	page, err := client.Logs(t.Context(), e.ID, takt.LogQuery{})
	must(err)
	var out []string
	for _, l := range page.Items {
		out = append(out, l.Text)
	}
	if got := strings.Join(out, " "); s.State != "succeeded" || got != "0 0 1 2 3 4" {
		t.Errorf("%s: tokens found and descriptors inherited: %q", s.State, got)
	}
}
