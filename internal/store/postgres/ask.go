package postgres

import (
	"context"
	"errors"

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
		rows, err := l.ask(all)
		stale := err != nil && rows == 0 && c.Conn().IsClosed() && bounded.Err() == nil
		c.Release()
		if !stale || n > s.engines.Config().MaxConns || pgconn.Timeout(err) { // else the next connection, as in begin
			if err != nil {
				err = s.failed(op, silent(ctx, err))
			}
			return err
		}
	}
}

// ask sends the questions in one write and takes in their rows; rows is how many there were.
func (l *link) ask(all []question) (rows int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	var batch pgx.Batch
	for i := range all {
		batch.Queue(texts[all[i].q], all[i].args...)
	}
	results := l.conn.SendBatch(l.ctx, &batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	for i := range all {
		n, err := answer(results, all[i].row)
		if rows += n; err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func answer(results pgx.BatchResults, row func(pgx.Rows) error) (n int, err error) {
	rows, err := results.Query()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
		if err := row(rows); errors.Is(err, store.ErrEnough) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// seqIs asks for the partition's newest commit in the snapshot; -1 when there is no such partition.
func seqIs(partition int, seq *int64, last *job.Token) question {
	*seq = -1
	return question{qSeq, []any{partition}, func(rows pgx.Rows) error { return rows.Scan(seq, (*int64)(last)) }}
}
