package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Mutants switch one part of the adapter off each.
var Mutants = map[string]func(*Store){
	"no fence check":          func(s *Store) { s.skip.fence = true },
	"no state guard":          func(s *Store) { s.skip.stateGuard = true },
	"half a set is written":   func(s *Store) { s.skip.wholeSet = true },
	"children are not told":   func(s *Store) { s.skip.children = true },
	"anybody plans":           func(s *Store) { s.skip.planner = true },
	"inbox entry not deleted": func(s *Store) { s.skip.consume = true },
	"old servers are let in":  func(s *Store) { s.skip.floor = true },
}

// PrepareAll prepares every statement of the package on a writing and on a reading connection.
func PrepareAll(ctx context.Context, s *Store) error {
	prepare := func(l *link) error {
		var errs []error
		for q := range texts {
			if _, err := l.prepared(query(q)); err != nil {
				errs = append(errs, job.Errorf(job.KindInternal, "", "%s", texts[q]).WithCause(err))
			}
		}
		return errors.Join(errs...)
	}
	return errors.Join(s.write(ctx, rankPeople, "prepare", prepare), s.read(ctx, "prepare", prepare))
}

// Statements is the text of every statement.
func Statements() []string { return texts }

// Plan is SQLite's plan of a statement.
func Plan(ctx context.Context, s *Store, text string) (plan string, err error) {
	err = s.read(ctx, "plan", func(l *link) error {
		rows, err := l.conn.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, make([]any, max(40, strings.Count(text, "?")))...)
		if err != nil {
			return err
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return errors.Join(err, rows.Close())
			}
			plan += detail + "\n"
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	return plan, err
}

// Block takes the writer and gives it back when the returned function is called.
func Block(s *Store) (release func()) {
	if err := s.gate.enter(background, rankOwnership); err != nil {
		panic(err)
	}
	return s.gate.leave
}

// Waiting is how many wait for the writer.
func Waiting(s *Store) (n int) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	for _, q := range s.gate.queues {
		n += len(q)
	}
	return n
}

// OnWriter runs f on the driver's connection that writes.
func OnWriter(s *Store, f func(conn any) error) error {
	defer Block(s)()
	if _, err := s.writer.prepared(qCommit); err != nil { // connects
		return err
	}
	return s.writer.conn.Raw(f)
}

// ListTexts is what a list of executions with a filter runs: the texts of its tables' rows and walks.
func ListTexts(f store.ExecutionFilter) (all []string) {
	for _, w := range waysOf(&f) {
		all = append(all, texts[w.rows])
		if !w.whole {
			all = append(all, texts[w.edge])
		}
	}
	return all
}

// SetWalk bounds the rows that a list looks at for one page.
func SetWalk(s *Store, rows int64) { s.walk = rows }

// HoldLookers takes every connection that people's reads run on.
func HoldLookers(s *Store) (release func()) {
	held := make([]*link, lookerCount)
	for i := range held {
		held[i] = <-s.lookers
	}
	return func() {
		for _, l := range held {
			s.lookers <- l
		}
	}
}
