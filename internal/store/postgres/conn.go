package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/taktsched/takt/internal/store"
)

// texts is every statement of the package; its index is the statement's id.
var texts []string

type query int

// statement registers SQL at package start.
func statement(text string) query {
	texts = append(texts, text)
	return query(len(texts) - 1)
}

// link is a connection inside a transaction; used by one goroutine at a time.
type link struct {
	conn *pgx.Conn
	ctx  context.Context //nolint:containedctx // a link lives as long as one call of write, read or look, whose context this is

	fresh  bool            // the transaction has not begun: BEGIN goes along with the first statement
	begins query           // that
	stale  bool            // the connection was closed before it took that
	caller context.Context //nolint:containedctx // as ctx; who is gone does not wait for that
	soon   time.Duration   // how long that may take
	last   []question      // go along with COMMIT
	mutate func(q query, text string) string
}

// text is that of a statement.
func (l *link) text(q query) string { return mutated(l.mutate, q) }

func mutated(mutate func(q query, text string) string, q query) string {
	if mutate == nil {
		return texts[q]
	}
	return mutate(q, texts[q])
}

// begin begins the transaction by itself.
func (l *link) begin() error {
	_, err := l.ask()
	return err
}

// exec runs a statement and returns the number of rows it touched.
func (l *link) exec(q query, args ...any) (int64, error) {
	if l.fresh {
		got, err := l.ask(question{q, args, nil})
		return got.tag.RowsAffected(), err
	}
	tag, err := l.conn.Exec(l.ctx, l.text(q), args...)
	return tag.RowsAffected(), err
}

// one reads one row into dest; false when there is none.
func (l *link) one(q query, args []any, dest ...any) (bool, error) {
	if l.fresh {
		found := false
		_, err := l.ask(question{q, args, func(rows pgx.Rows) error {
			found = true
			return cmp.Or(rows.Scan(dest...), store.ErrEnough)
		}})
		return found && err == nil, err
	}
	err := l.conn.QueryRow(l.ctx, l.text(q), args...).Scan(dest...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each reads the rows of a query, all of them or until row returns store.ErrEnough. Nothing else may be asked of the
// link before it returns.
func (l *link) each(q query, args []any, row func(pgx.Rows) error) error {
	if l.fresh {
		_, err := l.ask(question{q, args, row})
		return err
	}
	rows, err := l.conn.Query(l.ctx, l.text(q), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); errors.Is(err, store.ErrEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// How long a transaction may take to begin, and one that writes until it has ended: somebody waits for it, and when the
// database stands still the answer is that it does.
const (
	beginMost = 5 * time.Second
	writeMost = 15 * time.Second
)

var (
	qBegin     = statement(`BEGIN`)
	qBeginRead = statement(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	qCommit    = statement(`COMMIT`)
)

// tries is how often a transaction runs that lost a race to another one.
const tries = 5

// write runs fn in one transaction of people's (READ COMMITTED: fn locks what must not change meanwhile). An error of
// fn rolls back. A deadlock, or a key that another transaction took first, runs fn again, so that it must set its
// results anew each time.
func (s *Store) write(ctx context.Context, op string, fn func(*link) error) error {
	return s.writeOn(ctx, s.people, op, fn)
}

func (s *Store) writeOn(ctx context.Context, on *pool, op string, fn func(*link) error) error {
	return s.writeInFew(ctx, on, op, func(l *link) error {
		if err := l.begin(); err != nil {
			return err
		}
		return fn(l)
	})
}

// writeInFew is writeOn with fewer ways to the database: BEGIN goes along with the first statement of fn, which must ask by exec, one,
// each or ask, and what it leaves in link.last with COMMIT.
func (s *Store) writeInFew(ctx context.Context, on *pool, op string, fn func(*link) error) error {
	for n := 1; ; n++ {
		err := s.transact(ctx, on, op, fn)
		var pg *pgconn.PgError
		if err == nil || n == tries || ctx.Err() != nil || !errors.As(err, &pg) || !raced(pg.Code) {
			return err
		}
	}
}

func raced(code string) bool {
	return code == codeSerialization || code == codeDeadlock || code == codeUnique
}

// transact runs fn in a transaction. A connection that the database has closed meanwhile shows only with BEGIN, and the next
// is taken, as in begin.
func (s *Store) transact(ctx context.Context, on *pool, op string, fn func(*link) error) error {
	for n := int32(0); ; n++ {
		c, err := on.Acquire(ctx)
		if err != nil {
			return s.failed(op, silent(ctx, err))
		}
		stale, err := s.transactOn(ctx, c, on, op, fn)
		if !stale || n > on.Config().MaxConns {
			return err
		}
	}
}

func (s *Store) transactOn(ctx context.Context, c *pgxpool.Conn, on *pool, op string, fn func(*link) error) (stale bool, err error) {
	defer on.release(c) // a connection with a transaction that is still open is closed, which rolls back
	// A statement that runs is not interrupted by a caller who has gone: an interrupted COMMIT would be one more
	// unknown outcome. It ends by the time-outs of the connection, or here when the network is silent.
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), on.writes)
	defer cancel()
	l := &link{conn: c.Conn(), ctx: patience, fresh: true, begins: qBegin, caller: ctx, soon: on.soon(), mutate: s.mutate}
	open := true
	defer func() {
		if open && !l.fresh { // fn failed or panicked
			l.end()
		}
	}()
	if err := fn(l); err != nil {
		return l.stale && ctx.Err() == nil, s.failed(op, silent(ctx, err))
	}
	if l.fresh {
		if len(l.last) == 0 { // nothing was asked
			return false, nil
		}
		if err := l.begin(); err != nil { // by itself: with COMMIT behind it, what became of that would not be known
			return l.stale && ctx.Err() == nil, s.failed(op, silent(ctx, err))
		}
	}
	got, err := l.ask(append(l.last, question{qCommit, nil, nil})...)
	var pg *pgconn.PgError
	switch {
	case err == nil && got.tag.String() == "ROLLBACK":
		open = false
		return false, errorf(op, "commit_refused", "the transaction had failed before")
	case err == nil:
		open = false
		return false, nil
	case got.answered < len(l.last) && errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR": // of a statement before the COMMIT
		return false, s.failed(op, err)
	default:
		open = false
		return false, classifyCommit(op, err)
	}
}

// end closes a transaction without its effects; where that fails the pool throws the connection away, which does it as well.
func (l *link) end() {
	if l.conn.IsClosed() {
		return
	}
	if _, err := l.conn.Exec(l.ctx, `ROLLBACK`); err != nil {
		_ = l.conn.Close(l.ctx)
	}
}

// read runs fn on one snapshot, for engines and the keeper.
func (s *Store) read(ctx context.Context, op string, fn func(*link) error) error {
	return s.snapshot(ctx, s.engines, op, fn)
}

// look is read for people: on connections of their own, so that no list delays an engine. A caller who has gone ends
// what runs.
func (s *Store) look(ctx context.Context, op string, fn func(*link) error) error {
	return s.snapshot(ctx, s.lists, op, fn)
}

// snapshot runs fn in one transaction that reads. BEGIN goes along with its first statement, which must be asked by exec, one, each or
// ask; a connection that the database has closed meanwhile shows only with that, and the next is taken.
func (s *Store) snapshot(ctx context.Context, on *pool, op string, fn func(*link) error) error {
	for n := int32(0); ; n++ {
		stale, err := s.snapshotOn(ctx, on, op, fn)
		if !stale || n > on.Config().MaxConns {
			return err
		}
	}
}

func (s *Store) snapshotOn(ctx context.Context, on *pool, op string, fn func(*link) error) (stale bool, err error) {
	c, err := on.Acquire(ctx)
	if err != nil {
		return false, s.failed(op, silent(ctx, err))
	}
	defer on.release(c)
	bounded, cancel := context.WithTimeout(ctx, on.patience) // engines read until their end, and the network may be silent
	defer cancel()
	l := &link{conn: c.Conn(), ctx: bounded, fresh: true, begins: qBeginRead, caller: ctx, soon: on.soon(), mutate: s.mutate}
	defer func() {
		if l.fresh { // nothing was asked
			return
		}
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		(&link{conn: l.conn, ctx: patience}).end()
	}()
	if err := fn(l); err != nil {
		return l.stale && ctx.Err() == nil, s.failed(op, silent(ctx, err))
	}
	return false, nil
}

// silent tells a time-out of ours from the caller's own.
func silent(ctx context.Context, err error) error {
	if ctx.Err() == nil && pgconn.Timeout(err) {
		return silence(err)
	}
	return err
}

func silence(err error) error {
	return errorf("database", "database_silent", "no answer came in time").
		WithHint("look whether the database stands still, and at the network between").WithCause(plain(err))
}

// failed is classify, and draws the adapter's own consequences: a database that became a standby is looked for anew on
// the other hosts of the address; a month that is not there is forgotten, so that the next try makes it.
func (s *Store) failed(op string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pg.Code == codeReadOnly:
			for _, p := range s.pools() {
				p.Reset()
			}
		case pg.Code == codeCheck && pg.ConstraintName == "" && inMonths(pg.TableName):
			s.months.forgetAll()
			return errorf(op, codeNoMonth, "a month of %s was dropped meanwhile", pg.TableName).WithCause(err)
		}
	}
	return classify(op, err)
}
