package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
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
	// Of rows in a row: how many, the last, the last that is old, and the last that is later than the newest of all.
	qLookDecisions = statement(`SELECT count(*), ifnull(max(id), 0), ifnull(max(id) FILTER (WHERE at < ?2), 0),
		ifnull(max(id) FILTER (WHERE at > (SELECT at FROM decisions WHERE id > 0 ORDER BY id DESC LIMIT 1)), 0)
		FROM (SELECT id, at FROM decisions WHERE id > ?1 ORDER BY id LIMIT ?3)`)
	qSweepDecisions = statement(`DELETE FROM decisions WHERE id IN
		(SELECT id FROM decisions WHERE id > 0 AND id <= ?1 ORDER BY id LIMIT ?2)`)
	qLookJournal = statement(`SELECT count(*), ifnull(max(seq), 0), ifnull(max(seq) FILTER (WHERE at < ?2), 0),
		ifnull(max(seq) FILTER (WHERE at > (SELECT at FROM journal WHERE partition = ?4 ORDER BY seq DESC LIMIT 1)), 0)
		FROM (SELECT seq, at FROM journal WHERE partition = ?4 AND seq > ?1 ORDER BY seq LIMIT ?3)`)
	qSweepJournal = statement(`DELETE FROM journal WHERE partition = ?3 AND seq IN
		(SELECT seq FROM journal WHERE partition = ?3 AND seq <= ?1
		AND seq < (SELECT max(seq) FROM journal WHERE partition = ?3) ORDER BY seq LIMIT ?2)`)
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
			if _, err := w.exec(qMatchedDrop, id); err != nil {
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
	return s.sweepRows(ctx, row{look: qLookDecisions, sweep: qSweepDecisions, old: s.old.of(-1)}, before, limit)
}

// SweepJournal implements store.Sweeper.
func (s *Store) SweepJournal(ctx context.Context, partition int, before job.Instant, limit int) (int, error) {
	return s.sweepRows(ctx, row{look: qLookJournal, sweep: qSweepJournal, old: s.old.of(partition), more: []any{int64(partition)}}, before, limit)
}

// oldest knows, of each partition's journal and (-1) of the decisions, the last number that was found old: what is old
// stays so, and all below it is.
type oldest struct {
	mu  sync.Mutex
	all map[int]*mark
}

// mark is the last number that was found older than an instant.
type mark struct{ upTo, before atomic.Int64 }

func (o *oldest) of(partition int) *mark {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[int]*mark{}
	}
	if o.all[partition] == nil {
		o.all[partition] = new(mark)
	}
	return o.all[partition]
}

// row is how rows with rising numbers are swept.
type row struct {
	look, sweep query
	old         *mark
	more        []any // arguments
}

func (s *Store) sweepRows(ctx context.Context, r row, before job.Instant, limit int) (n int, err error) {
	sweep := func() error {
		if r.old.upTo.Load() == 0 {
			return nil
		}
		deleted := int64(0)
		err := s.write(ctx, rankSweep, "delete old rows", func(w *link) (err error) {
			deleted, err = w.exec(r.sweep, append([]any{r.old.upTo.Load(), int64(limit - n)}, r.more...)...)
			return err
		})
		if err == nil {
			n += int(deleted)
		}
		return err
	}
	if int64(before) < r.old.before.Swap(int64(before)) {
		r.old.upTo.Store(0) // a clock went back: what was old may not be
	}
	if err := sweep(); err != nil || n == limit {
		return n, err
	}
	known := r.old.upTo.Load()
	if err := s.lookForOld(ctx, r, before, limit); err != nil || r.old.upTo.Load() == known {
		return n, err
	}
	return n, sweep()
}

// lookForOld looks at the first rows, and goes on as long as they end with one that is later than the newest: a clock
// that was ahead made it, so what it says is no reason to stop.
func (s *Store) lookForOld(ctx context.Context, r row, before job.Instant, limit int) error {
	for after, more := int64(0), true; more && ctx.Err() == nil; {
		var count, last, old, ahead int64
		err := s.read(ctx, "look for old rows", func(l *link) error {
			_, err := l.one(r.look, append([]any{after, int64(before), int64(limit)}, r.more...), &count, &last, &old, &ahead)
			return err
		})
		if err != nil {
			return err
		}
		r.old.upTo.Store(max(r.old.upTo.Load(), old))
		after, more = last, count == int64(limit) && ahead == last
	}
	return context.Cause(ctx)
}
