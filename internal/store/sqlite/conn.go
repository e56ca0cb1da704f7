package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"os"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// A BUSY database is asked again after busyPause until busyPatience is over.
const (
	busyPause    = 5 * time.Millisecond
	busyPatience = 2 * time.Second
)

// texts is every statement of the package; its index is the statement's id.
var texts []string

type query int

// statement registers SQL at package start.
func statement(text string) query {
	texts = append(texts, text)
	return query(len(texts) - 1)
}

var (
	qBeginWrite = statement(`BEGIN IMMEDIATE`)
	qBeginRead  = statement(`BEGIN`)
	qCommit     = statement(`COMMIT`)
	qRollback   = statement(`ROLLBACK`)
)

// link is one connection with its prepared statements; used by one goroutine at a time.
type link struct {
	db     *sql.DB
	conn   *sql.Conn
	stmts  []*sql.Stmt
	caller context.Context // of a read of people's: asked between rows; nil: the read goes on to its end
}

// background: a statement that runs is never interrupted. It waits for nothing but the disk, and an
// interrupted COMMIT would be one more unknown outcome.
var background = context.Background()

func (l *link) connect() error {
	conn, err := l.db.Conn(background)
	if err != nil {
		return err
	}
	l.conn, l.stmts = conn, make([]*sql.Stmt, len(texts))
	return nil
}

// drop throws the connection away; the next use makes a new one.
func (l *link) drop() {
	if l.conn == nil {
		return
	}
	_ = l.conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // database/sql closes a bad connection
	_ = l.conn.Close()
	l.conn, l.stmts = nil, nil
}

// close ends the connection for good. Its statements go first: SQLite keeps a connection with open
// statements as a zombie, and then the last one to close does not fold the WAL into the file.
func (l *link) close() error {
	if l.conn == nil {
		return nil
	}
	var errs []error
	for _, st := range l.stmts {
		if st != nil {
			errs = append(errs, st.Close())
		}
	}
	errs = append(errs, l.conn.Close())
	l.conn, l.stmts = nil, nil
	return errors.Join(errs...)
}

func (l *link) prepared(q query) (*sql.Stmt, error) {
	if l.conn == nil {
		if err := l.connect(); err != nil {
			return nil, err
		}
	}
	if st := l.stmts[q]; st != nil {
		return st, nil
	}
	st, err := l.conn.PrepareContext(background, texts[q])
	if err != nil {
		return nil, err
	}
	l.stmts[q] = st
	return st, nil
}

// exec runs a statement and returns the number of rows it touched.
func (l *link) exec(q query, args ...any) (int64, error) {
	st, err := l.prepared(q)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(background, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert runs an INSERT and returns the number of its last row.
func (l *link) insert(q query, args ...any) (int64, error) {
	st, err := l.prepared(q)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(background, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// one reads one row into dest; false when there is none.
func (l *link) one(q query, args []any, dest ...any) (bool, error) {
	st, err := l.prepared(q)
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(background, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each reads the rows of a query, all of them or until row returns store.ErrEnough. A caller of people's that
// has gone ends it between two rows.
func (l *link) each(q query, args []any, row func(*sql.Rows) error) error {
	st, err := l.prepared(q)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(background, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		err := l.gone()
		if err == nil {
			err = row(rows)
		}
		if errors.Is(err, store.ErrEnough) {
			return rows.Close()
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// gone is an error when the caller of a read of people's waits no more.
func (l *link) gone() error {
	if l.caller == nil || l.caller.Err() == nil {
		return nil
	}
	return context.Cause(l.caller)
}

// begin opens a transaction, asking a busy database again for a while.
func (l *link) begin(ctx context.Context, q query) error {
	for waited := time.Duration(0); ; waited += busyPause {
		_, err := l.exec(q)
		if err == nil || !busy(err) || waited >= busyPatience {
			return err
		}
		pause := time.NewTimer(busyPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
	}
}

// end closes a transaction without its effects. A connection that cannot is thrown away, which does it
// as well. (SQLite has rolled back by itself after some failures; then it cannot either.)
func (l *link) end() {
	if _, err := l.exec(qRollback); err != nil {
		l.drop()
	}
}

// write runs fn in one write transaction. An error of fn rolls back.
func (s *Store) write(ctx context.Context, r rank, op string, fn func(*link) error) error {
	if err := s.gate.enter(ctx, r); err != nil {
		return classify(op, gaveUp(op, err))
	}
	defer s.gate.leave()
	if s.closed {
		return closedError(op)
	}
	if err := s.writer.begin(ctx, qBeginWrite); err != nil {
		return classify(op, err)
	}
	open := true
	defer func() {
		if open { // fn failed or panicked
			s.writer.end()
		}
	}()
	if err := fn(s.writer); err != nil {
		return classify(op, err)
	}
	if err := s.checkPlace(op); err != nil {
		return err
	}
	if _, err := s.writer.exec(qCommit); err != nil {
		return classifyCommit(op, err)
	}
	open = false
	return nil
}

// read runs fn on one snapshot, for engines and the keeper.
func (s *Store) read(ctx context.Context, op string, fn func(*link) error) error {
	return s.snapshot(ctx, s.readers, op, fn)
}

// readNear is read for what is asked for between commits all the time: on the connection that writes, if that is free. Its
// cache holds what it wrote, while that of a reader is dropped at each commit.
func (s *Store) readNear(ctx context.Context, op string, fn func(*link) error) error {
	if !s.gate.try() {
		return s.read(ctx, op, fn)
	}
	defer s.gate.leave()
	if s.closed {
		return closedError(op)
	}
	if err := s.writer.begin(ctx, qBeginRead); err != nil {
		return classify(op, err)
	}
	defer s.writer.end()
	if err := fn(s.writer); err != nil {
		return classify(op, err)
	}
	return nil
}

// look is read for people: on connections of their own, so that no list delays an engine, and only
// while the caller waits.
func (s *Store) look(ctx context.Context, op string, fn func(*link) error) error {
	return s.snapshot(ctx, s.lookers, op, func(l *link) error {
		l.caller = ctx
		defer func() { l.caller = nil }()
		return fn(l)
	})
}

func (s *Store) snapshot(ctx context.Context, links chan *link, op string, fn func(*link) error) error {
	var l *link
	select {
	case l = <-links:
	default:
		select {
		case l = <-links:
		case <-ctx.Done():
			return gaveUp(op, context.Cause(ctx))
		}
	}
	if l == nil { // the channel is closed
		return closedError(op)
	}
	defer func() { links <- l }()
	if err := ctx.Err(); err != nil {
		return gaveUp(op, context.Cause(ctx))
	}
	if err := l.begin(ctx, qBeginRead); err != nil {
		return classify(op, err)
	}
	defer l.end()
	if err := fn(l); err != nil {
		return classify(op, err)
	}
	return nil
}

// checkPlace refuses to commit into a file that has no name any more: the kernel keeps a deleted file for those who
// have it open, and whatever is acknowledged from there is lost with the process.
func (s *Store) checkPlace(op string) error {
	if s.file == nil { // while it is being opened
		return nil
	}
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(now, s.file) {
		return nil
	}
	return job.Errorf(job.KindUnavailable, "database_gone", "%s: the database file %s was deleted, moved or replaced under the server", op, s.path).
		WithHint("stop the server and restore a backup; if the directory was moved, move it back: the server then goes on by itself").WithCause(err)
}

func gaveUp(op string, cause error) error {
	return job.Errorf(job.KindUnavailable, "gave_up", "%s: the caller stopped waiting for the database", op).WithCause(cause)
}

func closedError(op string) error {
	return job.Errorf(job.KindUnavailable, "store_closed", "%s: the database is closed", op)
}
