package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// The range of ids keeps the look at executions small when the name has another life: those of the dead one were planned
// before it was deleted, by whatever server's clock.
var (
	qBuried  = statement(`SELECT uid, namespace, name, deleted_at FROM deleted_jobs WHERE deleted_at < $1 AND uid > $2 ORDER BY uid LIMIT $3`)
	qWaiting = statement(`SELECT job FROM inbox WHERE partition = $1 AND rank = $2 ORDER BY id LIMIT $3`)
	qMourned = statement(`SELECT 1 WHERE EXISTS (SELECT 1 FROM cursors WHERE job = $1)
		OR EXISTS (SELECT 1 FROM executions WHERE namespace = $2 AND job = $3 AND id < $4 AND job_uid = $1)
		OR EXISTS (SELECT 1 FROM lots WHERE job_uid = $1)
		OR EXISTS (SELECT 1 FROM history_executions WHERE namespace = $2 AND job = $3 AND id < $4 AND job_uid = $1)`)
	qForgetRevisions = statement(`DELETE FROM job_revisions WHERE uid = $1 AND revision = ANY(ARRAY
		(SELECT revision FROM job_revisions WHERE uid = $1 ORDER BY revision LIMIT $2))`)
	qForgetJob   = statement(`DELETE FROM deleted_jobs WHERE uid = $1`)
	qSweepPoison = statement(`DELETE FROM poison WHERE id = ANY(ARRAY
		(SELECT id FROM poison WHERE at < $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED))`)
)

// Who has ended stays so; what tells of a cancel that came too late may still lie in the inbox.
var (
	qBackfillsEnded = statement(`SELECT ` + backfillColumns + ` FROM backfills b JOIN backfill_progress p ON p.id = b.id
		WHERE (b.namespace, b.id) > ($1, $2::uuid) AND b.namespace <= $1 AND b.id < $3::uuid AND p.state NOT IN ('running', 'cancelling')
		AND NOT EXISTS (SELECT 1 FROM inbox WHERE execution = b.id) ORDER BY b.namespace, b.id LIMIT $4`)
	qForgetBackfill = statement(`DELETE FROM backfills WHERE id = $1`)
	qForgetProgress = statement(`DELETE FROM backfill_progress WHERE id = $1`)
)

const (
	endedAtOnce  = 100  // backfills of one read
	buriedAtOnce = 1000 // deleted jobs of one read
	waitingMost  = 1000 // entries of one partition and rank that a sweep looks at; behind more it comes another time
)

type buried struct {
	uid             job.UID
	namespace, name string
	at              job.Instant
}

var _ store.JobSweeper = (*Store)(nil)

// SweepJobs implements store.JobSweeper.
func (s *Store) SweepJobs(ctx context.Context, before job.Instant, limit int) (int, error) {
	waiting, all, err := s.waiting(ctx)
	if err != nil || !all {
		return 0, err
	}
	left := int64(limit)
	for after, more := (job.UID{}), true; more && left > 0; {
		var old []buried
		if err := s.look(ctx, "look for deleted jobs", func(r *link) error {
			return r.each(qBuried, []any{int64(before), after[:], buriedAtOnce}, func(rows pgx.Rows) error {
				var b buried
				err := rows.Scan((*[16]byte)(&b.uid), &b.namespace, &b.name, (*int64)(&b.at))
				old = append(old, b)
				return err
			})
		}); err != nil {
			return limit - int(left), err
		}
		more = len(old) == buriedAtOnce
		for i := 0; i < len(old) && left > 0; i++ {
			if after = old[i].uid; waiting[after] {
				continue
			}
			if err := s.forgetJob(ctx, old[i], &left); err != nil {
				return limit - int(left), err
			}
		}
	}
	return limit - int(left), nil
}

// waiting are the jobs that inbox entries are about, in one snapshot. No entry about a job is made after its deletion, so
// the set may only get smaller for those. all is false when there are too many entries.
func (s *Store) waiting(ctx context.Context) (jobs map[job.UID]bool, all bool, err error) {
	jobs, all = map[job.UID]bool{}, true
	err = s.look(ctx, "look at the inbox", func(r *link) error {
		var partitions int
		if _, err := r.one(qPartitionCount, nil, &partitions); err != nil {
			return err
		}
		for p := range partitions {
			for _, rank := range []int64{entryFirst, entryRest} {
				n := 0
				if err := r.each(qWaiting, []any{p, rank, waitingMost}, func(rows pgx.Rows) error {
					var uid *[16]byte
					err := rows.Scan(&uid)
					if n++; uid != nil {
						jobs[*uid] = true
					}
					return err
				}); err != nil {
					return err
				}
				all = all && n < waitingMost
			}
		}
		return nil
	})
	return jobs, all, err
}

// forgetJob deletes the revisions of a job that nothing refers to, and itself with the last of them.
func (s *Store) forgetJob(ctx context.Context, b buried, left *int64) error {
	bound := job.RequestedID(b.at.Add(24*time.Hour), [10]byte{})
	args := []any{b.uid[:], b.namespace, b.name, bound[:]}
	var one int
	mourned := false
	if err := s.look(ctx, "look at a deleted job", func(r *link) (err error) {
		mourned, err = r.one(qMourned, args, &one)
		return err
	}); err != nil || mourned {
		return err
	}
	had := *left
	return s.write(ctx, "delete old revisions", func(w *link) error {
		*left = had
		if again, err := w.one(qMourned, args, &one); err != nil || again {
			return err
		}
		n, err := w.exec(qForgetRevisions, b.uid[:], *left)
		if *left -= n; err != nil || *left == 0 {
			return err
		}
		*left--
		_, err = w.exec(qForgetJob, b.uid[:])
		return err
	})
}

// SweepPoison implements store.JobSweeper.
func (s *Store) SweepPoison(ctx context.Context, before job.Instant, limit int) (int, error) {
	n := int64(0)
	err := s.write(ctx, "delete old records of what was set aside", func(w *link) (err error) {
		n, err = w.exec(qSweepPoison, int64(before), limit)
		return err
	})
	return int(n), err
}

// SweepBackfills implements store.JobSweeper.
func (s *Store) SweepBackfills(ctx context.Context, namespace string, before job.Instant, limit int) (int, error) {
	n, bound := 0, job.RequestedID(before, [10]byte{}) // ids sort by when they were asked for
	err := s.write(ctx, "delete old backfills", func(w *link) error {
		n = 0
		for after, more := (job.ExecutionID{}), true; more && n < limit; {
			var page []job.Backfill
			if err := w.each(qBackfillsEnded, []any{namespace, after[:], bound[:], endedAtOnce}, func(rows pgx.Rows) error {
				b, err := scanBackfill(rows)
				page = append(page, b)
				return err
			}); err != nil {
				return err
			}
			more = len(page) == endedAtOnce
			for i := 0; i < len(page) && n < limit; i++ {
				after = page[i].ID
				if store.BackfillEnd(&page[i]) >= before {
					continue
				}
				n++
				for _, q := range []query{qForgetBackfill, qForgetProgress} {
					if _, err := w.exec(q, after[:]); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
