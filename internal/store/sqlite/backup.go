package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Backup writes a copy of the database as it is at one instant into a new file that only its owner may read. Commits
// go on meanwhile.
func (s *Store) Backup(ctx context.Context, to string) error { return Copy(ctx, s.path, to) }

// Copy is Backup for a file that this process need not have open; a server may be using it. Errors: KindNotFound when
// there is no database, KindConflict with code "file_exists" when there is a file at to, KindUnavailable with code
// "no_room" when the disk cannot hold the copy.
func Copy(ctx context.Context, from, to string) (err error) {
	if err := checkThere(ctx, from); err != nil {
		return err
	}
	if err := checkRoom(ctx, from, to); err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return job.Errorf(job.KindConflict, "file_exists", "there is a file %s already", to).WithHint("name another file, or move that one away")
	}
	if err != nil {
		return job.Errorf(job.KindUnavailable, "not_writable", "the file %s cannot be made", to).WithCause(err).
			WithHint("check that its directory exists, its rights and its free space")
	}
	defer func() {
		if err = errors.Join(err, target.Close()); err != nil {
			_ = os.Remove(to) // half a copy is none
		}
	}()
	db, err := sqlOpen(from, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil { // into a file that is empty
		return classify("copy the database", err)
	}
	if err := target.Sync(); err != nil {
		return job.Errorf(job.KindUnavailable, "disk_error", "the copy could not be made durable").WithCause(err)
	}
	return nil
}

// roomKept is what a copy leaves free on the disk: a server may be writing there.
const roomKept = 16 << 20

// checkRoom refuses a copy that would fill the disk, before it does.
func checkRoom(ctx context.Context, from, to string) (err error) {
	db, err := sqlOpen(from, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var size int64
	if err := db.QueryRowContext(ctx, `SELECT (page_count - freelist_count) * page_size
		FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&size); err != nil {
		return classify("measure the database", err)
	}
	free, known := freeBytes(filepath.Dir(to))
	if known && free < size+roomKept {
		return job.Errorf(job.KindUnavailable, "no_room", "the copy has %d MiB, and the disk of %s has %d MiB free", size>>20, to, free>>20).
			WithHint("free space, or write to another disk; 16 MiB stay free for a server")
	}
	return nil
}

// checkThere refuses a file that is missing, empty or not Takt's.
func checkThere(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Size() == 0 {
		return job.Errorf(job.KindNotFound, "no_database", "%s is no database", path).WithCause(err).
			WithHint("name the data directory of a server, or a file that `takt backup` wrote")
	}
	return checkOwner(ctx, path)
}

// Inspect reads the form of a database and changes nothing.
func Inspect(ctx context.Context, path string) (form store.Form, err error) {
	if err := checkThere(ctx, path); err != nil {
		return form, err
	}
	db, err := sqlOpen(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return form, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	form, _, err = formOf(ctx, db)
	return form, err
}

// settled refuses a database whose form is not what this binary knows; a new file has none.
func settled(ctx context.Context, path string) error {
	form, err := Inspect(ctx, path)
	if err != nil {
		return err
	}
	return form.Settled()
}

func appliedVersions(ctx context.Context, db *sql.DB) (all []int64, err error) {
	rows, err := db.QueryContext(ctx, `SELECT DISTINCT version_id FROM goose_db_version WHERE version_id > 0 AND is_applied ORDER BY version_id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// Verify reads a whole database and refuses, with code "database_damaged", one that is not sound.
func Verify(ctx context.Context, path string) (err error) {
	if err := checkThere(ctx, path); err != nil {
		return err
	}
	db, err := sqlOpen(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
		return classify("check "+path, err)
	}
	if found != "ok" {
		return job.Errorf(job.KindUnavailable, "database_damaged", "%s is damaged: %s", path, found).WithHint("take another backup")
	}
	return nil
}

// MarkRestored notes in a copy that it is one, by a lineage of its own: workers may hold leases that it does not
// know of.
func MarkRestored(ctx context.Context, path string) (err error) {
	db, err := sqlOpen(path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)", "synchronous(FULL)"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ('restored', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1`); err != nil {
		return classify("mark the restored database", err)
	}
	return nil
}
