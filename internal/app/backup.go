package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// What a server writes for a download is called so, in its data directory.
const copyBegin, copyEnd = "backup-", ".tmp"

// partName is what a restore writes before it gives it its name; SQLite may keep more files beside it.
const partName = databaseName + ".part"

var partNames = []string{partName, partName + "-journal", partName + "-wal", partName + "-shm"}

// Database is the path of the database in a data directory.
func Database(dir string) string { return filepath.Join(dir, databaseName) }

// Restore makes a data directory from a file that Backup wrote. It refuses a directory that a server uses (KindConflict,
// "data_dir_locked") or that holds anything ("data_dir_not_empty"), and a file that is damaged (KindInvalid, "backup_damaged"),
// no database of Takt, or too new for this binary. When it fails the directory stays empty.
//
// The first server on it grants nothing until the leases that workers may still hold have ended.
func Restore(ctx context.Context, file, dir string) (err error) {
	if err := check(ctx, file); err != nil {
		return err
	}
	lock, err := lockDir(dir, time.Now(), "none: a restore")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return job.Errorf(job.KindInvalid, "bad_data_dir", "the data directory cannot be read").WithField("data").WithCause(err)
	}
	for _, e := range entries {
		if e.Name() != lockName && !slices.Contains(partNames, e.Name()) {
			return job.Errorf(job.KindConflict, "data_dir_not_empty", "the data directory %s holds %s already", dir, e.Name()).WithField("data").
				WithHint("name a new directory, or move its content away")
		}
	}
	if err := clearParts(dir); err != nil { // of a restore that was killed: the lock is ours
		return job.Errorf(job.KindInvalid, "bad_data_dir", "the data directory cannot be written").WithField("data").WithCause(err)
	}
	part := filepath.Join(dir, partName)
	defer func() {
		if err != nil {
			_ = clearParts(dir) // nothing half-done stays; else the next restore clears it
		}
	}()
	if err := sqlite.Copy(ctx, file, part); err != nil {
		return err
	}
	if err := sqlite.MarkRestored(ctx, part); err != nil {
		return err
	}
	if err := os.Rename(part, Database(dir)); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return syncDir(dir)
}

func clearParts(dir string) (err error) {
	for _, name := range partNames {
		if e := os.Remove(filepath.Join(dir, name)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// check refuses a backup that no server of this binary could use.
func check(ctx context.Context, file string) error {
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return damaged(file, errors.New("it is empty"))
	}
	state, err := sqlite.Inspect(ctx, file)
	if err == nil {
		err = state.Check()
	}
	if err == nil {
		err = sqlite.Verify(ctx, file)
	}
	if e, ok := errors.AsType[*job.Error](err); ok && (e.Code == "database_damaged" || e.Code == "database_fault" || e.Code == "disk_error") {
		return damaged(file, err)
	}
	return err
}

// damaged: the file is what the caller gave, so it is the caller's to give another one.
func damaged(file string, cause error) error {
	return job.Errorf(job.KindInvalid, "backup_damaged", "%s is cut off or damaged", file).WithField("file").
		WithHint("take another backup; `takt backup` checks what it writes").WithCause(cause)
}

// syncDir makes a rename in a directory durable, where directories can be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	err = d.Sync()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // Windows
	}
	return errors.Join(err, d.Close())
}

// download is a copy that is being read; closing removes it.
type download struct {
	*os.File
	leave func()
}

// Close removes the copy.
func (d *download) Close() error {
	defer d.leave()
	return errors.Join(d.File.Close(), os.Remove(d.Name()))
}

// backup makes a copy of the database in the data directory, for one reader at a time.
func (a *App) backup(ctx context.Context) (io.ReadCloser, int64, error) {
	st, ok := a.store.(interface {
		Backup(ctx context.Context, to string) error
	})
	if !ok || a.cfg.DataDir == "" {
		return nil, 0, job.Errorf(job.KindUnavailable, "no_backup", "this server has no database file of its own")
	}
	if !a.copying.TryLock() {
		return nil, 0, job.Errorf(job.KindConflict, "backup_running", "another backup is being made").WithHint("try again when it has ended")
	}
	path := filepath.Join(a.cfg.DataDir, fmt.Sprintf("%s%d%s", copyBegin, a.cfg.Wall().UnixNano(), copyEnd))
	if err := st.Backup(ctx, path); err != nil {
		a.copying.Unlock()
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		a.copying.Unlock()
		return nil, 0, errors.Join(fmt.Errorf("open the copy: %w", err), os.Remove(path))
	}
	d := &download{File: f, leave: a.copying.Unlock}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the copy: %w", err), d.Close())
	}
	return d, info.Size(), nil
}

// clearCopies removes what a server that was killed left of downloads.
func clearCopies(dir string) {
	entries, _ := os.ReadDir(dir) // as far as it can be read
	for _, e := range entries {
		number, isCopy := strings.CutPrefix(e.Name(), copyBegin)
		number, ending, ends := strings.Cut(number, copyEnd)
		if _, err := strconv.ParseInt(number, 10, 64); isCopy && ends && err == nil && (ending == "" || ending == "-journal") {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next start tries again
		}
	}
}

// backsUp is nil where there is no file to copy.
func (a *App) backsUp() func(context.Context) (io.ReadCloser, int64, error) {
	if a.cfg.DataDir == "" {
		return nil
	}
	return a.backup
}
