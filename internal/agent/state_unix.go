//go:build unix

package agent

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errLocked = errors.New("another agent holds the lock")

// lockFile opens the file and takes its lock, which ends with this process. errLocked: it is taken.
func lockFile(name string, create bool) (*os.File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkOwner refuses a directory in which others could plant run files: they say what to kill. A link is none: whoever
// made it may lead it elsewhere later.
func checkOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("state directory %s: it must be a directory of this user in which nobody else may write", dir)
	}
	return nil
}
