package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// process is a worker process. Its standard input is a pipe that it watches: the pipe ends with us,
// whatever kills us.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	log    *os.File
	ended  chan struct{} // closed when the process has been waited for
	killed bool          // by the demo
	frozen bool
}

// processes starts worker processes and ends them. Its methods are for one goroutine.
type processes struct {
	command []string // program and first arguments
	dir     string   // of the log files
	list    []*process
	spawn   chan func() // run by one thread that lives as long as the processes may
}

// newProcesses keeps one thread for starting: on Linux a child gets its parent-death signal when the
// thread that started it ends.
func newProcesses(command []string, dir string) *processes {
	ps := &processes{command: command, dir: dir, spawn: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range ps.spawn {
			f()
		}
	}()
	return ps
}

// start starts one more worker process.
func (ps *processes) start(name string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(ps.dir, "worker-"+name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of worker %s: %w", name, err)
	}
	//nolint:noctx // no context ends a worker: stop does, in order
	cmd := exec.Command(ps.command[0], append(ps.command[1:len(ps.command):len(ps.command)], args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = tiedToParent()
	cmd.Env = withoutTakt(os.Environ())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return errors.Join(fmt.Errorf("make the pipe to worker %s: %w", name, err), log.Close())
	}
	started := make(chan error, 1)
	ps.spawn <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return errors.Join(fmt.Errorf("start worker %s: %w", name, err), stdin.Close(), log.Close())
	}
	p := &process{name: name, cmd: cmd, stdin: stdin, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended does not matter: alive tells that it did
		close(p.ended)
	}()
	ps.list = append(ps.list, p)
	return nil
}

// withoutTakt drops what the user set for other servers.
func withoutTakt(env []string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, "TAKT_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// find is the process of a worker's name; nil when there is none.
func (ps *processes) find(name string) *process {
	for _, p := range ps.list {
		if p.name == name {
			return p
		}
	}
	return nil
}

// died names a process that has ended without the demo's doing; nil when there is none.
func (ps *processes) died() *process {
	for _, p := range ps.list {
		if !p.alive() && !p.killed {
			return p
		}
	}
	return nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) kill() error {
	p.killed = true
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill worker %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

func (p *process) freeze() error {
	if err := suspend(p.cmd.Process); err != nil {
		return fmt.Errorf("freeze worker %s: %w", p.name, err)
	}
	p.frozen = true
	return nil
}

func (p *process) thaw() error {
	if err := resume(p.cmd.Process); err != nil {
		return fmt.Errorf("wake worker %s: %w", p.name, err)
	}
	p.frozen = false
	return nil
}

// stop ends every process and returns when all are gone: the pipe first, then by force.
func (ps *processes) stop() error {
	var errs []error
	for _, p := range ps.list {
		if p.frozen && p.alive() {
			errs = append(errs, p.thaw())
		}
		_ = p.stdin.Close() // closed already when the process has ended
	}
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	for _, p := range ps.list {
		select {
		case <-p.ended:
		case <-patience.C:
			patience.Reset(0) // the others have no more time either
			if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				errs = append(errs, fmt.Errorf("kill worker %s: %w", p.name, err))
			}
			<-p.ended
		}
		errs = append(errs, p.log.Close())
	}
	close(ps.spawn)
	return errors.Join(errs...)
}
