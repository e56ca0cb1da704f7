//go:build unix

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// guard is the agent's side of a guard process.
type guard struct {
	cmd  *exec.Cmd
	in   *os.File // orders; the guard kills its tree when it closes
	id   processID
	done chan struct{} // closed when the guard has ended

	// Written before done is closed.
	end  end
	gone bool // the guard said that nothing is left

	mu    sync.Mutex
	first processID // of the command
}

// startGuard starts a guard on a command. pipes are the ends that it gives to the command.
func startGuard(program []string, spec guardSpec, pipes []*os.File, dir *attemptDir, log *slog.Logger) (*guard, error) {
	orders, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, status, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{orders, in})
		return nil, err
	}
	//nolint:noctx // no context ends a guard: it ends when nothing of the command is left
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Env = []string{"GOMAXPROCS=2"} // it has next to nothing to do
	cmd.Dir = "/"
	cmd.Stdin = orders
	cmd.ExtraFiles = append(append(cmd.ExtraFiles, pipes...), status)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C of a terminal is for the agent
	err = cmd.Start()
	closeAll([]*os.File{orders, status})
	if err != nil {
		closeAll([]*os.File{in, reports})
		return nil, err
	}
	g := &guard{cmd: cmd, in: in, done: make(chan struct{})}
	p, _ := inspect(cmd.Process.Pid) // it is our child, so the pid is its own until it is waited for
	g.id = processID{cmd.Process.Pid, p.Start}
	record := func(command processID) {
		dir.run.Guard, dir.run.Command = g.id, command
		if err := dir.record(); err != nil {
			log.Warn("the run file could not be written; the mark alone tells the processes of this attempt", "error", err)
		}
	}
	record(processID{})
	go g.follow(reports, record)
	g.tell(spec)
	return g, nil
}

// follow reads what the guard reports until it ends.
func (g *guard) follow(reports *os.File, record func(command processID)) {
	defer close(g.done)
	d := json.NewDecoder(reports)
	said := false
	for {
		var r guardReport
		if d.Decode(&r) != nil {
			break
		}
		switch {
		case r.Started != nil:
			g.mu.Lock()
			g.first = *r.Started
			g.mu.Unlock()
			record(*r.Started)
		case r.Failed != "":
			g.end, g.gone, said = end{failed: r.Failed, again: r.Again}, true, true
		case r.Ended:
			g.end, said = end{code: r.Code, signal: r.Signal, killed: r.Killed}, true
		case r.Gone:
			g.gone = true
		}
	}
	err := errors.Join(g.cmd.Wait(), reports.Close(), g.in.Close())
	if !said {
		g.end = end{killed: fmt.Sprintf("its guard ended without a word: %v", err)}
	}
}

// command is the first process of the command; 0 until it is started.
func (g *guard) command() processID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first
}

// tell gives the guard a line. One that takes nothing is found out by its silence.
func (g *guard) tell(order any) {
	text, err := json.Marshal(order)
	if err != nil {
		return // not reached: the types have nothing that JSON lacks
	}
	_ = g.in.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = g.in.Write(append(text, '\n'))
}

// kill ends the guard itself.
func (g *guard) kill() { _ = g.cmd.Process.Kill() } // it may have ended
