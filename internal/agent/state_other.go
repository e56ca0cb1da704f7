//go:build !unix

package agent

import (
	"errors"
	"os"
)

// Without commands there is no state: nothing of this is called.

var errLocked = errors.New("another agent holds the lock")

func lockFile(string, bool) (*os.File, error) { return nil, errNoCommands }

func checkOwner(string) error { return errNoCommands }
