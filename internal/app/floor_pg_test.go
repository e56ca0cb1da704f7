//go:build unix

package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// beforeBlocks makes the binary of the newest commit that knows no blocks of shards, and no floor, and one of what is committed
// now. TAKT_DRILL_BEFORE and TAKT_DRILL_NEW name binaries that are there already. It is part of the drill of rolling upgrades:
//
//	TAKT_DRILL_UPGRADE=1 go test ./internal/app -run OldBuilds -v -timeout 20m
func beforeBlocks(t *testing.T) (older, newer string) {
	t.Helper()
	if os.Getenv(upgradeSwitch) == "" {
		t.Skip("builds two binaries: set " + upgradeSwitch)
	}
	if older, newer = os.Getenv("TAKT_DRILL_BEFORE"), os.Getenv("TAKT_DRILL_NEW"); older != "" && newer != "" {
		return older, newer
	}
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("there is no history here to build an older server from: this is not a git checkout")
	}
	with := strings.Fields(git(t, "log", "--diff-filter=A", "--format=%H", "--", "internal/store/postgres/migrations/00070_blocks.sql"))
	return build(t, with[0]+"^", nil), build(t, "HEAD", nil)
}

// turnedAway starts a server that must refuse: with the exit code of a conflict, and saying why.
func turnedAway(t *testing.T, binary string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"server", "--listen", "127.0.0.1:0"}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 5 || !strings.Contains(said.String(), "more than one version ahead") {
		t.Errorf("an old server that starts ends with %v:\n%s", err, &said)
	}
	t.Logf("it says: %s", bytes.TrimSpace(said.Bytes()))
}

// sharded is a job whose executions lie in blocks.
func sharded(t *testing.T, c *takt.Client) {
	t.Helper()
	putOld(t, c, "sharded", takt.JobSpec{Shards: &takt.ShardsSpec{Count: 8}})
	if _, err := c.Trigger(t.Context(), "sharded", takt.TriggerOptions{IdempotencyKey: "one"}); err != nil {
		t.Fatal(err)
	}
}

const countBlocks = `SELECT count(*) FROM shards WHERE block IS NOT NULL`

// On a data directory: once a server has been there, the build before is refused.
func TestOldBuildsAreRefusedDirectories(t *testing.T) {
	older, newer := beforeBlocks(t)
	dir := t.TempDir()
	first := launchOn(t, older, "old", "--data", dir)
	putOld(t, dial(t, first), "plain", takt.JobSpec{})
	first.stop()
	second := launchOn(t, newer, "new", "--data", dir)
	sharded(t, dial(t, second))
	second.stop()
	db, err := sql.Open("sqlite", app.Database(dir))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := errors.Join(db.QueryRowContext(t.Context(), countBlocks).Scan(&n), db.Close()); err != nil || n == 0 {
		t.Fatalf("%d blocks, %v", n, err)
	}
	turnedAway(t, older, "--data", dir)
}

// On PostgreSQL: an old server that was frozen until its row was gone does not take what nobody else has, one that starts
// anew is refused, and a new one finishes what was asked for.
func TestOldBuildsAreLetInNoMore(t *testing.T) {
	older, newer := beforeBlocks(t)
	pg := pgtest.Start(t)
	dsn := pg.Empty(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	number := func(text string) (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), text).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	frozen := launch(t, older, dsn, "old")
	if n := number(`SELECT count(*) FROM partitions WHERE owner LIKE 'old-%'`); n != 32 {
		t.Fatalf("the old server owns %d partitions", n)
	}
	if err := frozen.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	first := launch(t, newer, dsn, "first")
	asked := time.Now()
	for number(`SELECT coalesce(max(value), 0) FROM meta WHERE key = 'floor'`) < engine.Level {
		if time.Since(asked) > 3*time.Minute {
			t.Fatal("the floor was never raised")
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("floor raised %v after the new server was ready", time.Since(asked).Round(time.Second))
	sharded(t, dial(t, first))
	until(t, "there are blocks", func() bool { return number(countBlocks) > 0 })
	turnedAway(t, older, "--db", dsn, "--server-name", "old-again")

	_ = first.cmd.Process.Kill() // it runs
	<-first.done
	if err := frozen.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the old server is told that it is too old", func() bool {
		return strings.Contains(frozen.log.String(), "too old for what newer ones have written")
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if n := number(`SELECT count(*) FROM partitions WHERE owner LIKE 'old-%'`); n > 0 {
			t.Fatalf("the old server took %d partitions", n)
		}
	}

	second := launch(t, newer, dsn, "second")
	var w witness
	hire(t, takt.WorkerConfig{Server: second.addr, Name: "w", Slots: 8}, func(_ context.Context, task *takt.Task) error { w.see("w", task); return nil })
	until(t, "what was asked for has ended", func() bool {
		list, err := dial(t, second).Executions(t.Context(), takt.ExecutionQuery{Job: "sharded"})
		return err == nil && len(list.Items) == 1 && list.Items[0].State == string(job.ExecutionSucceeded)
	})
	seen := map[string]int{}
	for _, s := range w.sights() {
		seen[fmt.Sprint(s.shard)]++
	}
	if len(seen) != 8 || len(w.sights()) != 8 {
		t.Errorf("its shards ran so often: %v", seen)
	}
}

// dial is a client of one server.
func dial(t *testing.T, u *upgraded) *takt.Client {
	t.Helper()
	c, err := takt.NewClient(takt.ClientConfig{Server: u.addr, RetryFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
