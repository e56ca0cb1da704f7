//go:build unix && !linux

package agent

import (
	"os"
	"syscall"
	"time"
)

// tree is a command with its process group. What leaves the group is out of reach on this system.
type tree struct {
	proc  *os.Process
	ended chan struct{} // closed when the first process was waited for
	gone  chan struct{} // closed when the group is empty
	how   *os.ProcessState
}

func keepOwn() {
	for fd := guardStdout; fd <= guardStatus; fd++ {
		syscall.CloseOnExec(fd)
	}
}

func startTree(spec guardSpec) (*tree, error) {
	pid, err := fork(spec, &syscall.SysProcAttr{Setpgid: true})
	if err != nil {
		return nil, err
	}
	proc, err := os.FindProcess(pid)
	if err != nil {
		return nil, err
	}
	t := &tree{proc: proc, ended: make(chan struct{}), gone: make(chan struct{})}
	go t.reap()
	return t, nil
}

func (t *tree) id() processID { return processID{PID: t.proc.Pid} }

func (t *tree) status() (code, sig int) {
	if w, ok := t.how.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 0, int(w.Signal())
	}
	return t.how.ExitCode(), 0
}

func (t *tree) reap() {
	t.how, _ = t.proc.Wait() // it is our child
	close(t.ended)
	for syscall.Kill(-t.proc.Pid, 0) == nil {
		time.Sleep(guardAgain)
	}
	close(t.gone)
}

func (t *tree) signal(sig syscall.Signal) {
	_ = syscall.Kill(-t.proc.Pid, sig) // a group that is empty has nobody to signal
}

func (t *tree) kill() { t.signal(syscall.SIGKILL) }
