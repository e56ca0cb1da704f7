package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
)

// SmallLots makes lots of whatever is granted, and few of them, so that the exam comes by all that becomes of them.
func SmallLots(s *Store) { s.lots.least, s.lots.most, s.lots.wait = 1, 2, 3 }

// lotMutants are those of lots.
var lotMutants = map[string]func(*Store){
	"who has left a lot is not noted": func(s *Store) {
		s.mutate = func(q query, text string) string {
			if q != qLotGone {
				return text
			}
			return strings.Replace(text, "gone = $4,", "gone = CASE WHEN $4::bytea IS NULL THEN l.gone ELSE l.gone END,", 1)
		}
	},
	"new members are looked for nowhere": func(s *Store) {
		s.mutate = func(q query, text string) string {
			if q != qLotNew {
				return text
			}
			return `SELECT $1::uuid[]`
		}
	},
	"who lies in a lot is asked nothing":     withoutLots(&qWhereabouts),
	"the newest of a job do not lie in lots": withoutLots(&qNewestLive),
	"members of a lot get no rows": func(s *Store) {
		s.mutate = func(q query, text string) string {
			if q != qLotOut {
				return text
			}
			return strings.Replace(text, "m.n = ANY($4::bigint[])", "m.n = ANY($4::bigint[]) AND m.n < 0", 1)
		}
	},
}

// withoutLots makes a statement see rows only.
func withoutLots(of *query) func(*Store) {
	return func(s *Store) {
		s.mutate = func(q query, text string) string {
			if q != *of {
				return text
			}
			return strings.ReplaceAll(text, memberLives, "false")
		}
	}
}

// Text is the one value of a query.
func Text(ctx context.Context, tb testing.TB, s *Store, text string) (value string) {
	tb.Helper()
	if err := s.people.QueryRow(ctx, text).Scan(&value); err != nil {
		tb.Fatal(err)
	}
	return value
}

// AmidLoad does something once between the first two ways that a load takes; times tells how often it did.
func AmidLoad(s *Store, what func()) (times func() int) { return onceBefore(s, &qVersions, what) }

// AmidDue is that of a page of due schedules with calendars.
func AmidDue(s *Store, what func()) (times func() int) { return onceBefore(s, &qNamedCalendars, what) }

// onceBefore does something once before a statement is asked for the first time on a connection.
func onceBefore(s *Store, of *query, what func()) (times func() int) {
	n := 0
	s.mutate = func(q query, text string) string {
		if q == *of && n == 0 {
			n++
			what()
		}
		return text
	}
	return func() int { return n }
}

// NewestOf is how many of the newest live executions of a job are looked at.
func NewestOf(ctx context.Context, s *Store, uid job.UID) (n int, err error) {
	err = s.read(ctx, "newest", func(r *link) error {
		n = 0
		return r.each(qNewestLive, []any{"default", "bench", make([]byte, 16), beyond, uid[:]}, func(pgx.Rows) error { n++; return nil })
	})
	return n, err
}

// NoLots gives each execution a row of its own.
func NoLots(s *Store) { s.lots.least = 1 << 30 }
