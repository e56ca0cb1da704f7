package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// question is a statement, and what is to be done with each of its rows until that returns store.ErrEnough.
type question struct {
	q    query
	args []any
	row  func(pgx.Rows) error
}

// ask answers questions on one snapshot, sent in one write: they are one implicit transaction, whose isolation is that of the
// engines' connections (see open). What costs in a short read is the way to the database and back, not the rows: a BEGIN,
// five statements and a ROLLBACK take seven ways. The first should be a quick one: its answer shows that the database is there.
func (s *Store) ask(ctx context.Context, op string, all ...question) error {
	return s.askOf(ctx, s.engines, op, all...)
}

// askOf is ask on connections of a pool; over others than those of engines each question has a snapshot of its own. What a commit asks
// goes over those of commits: the others may all be taken by the loads of other partitions, for longer than a commit may wait (R2).
func (s *Store) askOf(ctx context.Context, of *pool, op string, all ...question) error {
	bounded, cancel := context.WithTimeout(ctx, of.patience)
	defer cancel()
	for n := int32(0); ; n++ {
		got, err := s.askOn(bounded, of, all)
		if err == nil {
			return nil
		}
		if !got.stale || n > of.Config().MaxConns { // else the next connection, as in begin
			return s.failed(op, silent(ctx, err))
		}
	}
}

func (s *Store) askOn(ctx context.Context, of *pool, all []question) (answers, error) {
	c, err := of.Acquire(ctx)
	if err != nil {
		return answers{}, err
	}
	defer of.release(c)
	l := &link{conn: c.Conn(), ctx: ctx, caller: ctx, soon: of.soon(), mutate: s.mutate}
	return l.askSoon(all)
}

// answers is what came of some questions.
type answers struct {
	answered int               // questions
	rows     int               // of all
	tag      pgconn.CommandTag // of the last
	stale    bool              // the connection was closed already
}

// errNotBegun ends a transaction whose first question is not answered.
var errNotBegun = errors.New("the transaction did not begin in time")

// ask sends questions in one write, behind BEGIN if that is due, and takes in their rows.
func (l *link) ask(all ...question) (got answers, err error) {
	if l.fresh {
		l.fresh = false
		got, err = l.askSoon(append([]question{{l.begins, nil, nil}}, all...))
		l.stale = got.stale
		return got, err
	}
	if len(all) == 0 {
		return got, nil
	}
	var batch pgx.Batch
	for i := range all {
		batch.Queue(l.text(all[i].q), all[i].args...)
	}
	err = got.take(l.conn.SendBatch(l.ctx, &batch), all, func() {})
	return got, err
}

// askSoon is ask where the first answer must come within l.soon, and while the caller waits for it.
func (l *link) askSoon(all []question) (got answers, err error) {
	ctx, cancel := context.WithCancelCause(l.ctx)
	defer cancel(nil)
	timer := time.AfterFunc(l.soon, func() { cancel(errNotBegun) })
	gone := context.AfterFunc(l.caller, func() { cancel(context.Cause(l.caller)) })
	begun := func() { timer.Stop(); gone() }
	defer begun()
	results, err := l.sendFlushed(ctx, all)
	if err == nil {
		err = got.take(results, all, begun)
	}
	if err != nil && errors.Is(context.Cause(ctx), errNotBegun) {
		return got, silence(err)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == codeChanged || pg.Code == codeNoStatement) {
		_ = l.conn.Close(l.ctx) // what it has prepared is of no use any more: the next one has it anew
	}
	got.stale = err != nil && got.answered == 0 && got.rows == 0 && l.conn.IsClosed() && ctx.Err() == nil && !pgconn.Timeout(err)
	return got, err
}

// sendFlushed sends questions in one write, with a request to send the first answer off at once: else the database keeps it until
// it has all, and one that waits for a lock could not be told from one that stands still. (pgx's batches cannot say that.)
func (l *link) sendFlushed(ctx context.Context, all []question) (*flushed, error) {
	statements, err := l.prepared(ctx, all)
	if err != nil {
		return nil, err
	}
	values := make([]pgx.ExtendedQueryBuilder, len(all))
	for i := range all {
		if err = values[i].Build(l.conn.TypeMap(), statements[all[i].q], all[i].args); err != nil {
			return nil, err
		}
	}
	out := &flushed{conn: l.conn, pipeline: l.conn.PgConn().StartPipeline(ctx)}
	for i := range all {
		v := &values[i]
		if out.pipeline.SendQueryStatement(statements[all[i].q], v.ParamValues, v.ParamFormats, v.ResultFormats); i == 0 && len(all) > 1 {
			out.pipeline.SendFlushRequest()
		}
	}
	return out, out.pipeline.Sync()
}

// results are the answers to questions that were sent.
type results interface {
	Query() (pgx.Rows, error) // the next one
	Close() error
}

// flushed are results of sendFlushed.
type flushed struct {
	conn     *pgx.Conn
	pipeline *pgconn.Pipeline
}

func (f *flushed) Query() (pgx.Rows, error) {
	got, err := f.pipeline.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := got.(*pgconn.ResultReader)
	if !ok {
		return nil, errors.New("unexpected EOF: the connection ended between two answers")
	}
	return pgx.RowsFromResultReader(f.conn.TypeMap(), reader), nil
}

func (f *flushed) Close() error { return f.pipeline.Close() }

// take takes in all answers. begun is called after each.
func (a *answers) take(from results, all []question, begun func()) (err error) {
	for i := range all {
		if err = a.takeOne(from, all[i].row); err != nil {
			break
		}
		a.answered++
		begun()
	}
	return cmp.Or(err, from.Close())
}

func (a *answers) takeOne(from results, row func(pgx.Rows) error) error {
	rows, err := from.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if a.rows++; row == nil {
			continue
		}
		if err := row(rows); errors.Is(err, store.ErrEnough) {
			break
		} else if err != nil {
			return err
		}
	}
	rows.Close()
	a.tag = rows.CommandTag()
	return rows.Err()
}

// seqIs asks for the partition's newest commit in the snapshot; -1 when there is no such partition.
func seqIs(partition int, seq *int64, last *job.Token) question {
	*seq = -1
	return question{qSeq, []any{partition}, func(rows pgx.Rows) error { return rows.Scan(seq, (*int64)(last)) }}
}
