//go:build !unix

package main

import "os"

const canSignal = false

func terminate(p *os.Process) error { return p.Kill() }
