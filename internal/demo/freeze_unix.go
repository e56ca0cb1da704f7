//go:build unix

package demo

import (
	"os"
	"syscall"
)

// Supported tells whether processes can be frozen here.
const Supported = true

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error  { return p.Signal(syscall.SIGCONT) }
