package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
)

// buffer is a log that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// node is a server on a directory, with a worker that does nothing.
func node(t *testing.T, dir string, log *buffer) (c *takt.Client, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, app.Config{DataDir: dir, Listen: "127.0.0.1:0", NoSync: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	c, err = takt.NewClient(takt.ClientConfig{Server: a.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := takt.NewWorker(takt.WorkerConfig{Server: a.Addr(), Pool: "p", Slots: 4, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("h", func(context.Context, *takt.Task) error { return nil })
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	workCtx, rest := context.WithCancel(ctx)
	work := make(chan error, 1)
	go func() { work <- w.Run(workCtx) }()
	return c, sync.OnceFunc(func() {
		rest()
		if err := <-work; err != nil {
			t.Errorf("the worker ended with %v", err)
		}
		cancel()
		running.Wait()
	})
}

// patience is how long until waits; far more than a loaded machine needs.
const patience = 3 * time.Minute

// slack is what a loaded machine may make of a promised stop before a test calls it broken; one that waits for a poll takes longer.
const slack = 3

// until asks again and again, but not for ever: a test's context ends behind the test.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// TestC73RowsOfOtherHands: rows that hands have made invalid under the running server are left out with an alarm; the
// other jobs go on, then and after a restart, and applying a job again mends it.
func TestC73RowsOfOtherHands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	log := new(buffer)
	c, stop := node(t, dir, log)
	defer func() { stop() }()
	every := &takt.ScheduleSpec{Every: takt.Duration(time.Second)}
	bad := map[string]string{
		"broken": `{"pool":"p","handler":`, "type": `{"pool":"p","handler":"h","schedules":"daily"}`,
		"negative": `{"pool":"p","handler":"h","shards":-3,"schedules":[{"id":"main","every":1000000000}]}`,
		"cron":     `{"pool":"p","handler":"h","schedules":[{"id":"main","cron":"61 * * * *"}]}`,
	}
	names := []string{"good"}
	for name := range bad {
		names = append(names, name)
	}
	slices.Sort(names)
	put := func(name string) {
		t.Helper()
		j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: takt.JobSpec{Pool: "p", Handler: "h", Schedule: every}}
		if _, err := c.PutJob(t.Context(), j, takt.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		put(name)
	}
	done := func(name string) int {
		t.Helper()
		list, err := c.Executions(t.Context(), takt.ExecutionQuery{Job: name, State: "succeeded", Page: takt.Page{Limit: 500}})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	until(t, "all run", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return done(name) == 0 })
	})
	spoil(t, dir, bad)
	goesOn := func(when string) {
		t.Helper()
		was := done("good")
		until(t, when+": the good one runs", func() bool { return done("good") > was+1 })
		list, err := c.Jobs(t.Context(), takt.Page{})
		if err != nil || len(list.Items) != len(names) {
			t.Errorf("%s: %d jobs are listed, %v", when, len(list.Items), err)
		}
	}
	goesOn("under way")
	showsUnfit(t, c, bad)
	stop()
	log.text.Reset()
	c, stop = node(t, dir, log)
	goesOn("after a restart")
	for name := range bad {
		if !strings.Contains(log.String(), "default/"+name) {
			t.Errorf("no alarm names %s", name)
		}
	}
	stuck, err := c.Executions(t.Context(), takt.ExecutionQuery{Job: "stuck", Page: takt.Page{Limit: 10}})
	if err != nil {
		t.Errorf("executions that cannot be used cannot be listed: %v", err)
	}
	t.Logf("%d executions are left out", len(stuck.Items))
	was := map[string]int{}
	for name := range bad {
		was[name] = done(name)
		put(name)
	}
	for name := range bad {
		until(t, name+" runs again", func() bool { return done(name) > was[name] })
	}
}

// showsUnfit: people see which jobs cannot be used and why; what would never run is refused, not taken in.
func showsUnfit(t *testing.T, c *takt.Client, bad map[string]string) {
	t.Helper()
	says := map[string]string{"broken": "spec", "type": "spec", "negative": "-3 shards", "cron": "schedule main: ", "good": ""}
	for name, want := range says {
		j, err := c.Job(t.Context(), name)
		if err != nil || j.Status == nil || (want == "") != (j.Status.Unfit == "") || !strings.Contains(j.Status.Unfit, want) {
			t.Errorf("%s is shown with %+v, %v; want unfit: %s", name, j.Status, err, want)
		}
		_, err = c.Trigger(t.Context(), name, takt.TriggerOptions{})
		if refused := bad[name] != "" && name != "cron"; refused != errors.Is(err, takt.ErrConflict) || !refused && err != nil {
			t.Errorf("a trigger of %s: %v", name, err)
		}
	}
}

// spoil changes the newest revision of jobs, and makes live executions that nothing can be done with.
func spoil(t *testing.T, dir string, specs map[string]string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "takt.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	for name, spec := range specs {
		exec(`UPDATE job_revisions SET spec = ? WHERE uid = (SELECT uid FROM jobs WHERE name = ?)`, spec, name)
	}
	var columns string
	if err := db.QueryRowContext(t.Context(), `SELECT group_concat(name, ', ') FROM pragma_table_info('executions')
		WHERE name NOT IN ('id', 'state', 'params', 'job', 'ended_at')`).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	for _, row := range [][2]string{{"bogus", `{}`}, {"running", `{"a":`}, {"queued", `nonsense`}, {"", `{}`}} {
		exec(fmt.Sprintf(`INSERT INTO executions (id, state, params, job, ended_at, %[1]s)
			SELECT randomblob(16), ?, ?, 'stuck', 0, %[1]s FROM history_executions WHERE job = 'good' LIMIT 1`, columns), row[0], row[1])
	}
}
