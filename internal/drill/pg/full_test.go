//go:build linux

package pg_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// TestFullDisk fills the file system that the tables are on. Nothing is decided meanwhile, that is said, and all goes on
// when there is room again.
func TestFullDisk(t *testing.T) {
	drilled(t)
	waits(t)
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	pg := pgtest.New(t, pgtest.Options{})
	small := filepath.Join(filepath.Dir(pg.Dir()), filepath.Base(pg.Dir())+"-small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(small) })
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	space := filepath.Join(small, "space")
	if out, err := exec.CommandContext(t.Context(), "install", "-d", "-o", "postgres", "-m", "700", space).CombinedOutput(); err != nil {
		t.Skipf("no user postgres: %v: %s", err, out)
	}
	if _, err := pg.Exec(`CREATE TABLESPACE small LOCATION '` + space + `'`); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(`CREATE DATABASE small OWNER takt TABLESPACE small TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, pg.DSN("small"), 2, drillLease())
	t.Cleanup(func() { _ = pg.Drop("small") })
	planned := f.underLoad()
	ballast := filepath.Join(small, "ballast")
	fill := func() error {
		out, err := exec.CommandContext(t.Context(), "dd", "if=/dev/zero", "of="+ballast, "bs=4k").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "No space") {
			return errors.Join(errors.New("the file system is not full"), err)
		}
		return nil
	}
	f.suffer(t, trouble{name: "full disk", hold: 5 * time.Second, reason: "the disk of the database is full", reads: true, mixed: true,
		begin: fill, end: func() error { return os.Remove(ballast) }})
	f.calm(planned)
	v := f.collect(f.dsn)
	v.sound(f.leases())
	v.judge(f, planned)
}
