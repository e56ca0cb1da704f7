package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// The rolling upgrade needs two builds, which take minutes to make on a busy machine: it is a drill.
//
//	TAKT_DRILL_UPGRADE=1 go test ./internal/app -run RollingUpgrade -v -timeout 20m
//
// Old is the newest commit whose rows of servers state no level (the last one without internal/engine/level.go), new is what
// is committed now with one more migration: no commit before the newest migration could serve PostgreSQL, so the next one is
// made here. TAKT_DRILL_OLD and TAKT_DRILL_NEW name binaries that are there already.
const upgradeSwitch = "TAKT_DRILL_UPGRADE"

const nextMigration = "-- A form that comes next.\n--\n-- +goose Up\nALTER TABLE jobs ADD COLUMN of_the_next_form integer;\n"

// git runs git in the repository.
func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", "../.."}, args...)...).Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// build makes the binary of a commit, after the change.
func build(t *testing.T, commit string, change func(dir string)) string {
	t.Helper()
	dir := t.TempDir()
	var archive bytes.Buffer
	from := exec.CommandContext(t.Context(), "git", "-C", "../..", "archive", commit)
	from.Stdout = &archive
	if err := from.Run(); err != nil {
		t.Fatal(err)
	}
	to := exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	to.Stdin = &archive
	if err := to.Run(); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(dir)
	}
	make := exec.CommandContext(t.Context(), "go", "build", "-o", "takt", "./cmd/takt")
	make.Dir = dir
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("build of %s: %v\n%s", commit, err, out)
	}
	return filepath.Join(dir, "takt")
}

func binaries(t *testing.T) (older, newer string) {
	t.Helper()
	if os.Getenv(upgradeSwitch) == "" {
		t.Skip("builds two binaries: set " + upgradeSwitch)
	}
	if older, newer = os.Getenv("TAKT_DRILL_OLD"), os.Getenv("TAKT_DRILL_NEW"); older != "" && newer != "" {
		return older, newer
	}
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("there is no history here to build an older server from: this is not a git checkout")
	}
	first := git(t, "log", "--diff-filter=A", "--format=%H", "--", "internal/engine/level.go")
	older = build(t, strings.Fields(first)[0]+"^", nil)
	newer = build(t, "HEAD", func(dir string) {
		for _, adapter := range []string{"sqlite", "postgres"} {
			if err := os.WriteFile(filepath.Join(dir, "internal/store", adapter, "migrations/00999_next.sql"), []byte(nextMigration), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	return older, newer
}

// upgraded is a server process of either build.
type upgraded struct {
	t    *testing.T
	addr string
	cmd  *exec.Cmd
	done chan struct{}
	log  *paper
}

// paper is a log that is read while it is written.
type paper struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) { p.mu.Lock(); defer p.mu.Unlock(); return p.b.Write(b) }
func (p *paper) String() string              { p.mu.Lock(); defer p.mu.Unlock(); return p.b.String() }

func launch(t *testing.T, binary, dsn, name string) *upgraded {
	t.Helper()
	return launchOn(t, binary, name, "--db", dsn, "--server-name", name)
}

func launchOn(t *testing.T, binary, name string, args ...string) *upgraded {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upgraded{t: t, addr: l.Addr().String(), done: make(chan struct{}), log: &paper{}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	u.cmd = exec.Command(binary, append([]string{"server", "--listen", u.addr}, args...)...)
	u.cmd.Stderr = u.log
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = u.cmd.Wait(); close(u.done) }() // how it ended is in its log
	t.Cleanup(func() {
		_ = u.cmd.Process.Kill() // it may have ended
		<-u.done
		if t.Failed() {
			said := u.log.String()
			t.Logf("%s:\n%s", name, said[max(0, len(said)-4000):])
		}
	})
	until(t, name+" is ready", func() bool {
		select {
		case <-u.done:
			t.Fatalf("%s ended:\n%s", name, u.log)
		default:
		}
		resp, err := http.Get("http://" + u.addr + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		_, _ = io.Copy(io.Discard, resp.Body) // only the status counts
		return resp.StatusCode == http.StatusOK
	})
	return u
}

func (u *upgraded) stop() time.Duration {
	u.t.Helper()
	begun := time.Now()
	if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		u.t.Error(err)
	}
	<-u.done
	return time.Since(begun)
}

// TestRollingUpgrade: servers of two builds, on tables of the newer one's form, share one database under load; then those of the
// older one stop. No planned instant is lost, nothing takes effect twice, and a job that moves does so when the last
// server that does not state to know that is gone.
func TestRollingUpgrade(t *testing.T) {
	older, newer := binaries(t)
	dsn := pgtest.Start(t).Empty(t)
	fleet := []*upgraded{launch(t, older, dsn, "old-1"), launch(t, older, dsn, "old-2")}
	next := fleet[1].addr // addresses of the new ones are not known yet: people and workers start with the old ones
	client := func(servers ...string) *takt.Client {
		c, err := takt.NewClient(takt.ClientConfig{Servers: servers, RetryFor: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := client(fleet[0].addr, next)
	made := map[string]takt.Job{}
	for i := range 10 {
		name := fmt.Sprintf("each-second-%d", i)
		made[name] = putOld(t, c, name, takt.JobSpec{Schedule: &takt.ScheduleSpec{Every: takt.Duration(time.Second)}})
	}
	putOld(t, c, "asked", takt.JobSpec{})
	var w witness
	handler := func(name string) takt.Handler {
		return func(_ context.Context, task *takt.Task) error { w.see(name, task); return nil }
	}
	hire(t, takt.WorkerConfig{Servers: []string{fleet[0].addr, next}, Name: "early", Slots: 16}, handler("early"))
	until(t, "work is done", func() bool { return len(w.sights()) > 20 })

	fleet = append(fleet, launch(t, newer, dsn, "new-1"), launch(t, newer, dsn, "new-2"))
	all := []string{fleet[0].addr, fleet[1].addr, fleet[2].addr, fleet[3].addr}
	slices.Reverse(all)
	c = client(all...)
	hire(t, takt.WorkerConfig{Servers: all, Name: "late", Slots: 16}, handler("late"))
	acked := ask(t, c)
	time.Sleep(20 * time.Second)
	st, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, NoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})

	moved := made["each-second-0"]
	spec := moved.Spec
	for i := 0; ; i++ { // to a pool of another partition
		if spec.Pool = fmt.Sprintf("q%d", i); partition.Of("default", spec.Pool, 32) != partition.Of("default", "p", 32) {
			break
		}
	}
	if _, err := c.PutJob(t.Context(), takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: "each-second-0"}, Spec: spec}, takt.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, u := range fleet[:2] {
		t.Logf("an old server stopped in %v", u.stop())
		time.Sleep(5 * time.Second)
	}
	until(t, "the job has moved", func() bool {
		for _, x := range executions(t, st, "each-second-0") {
			if x.Pool == spec.Pool {
				return true
			}
		}
		return false
	})
	time.Sleep(10 * time.Second)
	keys := acked()
	judgeUpgrade(t, st, made, keys, &w)
}

// putOld puts a job that the older build knows every field of.
func putOld(t *testing.T, c *takt.Client, name string, spec takt.JobSpec) takt.Job {
	t.Helper()
	spec.Pool, spec.Handler = "p", "h"
	j, err := c.PutJob(t.Context(), takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: spec}, takt.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// ask triggers "asked" ten times a second, until the returned function is called, which gives what was acknowledged.
func ask(t *testing.T, c *takt.Client) func() map[string]string {
	acked := map[string]string{}
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; !over.Load(); n++ {
			key := fmt.Sprintf("k%d", n)
			r, err := c.Trigger(context.Background(), "asked", takt.TriggerOptions{IdempotencyKey: key})
			if err != nil {
				t.Errorf("trigger %s: %v", key, err)
			} else {
				acked[key] = r.Execution
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() map[string]string { over.Store(true); <-done; return acked }
}

func judgeUpgrade(t *testing.T, st *postgres.Store, made map[string]takt.Job, acked map[string]string, w *witness) {
	t.Helper()
	end := job.InstantOf(time.Now().Add(-5 * time.Second))
	instants, decided := 0, 0
	for name, j := range made {
		fates := once(t, executions(t, st, name))
		rows, _, err := st.Decisions(t.Context(), "default", name, store.Page{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		for at := job.InstantOf(*j.Metadata.CreatedAt).Add(2 * time.Second); at < end; at = at.Add(time.Second) {
			n := 0
			if fates[at] {
				n++
			}
			for _, d := range rows {
				if d.From <= at && at <= d.To {
					n++
					decided++
				}
			}
			if instants++; n != 1 {
				t.Errorf("%s has %d fates for %s", name, n, at)
			}
		}
	}
	until(t, "all that was asked for has ended", func() bool {
		for _, x := range executions(t, st, "asked") {
			if !x.State.Ended() {
				return false
			}
		}
		return true
	})
	ended := map[string]job.ExecutionState{}
	for _, x := range executions(t, st, "asked") {
		ended[x.ID.String()] = x.State
	}
	for key, id := range acked {
		if ended[id] != job.ExecutionSucceeded {
			t.Errorf("%s was acknowledged as %s, which is %q", key, id, ended[id])
		}
	}
	effects, twice := map[string]int{}, 0
	for _, s := range w.sights() {
		if effects[s.key]++; effects[s.key] > 1 {
			twice++
		}
	}
	if twice > 0 {
		t.Errorf("%d effects came twice", twice)
	}
	if instants < 300 || len(acked) < 50 {
		t.Error(errors.New("too little happened: this proves nothing"))
	}
	t.Logf("%d instants, %d of them decisions; %d requests acknowledged; %d effects, %d twice", instants, decided, len(acked), len(effects), twice)
}
