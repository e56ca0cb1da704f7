package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/store"
)

// A server with 32 partitions renews 32 leases each 1.5 s. Where a commit takes 90 ms they would take more than there is time
// for, one by one: those that come while one is on its way go together with the next. Each counts from its own call (R8).
type renewals struct {
	mu      sync.Mutex
	waiting []*renewal
	workers int       // that are at it
	begun   time.Time // when the newest took what waited
	closed  bool
	done    sync.WaitGroup
}

type renewal struct {
	store.Fence
	beat int64
	err  error
	over chan struct{}
}

var qRenew = statement(`UPDATE partition_beats b SET beat = b.beat + 1
	FROM unnest($1::integer[], $2::text[], $3::bigint[]) u (id, owner, epoch) JOIN partitions p ON p.id = u.id AND p.owner = u.owner AND p.owner <> '' AND p.epoch = u.epoch
	WHERE b.id = u.id RETURNING u.id, u.owner, u.epoch, b.beat`)

// RenewPartition implements store.Partitions.
func (s *Store) RenewPartition(ctx context.Context, f store.Fence) (int64, error) {
	r := &renewal{Fence: f, over: make(chan struct{})}
	slow := s.keeper.patience / 8
	if !s.renewals.join(r, slow, func() { s.renewWaiting(context.WithoutCancel(ctx)) }) {
		return 0, errorf("renew partition", "store_closed", "the database is closed")
	}
	select {
	case <-r.over:
		return r.beat, r.err
	case <-ctx.Done():
		return 0, s.failed("renew partition", context.Cause(ctx))
	}
}

// join adds a renewal, and starts work on what waits unless it goes on already; false when the store is closed. One that has
// been slow may hang on a connection that is dead: a second goes beside it.
func (r *renewals) join(one *renewal, slow time.Duration, work func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.waiting = append(r.waiting, one)
	if r.workers == 0 || r.workers == 1 && time.Since(r.begun) > slow {
		r.workers++
		r.begun = time.Now()
		r.done.Go(work)
	}
	return true
}

// take gives what waits; nil ends the work.
func (r *renewals) take() []*renewal {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.waiting
	r.waiting, r.begun = nil, time.Now()
	if len(all) == 0 {
		r.workers--
	}
	return all
}

// close waits for those on their way.
func (r *renewals) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.done.Wait()
}

func (s *Store) renewWaiting(ctx context.Context) {
	for all := s.renewals.take(); len(all) > 0; all = s.renewals.take() {
		err := s.renew(ctx, all)
		for _, r := range all {
			if r.err = err; err == nil && r.beat == 0 {
				r.err = fenced("fence", "partition %d is not owned by %q under epoch %d any more", r.Partition, r.Owner, r.Epoch)
			}
			close(r.over)
		}
	}
}

func (s *Store) renew(ctx context.Context, all []*renewal) error {
	ctx, cancel := context.WithTimeout(ctx, s.keeper.patience)
	defer cancel()
	args := []any{column(all, func(r **renewal) int32 { return int32((*r).Partition) }), //nolint:gosec // at most 4096
		column(all, func(r **renewal) string { return (*r).Owner }), column(all, func(r **renewal) int64 { return int64((*r).Epoch) })}
	return s.writeInFew(ctx, s.keeper, "renew partition", func(w *link) error {
		for _, r := range all {
			r.beat = 0 // a try before, which lost a race, may have told of some
		}
		return w.each(qRenew, args, func(rows pgx.Rows) error {
			var f store.Fence
			var beat int64
			err := rows.Scan(&f.Partition, &f.Owner, (*int64)(&f.Epoch), &beat)
			for _, r := range all {
				if r.Partition == f.Partition && r.Owner == f.Owner && r.Epoch == f.Epoch {
					r.beat = beat
				}
			}
			return err
		})
	})
}
