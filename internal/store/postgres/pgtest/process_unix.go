//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch runs a postmaster and ends it when the pipe to the test binary does, which it does however that ends. The
// directory then goes, too. "keep" hands the postmaster over to nobody: it has been ended.
const watch = `trap '' INT TERM HUP
dir=$1; shift
"$@" </dev/null >>"$dir/log" 2>&1 &
pid=$!
echo $pid >"$dir/pid"
read -r word
[ "$word" = keep ] && exit 0
kill -CONT $pid; kill -QUIT $pid; wait $pid
rm -rf "$dir"`

// process is a postmaster under its watch.
type process struct {
	watch *exec.Cmd
	pipe  io.WriteCloser
	pid   int
}

// unprivileged is who runs PostgreSQL, which refuses root; nil: we ourselves.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // nobody else is needed
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

func privateDir() (string, error) {
	dir, err := os.MkdirTemp("", "takt-pg-")
	if err != nil {
		return "", err
	}
	who, err := unprivileged()
	if err == nil && who != nil {
		err = os.Chown(dir, int(who.Uid), int(who.Gid))
	}
	return dir, err
}

func command(dir, name string, args ...string) (*exec.Cmd, error) {
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setsid: true}
	return cmd, nil
}

func run(dir, name string, args ...string) ([]byte, error) {
	cmd, err := command(dir, name, args...)
	if err != nil {
		return nil, err
	}
	return cmd.CombinedOutput()
}

func (c *Cluster) start() error {
	bin, err := binaries()
	if err != nil {
		return err
	}
	cmd, err := command(c.dir, "/bin/sh", "-c", watch, "watch", c.dir, filepath.Join(bin, "postgres"), "-D", c.data())
	if err != nil {
		return err
	}
	p := &process{watch: cmd}
	if p.pipe, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.process = p
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.admin)
		if err == nil {
			err = conn.Close(ctx)
			p.pid = c.postmaster()
			return err
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return fmt.Errorf("PostgreSQL does not start: %w; its log: %s", err, log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *Cluster) postmaster() int {
	text, _ := os.ReadFile(filepath.Join(c.dir, "pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// close ends the cluster for good.
func (c *Cluster) close() {
	if c.process == nil {
		_ = os.RemoveAll(c.dir)
		return
	}
	_ = c.process.pipe.Close()
	_ = c.process.watch.Wait()
	c.process = nil
}

// Mode is how a cluster is stopped.
type Mode syscall.Signal

// The modes.
const (
	Fast      = Mode(syscall.SIGINT)  // connections are ended, all is written
	Immediate = Mode(syscall.SIGQUIT) // as in a crash, but orderly
	Kill      = Mode(syscall.SIGKILL) // the postmaster is killed, its children follow
)

// Stop ends the postmaster and waits for that.
func (c *Cluster) Stop(m Mode) error {
	all := c.tree()
	if err := syscall.Kill(c.process.pid, syscall.Signal(m)); err != nil {
		return err
	}
	if _, err := io.WriteString(c.process.pipe, "keep\n"); err != nil {
		return err
	}
	_ = c.process.pipe.Close()
	_ = c.process.watch.Wait()
	deadline := time.Now().Add(patience)
	for _, pid := range all {
		for syscall.Kill(pid, 0) == nil {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d of PostgreSQL does not end", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	c.process = nil
	if m == Kill {
		return os.Remove(filepath.Join(c.data(), "postmaster.pid"))
	}
	return nil
}

// Start starts a cluster that was stopped, on the same port.
func (c *Cluster) Start() error { return c.start() }

// Reload makes the cluster read its settings again.
func (c *Cluster) Reload() error { return syscall.Kill(c.process.pid, syscall.SIGHUP) }

// Pause stops every process of the cluster, as when its machine stands still.
func (c *Cluster) Pause() error { return c.signal(syscall.SIGSTOP) }

// Resume lets a paused cluster go on.
func (c *Cluster) Resume() error { return c.signal(syscall.SIGCONT) }

func (c *Cluster) signal(s syscall.Signal) error {
	for _, pid := range c.tree() {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// tree is the postmaster and its children.
func (c *Cluster) tree() []int {
	all := []int{c.process.pid}
	out, _ := exec.CommandContext(context.Background(), "ps", "-A", "-o", "pid=,ppid=").Output()
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		if _, err := fmt.Sscan(line, &pid, &parent); err == nil && parent == c.process.pid {
			all = append(all, pid)
		}
	}
	return all
}

// SetReadOnly makes the cluster refuse writes, or take them again, of sessions that begin then.
func (c *Cluster) SetReadOnly(on bool) error {
	if err := c.Configure(map[string]string{"default_transaction_read_only": map[bool]string{true: "on", false: "off"}[on]}); err != nil {
		return err
	}
	return c.Reload()
}

// Standby makes a hot standby of the cluster and starts it. The caller ends it by Close.
func (c *Cluster) Standby() (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := privateDir()
	if err != nil {
		return nil, err
	}
	s := &Cluster{dir: dir}
	if out, err := run(dir, filepath.Join(bin, "pg_basebackup"), "-D", s.data(), "-d", c.admin, "-R", "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		return nil, errors.Join(fmt.Errorf("pg_basebackup: %w: %s", err, out), os.RemoveAll(dir))
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	s.admin = s.address(superuser, "postgres")
	if err = s.Configure(map[string]string{"port": strconv.Itoa(s.port)}); err == nil {
		err = s.start()
	}
	return s, err
}

// Close ends a cluster for good.
func (c *Cluster) Close() { c.close() }

// Promote makes a standby the primary and waits for that.
func (c *Cluster) Promote() error {
	_, err := c.Exec(`SELECT pg_promote(true, 60)`)
	return err
}
