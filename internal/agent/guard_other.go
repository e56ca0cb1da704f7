//go:build !unix

package agent

import (
	"errors"
	"io"
)

const canCommand = false

var errNoCommands = errors.New("commands cannot be run on this system")

// Guard cannot be run on this system.
func Guard(io.Reader) error { return errNoCommands }
