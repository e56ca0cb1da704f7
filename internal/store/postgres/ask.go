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
// five statements and a ROLLBACK take seven ways.
func (s *Store) ask(ctx context.Context, op string, all ...question) error {
	bounded, cancel := context.WithTimeout(ctx, s.engines.patience)
	defer cancel()
	for n := int32(0); ; n++ {
		c, err := s.engines.Acquire(bounded)
		if err != nil {
			return s.failed(op, silent(ctx, err))
		}
		l := &link{conn: c.Conn(), ctx: bounded}
		got, err := l.ask(all...)
		c.Release()
		if err == nil {
			return nil
		}
		if !got.stale || n > s.engines.Config().MaxConns { // else the next connection, as in begin
			return s.failed(op, silent(ctx, err))
		}
	}
}

// answers is what came of some questions.
type answers struct {
	answered int               // questions
	rows     int               // of all
	tag      pgconn.CommandTag // of the last
	stale    bool              // the connection was closed already
}

// errNotBegun ends a transaction whose BEGIN is not answered.
var errNotBegun = errors.New("the transaction did not begin in time")

// ask sends questions in one write, behind BEGIN if that is due, and takes in their rows.
func (l *link) ask(all ...question) (got answers, err error) {
	first := l.fresh
	if len(all) == 0 && !first {
		return got, nil
	}
	if first {
		all = append([]question{{qBegin, nil, nil}}, all...)
		l.fresh = false
	}
	ctx, begun := l.ctx, func() bool { return true }
	if first {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		timer := time.AfterFunc(beginMost, func() { cancel(errNotBegun) })
		defer timer.Stop()
		begun = timer.Stop
	}
	var batch pgx.Batch
	for i := range all {
		batch.Queue(texts[all[i].q], all[i].args...)
	}
	results := l.conn.SendBatch(ctx, &batch)
	for i := range all {
		if err = got.take(results, all[i].row); err != nil {
			break
		}
		got.answered++
		begun()
	}
	err = cmp.Or(err, results.Close())
	if err != nil && errors.Is(context.Cause(ctx), errNotBegun) {
		return got, silence(err)
	}
	got.stale = err != nil && got.answered == 0 && got.rows == 0 && l.conn.IsClosed() && l.ctx.Err() == nil && !pgconn.Timeout(err)
	l.stale = l.stale || first && got.stale
	return got, err
}

func (a *answers) take(results pgx.BatchResults, row func(pgx.Rows) error) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if a.rows++; row == nil {
			continue
		}
		if err := row(rows); errors.Is(err, store.ErrEnough) {
			return nil
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
