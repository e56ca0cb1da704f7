package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/store"
)

// ListTexts is what a list of executions with a filter runs: the texts of its tables' rows and walks.
func ListTexts(f store.ExecutionFilter) (all []string) {
	for _, w := range waysOf(&f) {
		if w.whole {
			all = append(all, texts[w.rows])
		} else {
			all = append(all, texts[w.some], texts[w.edge])
		}
	}
	return all
}

// OtherListTexts are the other lists of people's.
func OtherListTexts() []string {
	return []string{texts[qJobs], texts[qDecisions], texts[qDecisionsOfJob], texts[qJournalRows], texts[qShardPageLive], texts[qShardPageHistory],
		texts[qLogChunks], texts[qLogChunksShard], texts[qRevisions]}
}

// SetWalk bounds the rows that a list looks at for one page.
func SetWalk(s *Store, rows int) { s.walk = rows }

// Plan is PostgreSQL's plan of a statement on a connection of lists, with arguments as literals; analyze runs it, too.
func Plan(ctx context.Context, s *Store, text string, analyze bool, args ...string) (plan string, err error) {
	err = s.look(ctx, "plan", func(l *link) error {
		if _, err := l.conn.Exec(ctx, `PREPARE planned AS `+text, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		how := ``
		if analyze {
			how = `(ANALYZE, BUFFERS, SUMMARY)`
		}
		call := ``
		if len(args) > 0 {
			call = `(` + strings.Join(args, ", ") + `)`
		}
		rows, err := l.conn.Query(ctx, fmt.Sprintf(`EXPLAIN %s EXECUTE planned%s`, how, call), pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		_, dropped := l.conn.Exec(ctx, `DEALLOCATE planned`)
		return errors.Join(err, dropped)
	})
	return plan, err
}

// HoldLists takes every connection that people's reads run on.
func HoldLists(ctx context.Context, s *Store) (release func(), err error) {
	var held []func()
	release = func() {
		for _, f := range held {
			f()
		}
	}
	for range s.lists.Config().MaxConns {
		c, err := s.lists.Acquire(ctx)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, c.Release)
	}
	return release, nil
}
