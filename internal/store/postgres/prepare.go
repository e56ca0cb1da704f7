package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

const statementsOf = "takt: statements" // of a connection

// prepared describes the statements of questions, which a connection is told of once: all that are new to it in one way to the database.
func (l *link) prepared(ctx context.Context, all []question) (map[query]*pgconn.StatementDescription, error) {
	conn := l.conn.PgConn()
	known, _ := conn.CustomData()[statementsOf].(map[query]*pgconn.StatementDescription)
	if known == nil {
		known = map[query]*pgconn.StatementDescription{}
		conn.CustomData()[statementsOf] = known
	}
	fresh := map[query]bool{}
	var order []query
	for i := range all {
		if q := all[i].q; known[q] == nil && !fresh[q] {
			fresh[q] = true
			order = append(order, q)
		}
	}
	if len(order) == 0 {
		return known, nil
	}
	p := conn.StartPipeline(ctx)
	for _, q := range order {
		p.SendPrepare(preparedName(q), l.text(q), nil)
	}
	err := p.Sync()
	for _, q := range order {
		if err == nil {
			known[q], err = l.described(p, q)
		}
	}
	if err != nil {
		_ = p.Close() // says the same
		for _, q := range order {
			if known[q] == nil {
				delete(known, q)
			}
		}
		return nil, err
	}
	return known, p.Close()
}

func preparedName(q query) string { return "takt_" + strconv.Itoa(int(q)) }

func (l *link) described(p *pgconn.Pipeline, q query) (*pgconn.StatementDescription, error) {
	got, err := p.GetResults()
	if err != nil {
		return nil, err
	}
	if d, is := got.(*pgconn.StatementDescription); is {
		d.Name, d.SQL = preparedName(q), l.text(q)
		return d, nil
	}
	return nil, errors.New("unexpected EOF: the connection ended between two answers")
}
