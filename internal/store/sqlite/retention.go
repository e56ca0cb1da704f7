package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qNamespaces   = statement(`SELECT namespace FROM jobs UNION SELECT namespace FROM deleted_jobs ORDER BY 1`)
	qRetention    = statement(`SELECT executions, logs FROM retention WHERE namespace = ?`)
	qRetentionPut = statement(`INSERT INTO retention (namespace, executions, logs) VALUES (?, ?, ?)
		ON CONFLICT (namespace) DO UPDATE SET executions = excluded.executions, logs = excluded.logs`)

	// Ids sort by planned instant, which hardly ever lies behind the end: the range needs no index of its own.
	qSweepNext = statement(`SELECT id FROM history_executions WHERE namespace = ?1 AND id < ?2 AND ended_at < ?3
		AND NOT EXISTS (SELECT 1 FROM inbox WHERE execution = history_executions.id) ORDER BY id LIMIT 1`)
	qSweepExecution = statement(`DELETE FROM history_executions WHERE id = ?`)
	qSweptAdd       = statement(`INSERT INTO swept_executions (id) VALUES (?)`)
	qSwept          = statement(`SELECT id FROM swept_executions LIMIT 1`)
	qSweptShards    = statement(`DELETE FROM history_shards WHERE execution = ?1
		AND idx IN (SELECT idx FROM history_shards WHERE execution = ?1 ORDER BY idx LIMIT ?2)`)
	qSweptEnd = statement(`DELETE FROM swept_executions WHERE id = ?`)

	// The order of ids and of commits is the truth; instants come from a clock that may have been wrong for a while.
	qSweepDecisions = statement(`DELETE FROM decisions WHERE id > 0 AND id <=
		(SELECT max(id) FROM (SELECT id, at FROM decisions WHERE id > 0 ORDER BY id LIMIT ?2) WHERE at < ?1)`)
	qSweepJournal = statement(`DELETE FROM journal WHERE partition = ?1 AND seq <=
		(SELECT max(seq) FROM (SELECT seq, at FROM journal WHERE partition = ?1 ORDER BY seq LIMIT ?3) WHERE at < ?2)
		AND seq < (SELECT max(seq) FROM journal WHERE partition = ?1)`)
)

// Namespaces implements store.Sweeper.
func (s *Store) Namespaces(ctx context.Context) (all []string, err error) {
	err = s.read(ctx, "list namespaces", func(r *link) error {
		return r.each(qNamespaces, nil, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			all = append(all, name)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Retention implements store.Sweeper.
func (s *Store) Retention(ctx context.Context, namespace string) (store.Retention, error) {
	var executions, logs int64
	err := s.read(ctx, "read retention", func(r *link) error {
		_, err := r.one(qRetention, []any{namespace}, &executions, &logs)
		return err
	})
	return store.Retention{Namespace: namespace, Executions: time.Duration(executions) * time.Millisecond, Logs: time.Duration(logs) * time.Millisecond}, err
}

// PutRetention implements store.Sweeper.
func (s *Store) PutRetention(ctx context.Context, r store.Retention) error {
	if !store.Clean(r.Namespace) {
		return job.Errorf(job.KindRejected, "data_refused", "the name of the namespace is no clean text")
	}
	return s.write(ctx, rankPeople, "put retention", func(w *link) error {
		_, err := w.exec(qRetentionPut, r.Namespace, r.Executions.Milliseconds(), r.Logs.Milliseconds())
		return err
	})
}

// SweepExecutions implements store.Sweeper. The row goes first, and a note of it stays until the shards are gone:
// so nobody sees an execution without some of its shards, and a sweep that was cut off is taken up again.
func (s *Store) SweepExecutions(ctx context.Context, namespace string, before job.Instant, limit int) (int, error) {
	bound := job.RequestedID(before, [10]byte{}) // no id of that millisecond is smaller
	left := int64(limit)
	err := s.write(ctx, rankSweep, "delete old executions", func(w *link) error {
		for left > 0 {
			var id []byte
			found, err := w.one(qSwept, nil, &id)
			if err != nil {
				return err
			}
			if found {
				if err := sweptShards(w, id, &left); err != nil {
					return err
				}
				continue
			}
			if found, err = w.one(qSweepNext, []any{namespace, bound[:], int64(before)}, &id); err != nil || !found {
				return err
			}
			if _, err := w.exec(qSweepExecution, id); err != nil {
				return err
			}
			if _, err := w.exec(qSweptAdd, id); err != nil {
				return err
			}
			left--
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return limit - int(left), nil
}

func sweptShards(w *link, id []byte, left *int64) error {
	n, err := w.exec(qSweptShards, id, *left)
	if err != nil {
		return err
	}
	if *left -= n; *left > 0 {
		_, err = w.exec(qSweptEnd, id)
	}
	return err
}

// SweepDecisions implements store.Sweeper.
func (s *Store) SweepDecisions(ctx context.Context, before job.Instant, limit int) (int, error) {
	return s.sweepRows(ctx, "delete old decisions", qSweepDecisions, int64(before), int64(limit))
}

// SweepJournal implements store.Sweeper.
func (s *Store) SweepJournal(ctx context.Context, partition int, before job.Instant, limit int) (int, error) {
	return s.sweepRows(ctx, "delete old journal rows", qSweepJournal, int64(partition), int64(before), int64(limit))
}

func (s *Store) sweepRows(ctx context.Context, op string, q query, args ...any) (int, error) {
	n := int64(0)
	err := s.write(ctx, rankSweep, op, func(w *link) (err error) {
		n, err = w.exec(q, args...)
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(n), nil
}
