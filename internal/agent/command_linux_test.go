package agent_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	r := start(t, `
  0: {command: {shell: exit 0}}
  1: {command: {shell: 'echo first >&2; echo why >&2; exit 1'}}
  3: {command: {shell: exit 3, exitCodes: {3: fatal}}}
  4: {command: {shell: exit 4, exitCodes: {4: success}}}
  64: {command: {shell: exit 64}}
  65: {command: {shell: exit 65}}
  78: {command: {shell: exit 78}}
  retry78: {command: {shell: exit 78, exitCodes: {78: retry}}}
  126: {command: {shell: /etc/passwd}}
  127: {command: {shell: no-such-program}}
  signal: {command: {shell: kill -9 $$}}
  absent: {command: {argv: [no-such-program]}}
  nodir: {command: {argv: [ls], dir: /no/such/dir}}
  noexec: {command: {argv: [/etc/passwd]}}
`)
	for _, c := range []struct {
		handler, state, class, text string
		attempts                    int
	}{
		{"0", "succeeded", "", "", 1},
		{"1", "failed", "exit_1", "the command ended with exit code 1: why", 2},
		{"3", "failed", "exit_3", "exit code 3", 1},
		{"4", "succeeded", "", "", 1},
		{"64", "failed", "exit_64", "", 1},
		{"65", "failed", "exit_65", "", 1},
		{"78", "failed", "exit_78", "", 1},
		{"retry78", "failed", "exit_78", "", 2},
		{"126", "failed", "exit_126", "", 1},
		{"127", "failed", "exit_127", "", 1},
		{"signal", "failed", "signal_9", "signal 9", 2},
		{"absent", "failed", "start_failed", "no-such-program is not in the command's PATH", 1},
		{"nodir", "failed", "start_failed", "/no/such/dir is no directory", 1},
		{"noexec", "failed", "start_failed", "permission denied", 1},
	} {
		t.Run(c.handler, func(t *testing.T) {
			_, s := r.run(c.handler, takt.JobSpec{Retry: &takt.RetrySpec{MaxAttempts: 2, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Millisecond)}}}, nil)
			var class, text string
			if s.Error != nil {
				class, text = s.Error.Class, s.Error.Message
			}
			if s.State != c.state || class != c.class || !strings.Contains(text, c.text) || s.Attempt != c.attempts {
				t.Errorf("%s after %d attempts, %s %q; want %+v", s.State, s.Attempt, class, text, c)
			}
		})
	}
}

// 75 is "try later": the shard comes again and no attempt is burnt.
func TestSnooze(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, fmt.Sprintf(`
  later: {command: {shell: '[ -e been ] && exit 0; touch been; exit 75', dir: %s, snooze: 50ms}}
`, dir))
	_, s := r.run("later", takt.JobSpec{Retry: &takt.RetrySpec{MaxAttempts: 1}}, nil)
	if s.State != "succeeded" {
		t.Errorf("%s: %+v", s.State, s.Error)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TAKT_TOKEN", "the-agents-own-token")
	t.Setenv("AGENT_TEST_SECRET", "secret")
	t.Setenv("AGENT_TEST_SHOWN", "shown")
	r := start(t, `
  narrow:
    command:
      argv: [/usr/bin/env]
      env: {allow: [AGENT_TEST_SHOWN, NOT_THERE], set: {MODE: "a b", AGENT_TEST_SHOWN2: "x=y"}}
  wide: {command: {argv: [env]}}
  files: {command: {shell: 'cat "$TAKT_PARAMS_FILE"; pwd; stat -c %a . "$TAKT_PARAMS_FILE"; cat; ls /proc/self/fd', env: {allow: []}}}
`)
	e, s := r.run("narrow", takt.JobSpec{Params: []byte(`{"a": 1}`)}, nil)
	got := map[string]string{}
	for line := range strings.Lines(r.out.of("stdout")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	want := map[string]string{
		"AGENT_TEST_SHOWN": "shown", "MODE": "a b", "AGENT_TEST_SHOWN2": "x=y", "TAKT_PARAMS": `{"a":1}`, "TAKT_JOB": e.Job,
		"TAKT_NAMESPACE": "default", "TAKT_EXECUTION": e.ID, "TAKT_ATTEMPT": "1", "TAKT_SHARD_INDEX": "0", "TAKT_SHARD_TOTAL": "1",
		"TAKT_TOKEN": fmt.Sprint(s.Token), "TAKT_PLANNED_AT": e.PlannedAt.UTC().Format(time.RFC3339Nano), "TAKT_CONTROL_FD": "3",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	for _, name := range []string{"TAKT_KEY", "TAKT_PARAMS_FILE", "TAKT_MARK"} {
		if got[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	if len(got) != len(want)+3 {
		t.Errorf("the command got more than it should: %v", got)
	}
	r.out.text = nil
	r.run("wide", takt.JobSpec{}, nil)
	if all := r.out.of("stdout"); strings.Contains(all, "the-agents-own-token") || strings.Contains(all, "SECRET") ||
		!strings.Contains("\n"+all, "\nPATH=") || !strings.Contains(all, "TAKT_PARAMS={}") || strings.Contains(all, "TAKT_ITEM") || strings.Contains(all, "TAKT_CHECKPOINT") || strings.Contains(all, "TAKT_PARENTS") {
		t.Errorf("by default the command gets\n%s", all)
	}
	r.out.text = nil
	r.run("files", takt.JobSpec{}, nil)
	lines := strings.Split(r.out.of("stdout"), "\n")
	if !strings.HasPrefix(lines[0], "{}"+r.state) || lines[1] != "700" || lines[2] != "600" || strings.Join(lines[3:], " ") != "0 1 2 3 4 " {
		t.Errorf("the private directory, the files, the end of standard input and the descriptors: %q", lines)
	}
}

// Large data is in the file, not in the environment.
func TestLargeParams(t *testing.T) {
	t.Parallel()
	r := start(t, `
  size: {command: {shell: 'wc -c < "$TAKT_PARAMS_FILE"; echo "${TAKT_PARAMS-none}" | wc -c'}}
`)
	for _, c := range []struct {
		size int
		env  int
	}{{32 << 10, 32<<10 + 1}, {32<<10 + 1, 5}} {
		text := fmt.Sprintf(`{"x":"%s"}`, strings.Repeat("y", c.size-8))
		r.out.text = nil
		if _, s := r.run("size", takt.JobSpec{Params: []byte(text)}, nil); s.State != "succeeded" {
			t.Fatalf("%s: %+v", s.State, s.Error)
		}
		if got, want := strings.Fields(r.out.of("stdout")), fmt.Sprint([]int{c.size, c.env}); fmt.Sprint(got) != want {
			t.Errorf("%d bytes arrive as %v, want %s", c.size, got, want)
		}
	}
}

func TestControlLines(t *testing.T) {
	t.Parallel()
	r := start(t, `
  work:
    command:
      shell: |
        if [ -z "$TAKT_CHECKPOINT_FILE" ]; then
          echo '{"progress": {"done": 3, "total": 9, "note": "third"}}' >&3
          echo '{"checkpoint": {"at": 3}}' >&3
          echo '{"checkpoint": {"at": 4}, "result": "never"}' >&3
          exit 1
        fi
        echo "$TAKT_CHECKPOINT"; cat "$TAKT_CHECKPOINT_FILE"
        echo 'no JSON' >&3
        echo '{"progres": {"done": 3}}' >&3
        echo '{"result": 1} {"result": 2}' >&3
        echo '{"progress": 0.5}' >&3
        echo '{"progress": {"done": "x"}}' >&3
        head -c 600000 /dev/zero | tr '\0' x >&3
        echo >&3
        echo '' >&3
        printf '{"result": {"sum": 42}}' >&3
`)
	_, s := r.run("work", takt.JobSpec{Retry: &takt.RetrySpec{MaxAttempts: 2, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Millisecond)}}}, nil)
	if s.State != "succeeded" || string(s.Result) != `{"sum":42}` || s.Attempt != 2 {
		t.Errorf("%s after %d attempts with %s: %+v", s.State, s.Attempt, s.Result, s.Error)
	}
	if got := r.out.of("stdout"); got != "{\"at\":4}\n{\"at\":4}" {
		t.Errorf("the second attempt met the checkpoint %q", got)
	}
	r.stop()
	if n := strings.Count(r.log.String(), "a line on the control descriptor is ignored"); n != 6 {
		t.Errorf("%d bad lines are told, want 6", n)
	}
	if strings.Contains(r.log.String(), "no JSON") {
		t.Error("the log quotes a bad line")
	}
	for _, want := range []string{"progress.done must be a whole number, and is a string", "progress must be an object such as", "is no field: progress, checkpoint and result are"} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log does not say: %s", want)
		}
	}
	if strings.Contains(r.log.String(), "Go ") {
		t.Errorf("the log speaks of Go: %s", r.log.String())
	}
}

// What a command writes arrives byte for byte, also the last bytes without a newline.
func TestOutputIsByteExact(t *testing.T) {
	t.Parallel()
	want := make([]byte, 3<<20)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	file := filepath.Join(t.TempDir(), "bytes")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "\n  cat: {command: {argv: [sh, -c, 'cat \"$0\"; printf end >&2', "+file+"]}}\n")
	if _, s := r.run("cat", takt.JobSpec{}, nil); s.State != "succeeded" {
		t.Fatalf("%s: %+v", s.State, s.Error)
	}
	if !bytes.Equal([]byte(r.out.of("stdout")), want) || r.out.of("stderr") != "end" {
		t.Errorf("%d bytes and %q", len(r.out.of("stdout")), r.out.of("stderr"))
	}
}

// The order of a stop: SIGTERM to the group, the grace, SIGKILL. The command's last words count.
func TestGrace(t *testing.T) {
	t.Parallel()
	r := start(t, fmt.Sprintf(`
  polite:
    command: {shell: 'trap "echo term; echo \"{\\\"checkpoint\\\": 7}\" >&3; exit 0" TERM; echo up; sleep %[1]s & wait'}
    grace: 1m
  deaf:
    command: {shell: 'trap "echo term" TERM; echo up; while :; do sleep %[2]s & wait; done'}
    grace: 300ms
`, seconds(1), seconds(2)))
	for _, c := range []struct {
		handler string
		least   time.Duration
	}{{"polite", 0}, {"deaf", 300 * time.Millisecond}} {
		r.out.text = nil
		id := r.trigger(c.handler, takt.JobSpec{Timeout: &takt.TimeoutSpec{Grace: takt.Duration(time.Minute)}}, nil)
		until(t, "the command runs", func() bool { return r.out.of("stdout") == "up\n" })
		asked := time.Now()
		if _, err := client.Cancel(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		e, s := r.wait(id)
		took := time.Since(asked)
		if e.State != "cancelled" || s.State != "cancelled" || r.out.of("stdout") != "up\nterm\n" {
			t.Errorf("%s: %s, %s, %q", c.handler, e.State, s.State, r.out.of("stdout"))
		}
		if took < c.least || took > 30*time.Second {
			t.Errorf("%s: the stop took %v", c.handler, took)
		}
	}
}

// A command that ends by itself leaves nothing running; what ends within a second may do so.
func TestNothingIsLeftRunning(t *testing.T) {
	t.Parallel()
	r := start(t, fmt.Sprintf(`
  leaves: {command: {shell: 'sleep %s & (setsid sleep %s &); (sleep 0.2; echo late) & echo done'}}
`, seconds(3), seconds(4)))
	_, s := r.run("leaves", takt.JobSpec{}, nil)
	if s.State != "succeeded" || r.out.of("stdout") != "done\nlate\n" {
		t.Errorf("%s, %q", s.State, r.out.of("stdout"))
	}
	if left := append(sleepers(seconds(3)), sleepers(seconds(4))...); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// A stop of the agent gives the shard back with its last checkpoint, in less than 5 s, and burns no attempt.
func TestAgentStops(t *testing.T) {
	t.Parallel()
	handlers := fmt.Sprintf(`
  slow:
    command:
      shell: |
        [ -n "$TAKT_CHECKPOINT_FILE" ] && echo "from $TAKT_CHECKPOINT" && exit 0
        trap 'echo "{\"checkpoint\": 7}" >&3' TERM
        echo up
        while :; do sleep %s & wait; done
    grace: 1m
`, seconds(5))
	r := start(t, handlers)
	id := r.trigger("slow", takt.JobSpec{Retry: &takt.RetrySpec{MaxAttempts: 1}}, nil)
	until(t, "the command runs", func() bool { return r.out.of("stdout") == "up\n" })
	asked := time.Now()
	r.stop()
	if took := time.Since(asked); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	next := start(t, handlers, func(c *agent.Config) { c.Worker.Pool = r.pool })
	if _, s := next.wait(id); s.State != "succeeded" || next.out.of("stdout") != "from 7\n" {
		t.Errorf("%s, %q, %+v", s.State, next.out.of("stdout"), s.Error)
	}
}

// TestC53 is case C53 where the agent matters: a command that ignores the time-out keeps its slot until
// it is killed, and its late success is refused.
func TestC53AgentSlotStaysBusy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, fmt.Sprintf(`
  C:
    command:
      dir: %s
      shell: |
        [ -e first ] && { [ -e alive ] && echo both; echo "second"; exit 0; }
        touch first alive
        trap 'touch told' TERM
        until [ -e told ]; do sleep 0.1; done
        sleep 2
        rm alive
        echo '{"result": "late"}' >&3
    grace: 1m
`, dir), func(c *agent.Config) { c.Worker.Slots = 1 })
	_, s := r.run("C", takt.JobSpec{Timeout: &takt.TimeoutSpec{Attempt: takt.Duration(5 * time.Second), Grace: takt.Duration(time.Minute)},
		Retry: &takt.RetrySpec{MaxAttempts: 2, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Millisecond)}}}, nil)
	if s.State != "succeeded" || s.Attempt != 2 || s.Result != nil || r.out.of("stdout") != "second\n" {
		t.Errorf("%s at attempt %d with result %s and output %q", s.State, s.Attempt, s.Result, r.out.of("stdout"))
	}
}
