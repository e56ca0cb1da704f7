package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// lockName is the file whose lock is the right to a data directory (R8). The lock is the kernel's, so it
// ends with its process; the content only names the holder.
const lockName = "LOCK"

// errLocked is what lockFile returns when another process holds the lock.
var errLocked = errors.New("locked by another process")

// dirLock is a data directory held by this process.
type dirLock struct {
	file  *os.File
	since time.Time
}

// lockDir makes the directory when it is missing and takes it. The error has KindConflict and code
// "data_dir_locked" when another process has it, and names that process.
func lockDir(dir string, since time.Time, address string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, job.Errorf(job.KindInvalid, "bad_data_dir", "the data directory cannot be made").WithField("data").WithCause(err)
	}
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if !errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("open lock: %w", err)
		}
		return nil, job.Errorf(job.KindInvalid, "bad_data_dir", "the data directory cannot be used").WithField("data").WithCause(err)
	}
	if err := lockFile(f); err != nil {
		holder := readHolder(f)
		_ = f.Close() // nothing was written
		if errors.Is(err, errLocked) {
			return nil, job.Errorf(job.KindConflict, "data_dir_locked", "the data directory %s is in use by another server: %s", dir, holder).
				WithField("data").WithHint("stop that server, or give this one a directory of its own")
		}
		return nil, job.Errorf(job.KindInternal, "lock_failed", "the data directory cannot be locked").WithField("data").WithCause(err)
	}
	l := &dirLock{file: f, since: since}
	if err := l.name(address); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// name writes who holds the directory.
func (l *dirLock) name(address string) error {
	text := fmt.Sprintf("pid %d\nsince %s\naddress %s\n", os.Getpid(), l.since.UTC().Format(time.RFC3339), address)
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

// release gives the directory back. The file stays: removing it could remove a successor's.
func (l *dirLock) release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// readHolder reads what the holder wrote, as one line.
func readHolder(f *os.File) string {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 1024))
	text := strings.Join(strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' }), ", ")
	if err != nil || text == "" {
		return "it has not yet written its name"
	}
	return text
}
