package postgres

import (
	"context"
	"strings"
	"testing"
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
	"members of a lot get no rows": func(s *Store) {
		s.mutate = func(q query, text string) string {
			if q != qLotOut {
				return text
			}
			return strings.Replace(text, "m.n = ANY($4::bigint[])", "m.n = ANY($4::bigint[]) AND m.n < 0", 1)
		}
	},
}

// Text is the one value of a query.
func Text(ctx context.Context, tb testing.TB, s *Store, text string) (value string) {
	tb.Helper()
	if err := s.people.QueryRow(ctx, text).Scan(&value); err != nil {
		tb.Fatal(err)
	}
	return value
}

// NoLots gives each execution a row of its own.
func NoLots(s *Store) { s.lots.least = 1 << 30 }
