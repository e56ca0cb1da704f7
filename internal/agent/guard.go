//go:build unix

package agent

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const canCommand = true

// Descriptors of a guard, beside its standard input, on which the agent speaks.
const (
	guardStdout  = 3 // for the command
	guardStderr  = 4 // for the command
	guardControl = 5 // for the command
	guardStatus  = 6 // to the agent
)

const (
	guardLook  = 250 * time.Millisecond // between two looks at the clock; a suspended machine stops timers
	guardAgain = 10 * time.Millisecond  // between two rounds of killing
	stragglers = time.Second            // for what the command leaves running to end by itself
	forever    = time.Duration(math.MaxInt64)
)

// guardSpec is the first line that a guard is told.
type guardSpec struct {
	Path     string        `json:"path"`
	Argv     []string      `json:"argv"`
	Dir      string        `json:"dir"`
	Env      []string      `json:"env"`
	Deadline time.Duration `json:"deadline"` // on the clock of bootNow
}

// guardOrder is each later line.
type guardOrder struct {
	Deadline time.Duration  `json:"deadline,omitempty"` // extended to this
	Stop     *time.Duration `json:"stop,omitempty"`     // SIGTERM now, SIGKILL after this grace
}

// guardReport is a line that a guard tells.
type guardReport struct {
	Started *processID `json:"started,omitempty"`
	Failed  string     `json:"failed,omitempty"`
	Again   bool       `json:"again,omitempty"` // Failed for something that the machine lacks at the moment
	Ended   bool       `json:"ended,omitempty"` // the first process has, as the next two say
	Code    int        `json:"code,omitempty"`
	Signal  int        `json:"signal,omitempty"`
	Killed  string     `json:"killed,omitempty"` // why the tree was killed while the first process ran
	Gone    bool       `json:"gone,omitempty"`   // nothing of the tree is left
}

// Guard runs one command and returns when nothing of its tree is left. It is the body of a hidden
// command that the agent starts; in is its standard input. The tree is killed when the agent says so,
// when the deadline passes that the agent told last, and when in ends, because the agent did.
func Guard(in io.Reader) error {
	// The command gets its death signal when the thread that started it ends; this one stays.
	runtime.LockOSThread()
	// Not ignored, which the command would inherit, but without effect: the agent decides.
	unheard := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE}
	signal.Reset(unheard...)
	signal.Notify(make(chan os.Signal, 1), unheard...)
	keepOwn()
	status := json.NewEncoder(os.NewFile(guardStatus, "status"))
	orders := json.NewDecoder(in)
	var spec guardSpec
	if err := orders.Decode(&spec); err != nil {
		return err
	}
	if err := adopt(); err != nil {
		return errors.Join(err, status.Encode(guardReport{Failed: err.Error()}))
	}
	t, err := startTree(spec)
	for fd := guardStdout; fd <= guardControl; fd++ {
		_ = syscall.Close(fd) // the command has them; ours would keep the agent reading
	}
	if err != nil {
		return status.Encode(guardReport{Failed: err.Error(), Again: passes(err)})
	}
	report := func(r guardReport) { _ = status.Encode(r) } // an agent that is gone reads nothing
	started := t.id()
	report(guardReport{Started: &started})
	w := watch{tree: t, deadline: spec.Deadline, killAt: forever, report: report}
	w.run(listen(orders))
	return nil
}

// passes tells whether a start may succeed later: processes, memory or descriptors are short, or the program is being
// written.
func passes(err error) bool {
	for _, e := range []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// fork starts the command; its standard input is empty, its control descriptor is 3.
func fork(spec guardSpec, sys *syscall.SysProcAttr) (pid int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }() // only for the child
	pid, err = syscall.ForkExec(spec.Path, spec.Argv, &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Sys: sys,
		Files: []uintptr{null.Fd(), guardStdout, guardStderr, guardControl}})
	if err != nil {
		return 0, &os.PathError{Op: "run", Path: spec.Path, Err: err}
	}
	return pid, nil
}

// listen hands on the agent's orders and closes at their end.
func listen(orders *json.Decoder) <-chan guardOrder {
	c := make(chan guardOrder)
	go func() {
		defer close(c)
		for {
			var o guardOrder
			if orders.Decode(&o) != nil {
				return
			}
			c <- o
		}
	}()
	return c
}

// watch is what a guard decides by.
type watch struct {
	tree     *tree
	deadline time.Duration // of the lease
	killAt   time.Duration // the end of a grace
	ended    bool          // the first process has
	killed   string        // why the killing began while the first process ran
	orphaned bool          // the agent is gone
	report   func(guardReport)
}

func (w *watch) run(orders <-chan guardOrder) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := w.tree.ended
	for {
		select {
		case o, ok := <-orders:
			if !ok {
				orders, w.orphaned = nil, true
			}
			w.take(o)
		case <-ended:
			ended, w.ended = nil, true
			code, sig := w.tree.status()
			w.report(guardReport{Ended: true, Code: code, Signal: sig, Killed: w.killed})
			w.killAt = min(w.killAt, bootNow()+stragglers)
		case <-w.tree.gone:
			if ended == nil {
				w.report(guardReport{Gone: true})
				return
			}
			timer.Reset(guardAgain) // its end is to be told first
			continue
		case <-timer.C:
		}
		timer.Reset(w.look())
	}
}

// take follows an order.
func (w *watch) take(o guardOrder) {
	w.deadline = max(w.deadline, o.Deadline)
	if o.Stop != nil {
		if *o.Stop > 0 {
			w.tree.signal(syscall.SIGTERM)
		}
		w.killAt = min(w.killAt, bootNow()+*o.Stop)
	}
}

// look kills if it is time to and tells when to look again.
func (w *watch) look() time.Duration {
	now := bootNow()
	var why string
	switch {
	case w.orphaned:
		why = "the agent is gone"
	case now >= w.deadline:
		why = "the lease ran out"
	case now >= w.killAt:
		why = "the grace was over"
	default:
		return max(min(guardLook, w.deadline-now, w.killAt-now), time.Millisecond)
	}
	if !w.ended && w.killed == "" {
		w.killed = why
	}
	w.tree.kill()
	return guardAgain
}
