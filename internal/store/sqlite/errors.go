package sqlite

import (
	"context"
	"errors"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/taktsched/takt/internal/job"
)

// primary is SQLite's primary result code of err; 0 when it has none.
func primary(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func busy(err error) bool {
	c := primary(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// classify turns an error from before a COMMIT into one of the contract; nothing was written.
func classify(op string, err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return job.Errorf(job.KindUnavailable, "gave_up", "%s: the caller stopped waiting for the database", op).WithCause(err)
	}
	switch primary(err) {
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_TOOBIG, lib.SQLITE_MISMATCH:
		return job.Errorf(job.KindRejected, "data_refused", "%s: the database refuses this data", op).WithCause(err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return job.Errorf(job.KindUnavailable, "database_busy", "%s: the database file is locked by another process", op).
			WithHint("end programs that keep the file open for writing (sqlite3, backup tools)").WithCause(err)
	case lib.SQLITE_FULL:
		return job.Errorf(job.KindUnavailable, "disk_full", "%s: the disk is full", op).
			WithHint("free space on the disk of the data directory; nothing needs to be restarted").WithCause(err)
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_CANTOPEN, lib.SQLITE_AUTH:
		return job.Errorf(job.KindUnavailable, "not_writable", "%s: the database file cannot be written", op).
			WithHint("check owner and mode of the data directory and that its file system is mounted read-write").WithCause(err)
	case lib.SQLITE_IOERR:
		return job.Errorf(job.KindUnavailable, "disk_error", "%s: reading or writing the disk failed", op).
			WithHint("look into the system log for disk errors").WithCause(err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return job.Errorf(job.KindUnavailable, "database_damaged", "%s: the file is damaged or no Takt database", op).
			WithHint("restore the newest backup of the data directory").WithCause(err)
	case lib.SQLITE_NOMEM:
		return job.Errorf(job.KindUnavailable, "out_of_memory", "%s: out of memory", op).WithCause(err)
	}
	return job.Errorf(job.KindInternal, "database_fault", "%s failed", op).WithCause(err)
}

// classifyCommit is for the error of a COMMIT itself. Unless SQLite says that it did not even begin,
// the outcome is not sure: frames that are already in the WAL may be found whole by the next start.
func classifyCommit(op string, err error) error {
	if busy(err) {
		return classify(op, err)
	}
	unknown := job.Errorf(job.KindUnknown, "commit_unknown", "%s: the commit failed half-way; it may still land", op).WithCause(err)
	if why, ok := errors.AsType[*job.Error](classify(op, err)); ok && why.Hint != "" {
		unknown = unknown.WithHint("%s", why.Hint).WithCause(why) // such as to free space
	}
	return unknown
}

func fenced(code, format string, args ...any) error {
	return job.Errorf(job.KindFenced, code, format, args...)
}
