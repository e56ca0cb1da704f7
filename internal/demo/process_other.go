//go:build !unix

package demo

import (
	"errors"
	"os"
	"syscall"
)

// Supported tells whether processes can be frozen here.
const Supported = false

var errUnsupported = errors.New("a process cannot be frozen on this system")

func tiedToParent() *syscall.SysProcAttr { return nil }

func suspend(*os.Process) error { return errUnsupported }
func resume(*os.Process) error  { return errUnsupported }
