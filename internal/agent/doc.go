// Package agent runs commands and HTTP calls as handlers of jobs. It is a user of the SDK like any other:
// a worker whose handlers are described in a file instead of written in Go.
//
// What it promises is that nothing of a command outlives the attempt's lease. Each command runs below a
// guard process of its own, which the kernel gives every orphan of the command's tree (Linux: subreaper)
// and which kills the tree when it is told to, when the lease's deadline passes, or when the agent's pipe
// closes: so also when the agent is stopped or killed. What is left when agent and guard were killed
// together is found by the next agent, through the attempt's directory and the mark in the environment of
// the processes.
//
// Elsewhere than on Linux there are no subreapers, no parent-death signals and no /proc: there a stop
// reaches the process group of a command, and what leaves the group is not found. On Windows commands
// cannot be run, only HTTP calls.
package agent
