//go:build unix

package main

import (
	"os"
	"syscall"
)

const canSignal = true

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
