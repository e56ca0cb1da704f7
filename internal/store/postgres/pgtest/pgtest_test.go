//go:build unix

package pgtest_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// envChild makes this binary a test binary that is killed: it says where its cluster is and waits.
const envChild = "TAKT_PGTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		os.Args = append(os.Args[:1], "-test.run=^TestChild$", "-test.v")
	}
	os.Exit(m.Run())
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	one, two := c.Database(t), c.Database(t)
	if one == two {
		t.Error("two tests share a database")
	}
	if _, err := c.ExecIn(pgtest.Name(one), `INSERT INTO partitions (id, owner, epoch, seq, last_token) VALUES (0, '', 0, 0, 0)`); err != nil {
		t.Errorf("a new database has other partitions than none: %v", err)
	}
}

func TestChild(t *testing.T) {
	if os.Getenv(envChild) == "" {
		t.Skip("a part of TestEndsWithItsBinary")
	}
	c := pgtest.New(t, pgtest.Options{})
	if _, err := os.Stdout.WriteString("\ncluster " + c.Dir() + "\n"); err != nil {
		t.Fatal(err)
	}
	select {}
}

// TestEndsWithItsBinary: of a test binary that is killed neither processes nor files stay.
func TestEndsWithItsBinary(t *testing.T) {
	t.Parallel()
	pgtest.Start(t) // skips where there is no PostgreSQL
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envChild+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	dir := ""
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "cluster "); ok {
			dir = name
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("no cluster: %v", err)
	}
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s stays a minute after its binary was killed", dir)
		}
	}
}

func TestStopPauseStart(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t, pgtest.Options{})
	for _, mode := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate, pgtest.Kill} {
		if err := c.Stop(mode); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Exec(`SELECT 1`); err == nil {
			t.Errorf("stopped by %d, and answers", mode)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() { _, err := c.Exec(`SELECT 1`); answer <- err }()
	select {
	case err := <-answer:
		t.Errorf("paused, and answers: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("resumed: %v", err)
	}
}
