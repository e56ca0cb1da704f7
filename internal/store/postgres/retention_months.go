package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var _ store.Months = (*Store)(nil)

// kind is what is kept in tables of the same months, of which the first says whether a month is over.
type kind struct {
	tables []string // in the order in which they go
	before job.Instant
	needed func(ctx context.Context, m month, before job.Instant) (bool, error)
}

// SweepMonths implements store.Months.
func (s *Store) SweepMonths(ctx context.Context, o store.Over) (dropped int, err error) {
	all := slices.Concat(monthsOfExecutions, monthsOfLogs, monthsOfCommits)
	for ahead := range 3 { // counted from the first of the month: a month after the 31st may be the next but one
		at := time.UnixMilli(monthOf(o.Now).from).UTC().AddDate(0, ahead, 0)
		if err := s.ensureMonths(ctx, all, job.InstantOf(at)); err != nil {
			return 0, err
		}
	}
	for _, k := range []kind{
		{monthsOfExecutions, o.Executions, s.executionsNeeded},
		{[]string{"log_chunks", "logs"}, o.Logs, s.logsNeeded},
		{[]string{"decisions"}, o.Decisions, func(context.Context, month, job.Instant) (bool, error) { return false, nil }},
		{[]string{"journal"}, o.Journal, s.journalNeeded},
	} {
		n, err := s.dropMonths(ctx, k)
		if dropped += n; err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// dropMonths drops the months of one kind. What another session is dropping, or did half-way, is taken up.
func (s *Store) dropMonths(ctx context.Context, k kind) (dropped int, err error) {
	for _, table := range k.tables {
		months, err := s.monthsOf(ctx, table, k.before)
		if err != nil {
			return dropped, err
		}
		for _, m := range months {
			if needed, err := k.needed(ctx, m, k.before); err != nil || needed {
				if err != nil {
					return dropped, err
				}
				continue
			}
			if err := s.dropMonth(ctx, table, m); err != nil {
				return dropped, err
			}
			if table == monthsOfExecutions[0] {
				if err := s.forgetMatched(ctx, m); err != nil {
					return dropped, err
				}
			}
			dropped++
		}
	}
	return dropped, nil
}

// forgetMatched deletes what is kept of the parents of a month's executions. Cut off, it leaves rows that nobody finds.
func (s *Store) forgetMatched(ctx context.Context, m month) error {
	return s.write(ctx, "forget parents", func(w *link) error {
		_, err := w.exec(qMatchedDropMonth, firstID(job.Instant(m.from)), firstID(job.Instant(m.to)))
		return err
	})
}

// liveOfMonth finds what is under way of a month; of a lot, also what may be.
const liveOfMonth = `SELECT 1 FROM executions WHERE id >= $1::uuid AND id < $2::uuid
	UNION ALL SELECT 1 FROM lots WHERE last >= $1::uuid AND first < $2::uuid`

// executionsNeeded tells whether an execution of a month ended later, or will end, or a request waits for one. A request
// that comes between this and the drop finds nothing, as one a moment later would.
func (s *Store) executionsNeeded(ctx context.Context, m month, before job.Instant) (bool, error) {
	if live, err := s.exists(ctx, `SELECT 1 FROM inbox WHERE execution >= $1::uuid AND execution < $2::uuid
		UNION ALL `+liveOfMonth, firstID(job.Instant(m.from)), firstID(job.Instant(m.to))); live || err != nil {
		return live, err
	}
	table := "history_executions_" + m.name
	if there, err := s.exists(ctx, `SELECT 1 WHERE to_regclass($1) IS NOT NULL`, table); !there || err != nil {
		return false, err // its shards are left of a drop that was cut off
	}
	piece := (6 * time.Hour).Milliseconds()
	for at := m.from; at < m.to; at += piece { // no index knows the ends, and lists must be short
		if late, err := s.exists(ctx, `SELECT 1 FROM `+quote(table)+` WHERE id >= $1::uuid AND id < $2::uuid AND ended_at >= $3`,
			firstID(job.Instant(at)), firstID(job.Instant(at+piece)), int64(before)); late || err != nil {
			return late, err
		}
	}
	return false, nil
}

// logsNeeded tells whether a line came later to a log of a month, or an execution of it still runs.
func (s *Store) logsNeeded(ctx context.Context, m month, before job.Instant) (bool, error) {
	if live, err := s.exists(ctx, liveOfMonth, firstID(job.Instant(m.from)), firstID(job.Instant(m.to))); live || err != nil {
		return live, err
	}
	return s.exists(ctx, `SELECT 1 FROM logs WHERE execution >= $1::uuid AND execution < $2::uuid AND last_at >= $3`,
		firstID(job.Instant(m.from)), firstID(job.Instant(m.to)), int64(before))
}

// journalNeeded tells whether the newest row of a partition is of a month.
func (s *Store) journalNeeded(ctx context.Context, m month, _ job.Instant) (bool, error) {
	return s.exists(ctx, `SELECT 1 FROM partitions p JOIN journal j ON j.partition = p.id AND j.seq = p.seq WHERE j.at >= $1 AND j.at < $2`, m.from, m.to)
}

// exists tells whether a query has a row. Its text is of a month, so that it is not one of the statements.
func (s *Store) exists(ctx context.Context, text string, args ...any) (found bool, err error) {
	err = s.look(ctx, "look at a month", func(r *link) error {
		if err := r.begin(); err != nil {
			return err
		}
		err := r.conn.QueryRow(r.ctx, fmt.Sprintf(`SELECT EXISTS (%s)`, text), append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&found)
		return err
	})
	return found, err
}
