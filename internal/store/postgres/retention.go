package postgres

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qNamespaces   = statement(`SELECT namespace FROM jobs UNION SELECT namespace FROM deleted_jobs ORDER BY 1`)
	qRetention    = statement(`SELECT executions, logs FROM retention WHERE namespace = $1`)
	qRetentionPut = statement(`INSERT INTO retention (namespace, executions, logs) VALUES ($1, $2, $3)
		ON CONFLICT (namespace) DO UPDATE SET executions = excluded.executions, logs = excluded.logs`)

	// Who sweeps executions holds this lock alone, who asks something about one shares it: so no request goes to an
	// execution that vanishes under it, and two servers do not sweep the same rows.
	qSweepLock   = statement(`SELECT pg_advisory_xact_lock($1)`)
	qNoSweepLock = statement(`SELECT pg_advisory_xact_lock_shared($1)`)

	// Ids sort by planned instant, which hardly ever lies behind the end: the range needs no index of its own. It is read
	// as lists are, see orderedBy.
	qSweepLook = statement(`SELECT id, namespace, ended_at FROM history_executions WHERE (namespace, id) > ($1, $2)
		ORDER BY namespace, id LIMIT $3`)
	qSweepExecutions = statement(`DELETE FROM history_executions h WHERE id = ANY($1::uuid[]) AND id >= $2 AND id <= $3
		AND NOT EXISTS (SELECT 1 FROM inbox WHERE execution = h.id) RETURNING id`)
	qSweptAdd    = statement(`INSERT INTO swept_executions (id) SELECT unnest($1::uuid[]) ON CONFLICT DO NOTHING`)
	qSwept       = statement(`SELECT id FROM swept_executions ORDER BY id LIMIT $1`)
	qSweptShards = statement(`DELETE FROM history_shards s USING (SELECT execution, idx FROM history_shards
			WHERE execution = ANY($1::uuid[]) AND execution >= $2 AND execution <= $3 ORDER BY execution, idx LIMIT $4) AS old
		WHERE s.execution = old.execution AND s.idx = old.idx AND s.execution >= $2 AND s.execution <= $3`)
	qSweptEnd = statement(`DELETE FROM swept_executions WHERE id = ANY($1::uuid[])`)

	// The order of ids and of commits is the truth; instants come from a clock that may have been wrong for a while.
	// Of rows in a row: how many, the last, the last that is old, and the last that is later than the newest of all.
	qLookDecisions = statement(`SELECT count(*), coalesce(max(id), 0), coalesce(max(id) FILTER (WHERE at < $2), 0),
		coalesce(max(id) FILTER (WHERE at > (SELECT at FROM decisions WHERE id > 0 ORDER BY id DESC LIMIT 1)), 0)
		FROM (SELECT id, at FROM decisions WHERE id > $1 ORDER BY id LIMIT $3) AS looked`)
	qSweepDecisions = statement(`DELETE FROM decisions d USING (SELECT id, at FROM decisions WHERE id > 0 AND id <= $1 ORDER BY id LIMIT $2) AS old
		WHERE d.id = old.id AND d.at = old.at`)
	qLookJournal = statement(`SELECT count(*), coalesce(max(seq), 0), coalesce(max(seq) FILTER (WHERE at < $2), 0),
		coalesce(max(seq) FILTER (WHERE at > (SELECT at FROM journal WHERE partition = $4 ORDER BY seq DESC LIMIT 1)), 0)
		FROM (SELECT seq, at FROM journal WHERE partition = $4 AND seq > $1 ORDER BY seq LIMIT $3) AS looked`)
	qSweepJournal = statement(`DELETE FROM journal j USING (SELECT seq, at FROM journal WHERE partition = $3 AND seq <= $1
			AND seq < (SELECT max(seq) FROM journal WHERE partition = $3) ORDER BY seq LIMIT $2) AS old
		WHERE j.partition = $3 AND j.seq = old.seq AND j.at = old.at`)
)

// sweepLock is the advisory lock of those who sweep executions.
const sweepLock = 0x74616b74_73776570

// keepFromSweeps makes sweeps of executions wait until the transaction ends.
func keepFromSweeps(w *link) error {
	_, err := w.exec(qNoSweepLock, int64(sweepLock))
	return err
}

// Namespaces implements store.Sweeper.
func (s *Store) Namespaces(ctx context.Context) (all []string, err error) {
	err = s.look(ctx, "list namespaces", func(r *link) error {
		return r.each(qNamespaces, nil, func(rows pgx.Rows) error {
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
	if !store.Clean(namespace) { // nobody can have set it
		return store.Retention{Namespace: namespace}, nil
	}
	err := s.look(ctx, "read retention", func(r *link) error {
		_, err := r.one(qRetention, []any{namespace}, &executions, &logs)
		return err
	})
	return store.Retention{Namespace: namespace, Executions: ms(executions), Logs: ms(logs)}, err
}

// PutRetention implements store.Sweeper.
func (s *Store) PutRetention(ctx context.Context, r store.Retention) error {
	if !store.Clean(r.Namespace) {
		return job.Errorf(job.KindRejected, "data_refused", "the name of the namespace is no clean text")
	}
	return s.write(ctx, "put retention", func(w *link) error {
		_, err := w.exec(qRetentionPut, r.Namespace, r.Executions.Milliseconds(), r.Logs.Milliseconds())
		return err
	})
}

// SweepExecutions implements store.Sweeper. The row goes first, and a note of it stays until the shards are gone:
// so nobody sees an execution without some of its shards, and a sweep that was cut off is taken up again.
func (s *Store) SweepExecutions(ctx context.Context, namespace string, before job.Instant, limit int) (int, error) {
	left := limit
	err := s.write(ctx, "delete old executions", func(w *link) error {
		left = limit
		if _, err := w.exec(qSweepLock, int64(sweepLock)); err != nil {
			return err
		}
		for left > 0 {
			ids, err := idsOf(w, qSwept, left)
			if err != nil {
				return err
			}
			if len(ids) > 0 {
				if err := sweptShards(w, ids, &left); err != nil {
					return err
				}
				continue
			}
			if ids, err = sweepSome(w, namespace, before, max(left/2, 1)); err != nil || len(ids) == 0 { // each has a shard at least
				return err
			}
			for _, q := range []query{qSweptAdd, qMatchedDrop} {
				if _, err := w.exec(q, ids); err != nil {
					return err
				}
			}
			left -= len(ids)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return limit - left, nil
}

// sweepSome deletes the oldest executions that may go, at most limit.
func sweepSome(w *link, namespace string, before job.Instant, limit int) (gone [][]byte, err error) {
	bound := job.RequestedID(before, [10]byte{}) // no id of that millisecond is smaller
	after, more := make([]byte, 16), true
	for more && len(gone) == 0 {
		var old [][]byte
		looked := 0
		if err := w.each(qSweepLook, []any{namespace, after, limit}, func(rows pgx.Rows) error {
			var id [16]byte
			var of string
			var ended int64
			if err := rows.Scan(&id, &of, &ended); err != nil {
				return err
			}
			if of != namespace || bytes.Compare(id[:], bound[:]) >= 0 {
				return store.ErrEnough
			}
			looked, after = looked+1, id[:]
			if ended < int64(before) {
				old = append(old, id[:])
			}
			return nil
		}); err != nil {
			return nil, err
		}
		more = looked == limit
		if len(old) == 0 {
			continue
		}
		if gone, err = idsOf(w, qSweepExecutions, old, old[0], old[len(old)-1]); err != nil {
			return nil, err
		}
	}
	return gone, nil
}

func idsOf(w *link, q query, args ...any) (ids [][]byte, err error) {
	err = w.each(q, args, func(rows pgx.Rows) error {
		var id [16]byte
		err := rows.Scan(&id)
		ids = append(ids, id[:])
		return err
	})
	return ids, err
}

// sweptShards deletes shards of executions that are gone; ids are in order.
func sweptShards(w *link, ids [][]byte, left *int) error {
	n, err := w.exec(qSweptShards, ids, ids[0], ids[len(ids)-1], *left)
	if err != nil {
		return err
	}
	if *left -= int(n); *left > 0 {
		_, err = w.exec(qSweptEnd, ids)
	}
	return err
}

// SweepDecisions implements store.Sweeper.
func (s *Store) SweepDecisions(ctx context.Context, before job.Instant, limit int) (int, error) {
	return s.sweepRows(ctx, row{look: qLookDecisions, sweep: qSweepDecisions, old: s.swept.of(-1)}, before, limit)
}

// SweepJournal implements store.Sweeper.
func (s *Store) SweepJournal(ctx context.Context, partition int, before job.Instant, limit int) (int, error) {
	return s.sweepRows(ctx, row{look: qLookJournal, sweep: qSweepJournal, old: s.swept.of(partition), more: []any{partition}}, before, limit)
}

// sweptUpTo knows, of each partition's journal and (-1) of the decisions, the last number that was found old: what is old
// stays so, and all below it is.
type sweptUpTo struct {
	mu  sync.Mutex
	all map[int]*mark
}

// mark is the last number that was found older than an instant.
type mark struct{ upTo, before atomic.Int64 }

func (o *sweptUpTo) of(partition int) *mark {
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
		err := s.write(ctx, "delete old rows", func(w *link) (err error) {
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
		err := s.look(ctx, "look for old rows", func(l *link) error {
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
