package main

import (
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var agents sync.Map // *testscript.TestScript → *background

// startagent agent FLAGS… starts an agent and waits until it has a session.
func startAgent(ts *testscript.TestScript, _ bool, args []string) {
	b := launch(ts, "takt", args...)
	ts.Defer(func() {
		if _, running := agents.LoadAndDelete(ts); running {
			_ = b.cmd.Process.Kill()
			_ = b.cmd.Wait()
		}
	})
	agents.Store(ts, b)
	b.await(ts, `msg="session opened"`)
}

// stopagent CODE [twice] sends SIGTERM, and another one when the agent has taken the first; it must end
// with the exit code.
func stopAgent(ts *testscript.TestScript, _ bool, args []string) {
	v, ok := agents.LoadAndDelete(ts)
	if !ok || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: stopagent CODE [twice], after startagent")
	}
	b := v.(*background)
	ts.Check(terminate(b.cmd.Process))
	if len(args) == 2 {
		b.await(ts, "told the handlers to end")
		time.Sleep(2 * sameSignal) // one that comes within it counts as the first one again
		ts.Check(terminate(b.cmd.Process))
	}
	checkExit(ts, args[0], b.end(ts))
}
