package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	lib "modernc.org/sqlite/lib"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

//go:embed migrations/*.sql
var embedded embed.FS

// applicationID marks the file as Takt's ("TAKT"); migration 1 writes it.
const applicationID = 1413565268

// How many snapshots may be read at once, by engines and the keeper, and by people. They are apart: lists
// are large and may be many, and an engine must not wait for them.
const (
	readerCount = 3
	lookerCount = 3
)

// Config says which file to open and how.
type Config struct {
	Path       string // the file; its directory must exist
	Partitions int    // used when the file is made: 1..4096, 0 means 1; an existing file keeps its number
	NoSync     bool   // tests only: do not wait for the disk
	NoMigrate  bool   // refuse tables that are not up to date, instead of changing them
}

// Store is the adapter. All methods may be called by many goroutines.
type Store struct {
	gate    gate
	writer  *link      // guarded by gate
	closed  bool       // guarded by gate
	readers chan *link // of engines and the keeper
	lookers chan *link // of people
	dbs     []*sql.DB
	walk    int64 // rows that a list looks at for one page, see walkRows
	old     oldest
	skip    mutant
	path    string
	file    os.FileInfo // of the file that was opened
}

var _ store.Store = (*Store)(nil)

// mutant switches a part of the adapter off, so that a test can show that the exam sees it. All false
// in production.
type mutant struct{ fence, stateGuard, consume, wholeSet, planner, children, floor bool }

// Open opens or creates the database and brings its tables up to date. It refuses, saying why, a
// missing directory, a file that is no Takt database and one that a binary more than one version newer has changed.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Partitions < 0 || c.Partitions > 4096 {
		return nil, job.Errorf(job.KindInvalid, "bad_partitions", "%d partitions: 1 to 4096 are possible", c.Partitions)
	}
	if err := checkPath(c.Path); err != nil {
		return nil, err
	}
	if err := makePrivate(c.Path); err != nil {
		return nil, err
	}
	s := &Store{readers: make(chan *link, readerCount), lookers: make(chan *link, lookerCount), walk: walkRows, path: c.Path}
	if err := s.open(ctx, c); err != nil {
		return nil, errors.Join(err, s.shut())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, c Config) error {
	if err := errors.Join(errPacked, checkOwner(ctx, c.Path)); err != nil {
		return err
	}
	if c.NoMigrate {
		if err := settled(ctx, c.Path); err != nil {
			return err
		}
	}
	writing, err := s.handle(c, false)
	if err != nil {
		return err
	}
	writing.SetMaxOpenConns(1)
	if err := migrate(ctx, writing); err != nil {
		return err
	}
	reading, err := s.handle(c, true)
	if err != nil {
		return err
	}
	reading.SetMaxOpenConns(readerCount + lookerCount)
	for _, links := range []chan *link{s.readers, s.lookers} {
		for range cap(links) {
			links <- &link{db: reading} // connects at its first use
		}
	}
	s.writer = &link{db: writing}
	if s.file, err = os.Stat(c.Path); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	return s.write(ctx, rankOwnership, "create partitions", func(w *link) error { return makePartitions(w, max(c.Partitions, 1)) })
}

// handle makes a database handle. Pragmas are in the address, so that each connection gets them.
func (s *Store) handle(c Config, readOnly bool) (*sql.DB, error) {
	sync := "FULL"
	if c.NoSync {
		sync = "OFF"
	}
	q := url.Values{"_pragma": {"busy_timeout(0)"}} // its waiting would stop a virtual clock, and hold the transaction
	if readOnly {
		q["_pragma"] = append(q["_pragma"], "query_only(1)", "cache_size(-8192)")
	} else {
		q["_pragma"] = append(q["_pragma"], "journal_mode(WAL)", "synchronous("+sync+")", "cache_size(-65536)",
			"wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "temp_store(MEMORY)")
	}
	db, err := sqlOpen(c.Path, q)
	if err == nil {
		s.dbs = append(s.dbs, db)
	}
	return db, err
}

func sqlOpen(path string, q url.Values) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	address := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return db, nil
}

func checkPath(path string) error {
	if path == "" {
		return job.Errorf(job.KindInvalid, "no_path", "no file was named for the database")
	}
	dir := filepath.Dir(path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return job.Errorf(job.KindNotFound, "no_data_directory", "the directory %s of the database does not exist", dir).
			WithHint("create it, or name another one with --data")
	case err != nil:
		return job.Errorf(job.KindUnavailable, "not_readable", "the directory %s of the database cannot be read", dir).WithCause(err)
	case !info.IsDir():
		return job.Errorf(job.KindInvalid, "not_a_directory", "%s is a file, not a directory for the database", dir)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return job.Errorf(job.KindInvalid, "not_a_file", "%s is a directory, not a database file", path)
	}
	return nil
}

// makePrivate makes the file of a new database, readable by its owner alone: parameters and results are
// nobody else's business, whatever the directory allows. SQLite gives its WAL the same mode.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return job.Errorf(job.KindUnavailable, "not_writable", "the database %s cannot be made", path).WithCause(err).
			WithHint("check the rights and the free space of the directory")
	}
	return f.Close()
}

// migrate applies what is missing of the migrations.
func migrate(ctx context.Context, db *sql.DB) error {
	form, files, err := formOf(ctx, db)
	if err != nil {
		return err
	}
	if err := form.Check(); err != nil || form.Ahead > 0 || len(form.Pending()) == 0 { // one version ahead is a rolling upgrade
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return classify("migrate the database", err)
	}
	return nil
}

// formOf reads the form of a database, new or not.
func formOf(ctx context.Context, db *sql.DB) (form store.Form, files fs.FS, err error) {
	const op = "read the database's version"
	if files, err = fs.Sub(embedded, "migrations"); err != nil {
		return form, nil, fmt.Errorf("migrations: %w", err)
	}
	var tables, floor int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name IN ('goose_db_version', 'meta')`).Scan(&tables); err != nil {
		return form, nil, classify(op, err)
	}
	var applied []int64
	if tables == 2 {
		if applied, err = appliedVersions(ctx, db); err == nil {
			err = db.QueryRowContext(ctx, texts[qFloor]).Scan(&floor)
		}
		if err != nil {
			return form, nil, classify(op, err)
		}
	}
	form, err = store.FormOf(files, applied, floor)
	return form, files, err
}

// checkOwner refuses a file of something else, before the pragmas of the handles would change it.
func checkOwner(ctx context.Context, path string) (err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil // a new one
	}
	db, err := sqlOpen(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(0)"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var id, tables int64
	err = db.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).
		Scan(&id, &tables)
	switch {
	case primary(err) == lib.SQLITE_NOTADB:
		return job.Errorf(job.KindInvalid, "not_a_database", "%s is no database", path).
			WithHint("name another data directory, or move the file away").WithCause(err)
	case err != nil:
		return classify("open "+path, err)
	case tables > 0 && id != applicationID:
		return job.Errorf(job.KindInvalid, "not_a_takt_database", "%s is a database of another program", path).
			WithHint("name another data directory, or move the file away")
	}
	return nil
}

// Close waits for the transactions in flight and closes the file. Calls after it are refused.
func (s *Store) Close() error {
	if err := s.gate.enter(background, rankOwnership); err != nil {
		return err
	}
	defer s.gate.leave()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.shut()
}

func (s *Store) shut() error {
	var errs []error
	if s.writer != nil {
		for _, links := range []chan *link{s.readers, s.lookers} {
			for range cap(links) {
				errs = append(errs, (<-links).close())
			}
			close(links)
		}
		errs = append(errs, s.writer.close())
	}
	for i := len(s.dbs) - 1; i >= 0; i-- { // the writer last: it folds the WAL into the file
		errs = append(errs, s.dbs[i].Close())
	}
	s.dbs = nil
	return errors.Join(errs...)
}

var qPing = statement(`UPDATE meta SET value = value + 1 WHERE key = 'ping'`)

// Ping writes, for a full disk or a read-only file system shows only then.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, rankPeople, "ping", func(w *link) error {
		_, err := w.exec(qPing)
		return err
	})
}
