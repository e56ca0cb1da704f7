package agent

import (
	"errors"
	"math"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a command with all that descends from it: every child of this process, which is the reaper of
// orphans and has no other children.
type tree struct {
	pid   int
	start uint64
	ended chan struct{} // closed when the first process was waited for
	gone  chan struct{} // closed when no child is left

	mu     sync.Mutex // between a signal to the group and the moment from which its number may be another's
	reaped bool
	how    syscall.WaitStatus
}

// keepOwn keeps the command from getting descriptors that are not for it: the guard's, and those that
// whoever started the agent left open.
func keepOwn() {
	for fd := guardStdout; fd <= guardStatus; fd++ {
		syscall.CloseOnExec(fd)
	}
	_ = unix.CloseRange(guardStdout, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // unknown before Linux 5.11
}

// startTree starts the command in a process group of its own. The kernel kills it when this thread ends.
func startTree(spec guardSpec) (*tree, error) {
	pid, err := fork(spec, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL})
	if err != nil {
		return nil, err
	}
	t := &tree{pid: pid, ended: make(chan struct{}), gone: make(chan struct{})}
	p, _ := inspect(pid) // its start is 0 only without /proc
	t.start = p.Start
	go t.reap()
	return t, nil
}

func (t *tree) id() processID { return processID{t.pid, t.start} }

// status is the exit code or the signal that ended the first process; call it after ended is closed.
func (t *tree) status() (code, sig int) {
	if t.how.Signaled() {
		return 0, int(t.how.Signal())
	}
	return t.how.ExitStatus(), 0
}

// reap waits for every child, adopted ones too, until none is left. A child's own orphans are ours before
// the child can be waited for, so that "no child" means that the whole tree is gone.
func (t *tree) reap() {
	defer close(t.gone)
	for {
		// Looked at first and taken under the lock, so that no signal goes to a number that is free.
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // ECHILD
		}
		t.mu.Lock()
		var how syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &how, syscall.WNOHANG, nil)
		if err == nil && pid == t.pid && !t.reaped {
			t.reaped, t.how = true, how
			close(t.ended)
		}
		t.mu.Unlock()
	}
}

// signal reaches the process group while its first process holds the number.
func (t *tree) signal(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reaped {
		_ = syscall.Kill(-t.pid, sig) // one that may not be signalled is found by what is left
	}
}

// kill sends SIGKILL to the group and to all that descends from the command at this moment. What they
// start meanwhile is met by the next round.
func (t *tree) kill() {
	t.signal(syscall.SIGKILL)
	for _, id := range list().descendants(os.Getpid()) {
		kill(id)
	}
}
