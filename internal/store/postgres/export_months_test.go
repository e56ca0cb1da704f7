package postgres

import (
	"context"

	"github.com/taktsched/takt/internal/job"
)

// MonthNames are the months in which instants lie.
func MonthNames(instants ...job.Instant) (all []string) {
	for _, at := range instants {
		all = append(all, monthOf(at).name)
	}
	return all
}

// MonthBounds are the bounds of an instant's month in a table.
func MonthBounds(table string, at job.Instant) (from, to string) { return monthOf(at).bounds(table) }

// DropMonthsBefore drops the months of a table that end before an instant; returns their names.
func DropMonthsBefore(ctx context.Context, s *Store, table string, before job.Instant) (all []string, err error) {
	months, err := s.monthsOf(ctx, table, before)
	for _, m := range months {
		if err := s.dropMonth(ctx, table, m); err != nil {
			return all, err
		}
		all = append(all, m.name)
	}
	return all, err
}

// MakeAhead makes the months of an instant.
func MakeAhead(ctx context.Context, s *Store, at job.Instant) { s.makeAhead(ctx, at) }
