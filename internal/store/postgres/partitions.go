package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const partitionSelect = `SELECT p.id, p.owner, p.epoch, p.seq, p.last_token, p.lineage, b.beat
	FROM partitions p JOIN partition_beats b ON b.id = p.id`

var (
	qPartitionLock   = statement(`LOCK TABLE partitions IN SHARE ROW EXCLUSIVE MODE`) // by two servers that start at once
	qPartitionCount  = statement(`SELECT count(*) FROM partitions`)
	qPartitionInsert = statement(`INSERT INTO partitions (id, owner, epoch, seq, last_token, lineage) SELECT n, '', 0, 0, 0, $2 FROM generate_series(0, $1 - 1) n`)
	qBeatInsert      = statement(`INSERT INTO partition_beats (id, beat) SELECT n, 0 FROM generate_series(0, $1 - 1) n`)
	qPartitionRows   = statement(partitionSelect + ` ORDER BY p.id`)

	qAcquire = statement(`UPDATE partitions SET owner = $1, epoch = greatest(epoch + 1, last_token + 1, $2)
		WHERE id = $3 AND owner = $4 AND epoch = $5 AND (SELECT beat FROM partition_beats WHERE id = $3) = $6
		RETURNING id, owner, epoch, seq, last_token, lineage, $6::bigint`)
	// Who holds the row of a partition: the transaction that is its xmax. Not when another has it meanwhile: its commits are its own.
	qEvict = statement(`SELECT pg_terminate_backend(l.pid) FROM partitions p JOIN pg_locks l
		ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = p.xmax
		WHERE p.id = $1 AND p.owner = $2 AND p.epoch = $3 AND l.pid <> pg_backend_pid()`)
	qRelease = statement(`UPDATE partitions SET owner = '' WHERE id = $1 AND owner = $2 AND epoch = $3`)

	qSettlePartition = statement(`UPDATE partitions SET lineage = $1 WHERE id = $2 AND owner = $3 AND owner <> '' AND epoch = $4`)
)

// makePartitions fills a new database; an existing one keeps the number it was made with.
func makePartitions(w *link, n int) error {
	var have int
	if _, err := w.one(qPartitionCount, nil, &have); err != nil || have > 0 {
		return err
	}
	if _, err := w.exec(qPartitionLock); err != nil {
		return err
	}
	if _, err := w.one(qPartitionCount, nil, &have); err != nil || have > 0 {
		return err
	}
	lineage, err := lineageOf(w)
	if err != nil {
		return err
	}
	if _, err := w.exec(qPartitionInsert, n, lineage); err != nil {
		return err
	}
	_, err = w.exec(qBeatInsert, n)
	return err
}

func partitionDest(r *store.PartitionRow) []any {
	return []any{&r.Partition, &r.Owner, (*int64)(&r.Epoch), &r.Seq, (*int64)(&r.LastToken), &r.Lineage, &r.Beat}
}

// PartitionRows implements store.Partitions.
func (s *Store) PartitionRows(ctx context.Context) (all []store.PartitionRow, err error) {
	err = s.askOf(ctx, s.keeper, "read partitions", question{qPartitionRows, nil, func(rows pgx.Rows) error {
		var p store.PartitionRow
		err := rows.Scan(partitionDest(&p)...)
		all = append(all, p)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// AcquirePartition implements store.Partitions.
func (s *Store) AcquirePartition(ctx context.Context, seen store.PartitionRow, owner string, clock int64, level int) (store.PartitionRow, error) {
	var got store.PartitionRow
	if owner == "" || !store.Clean(owner) {
		return got, job.Errorf(job.KindRejected, "bad_owner", "%q names no owner", owner)
	}
	take := func(w *link) error {
		answers, err := w.ask(s.levelIs(level), question{qAcquire, []any{owner, clock, seen.Partition, seen.Owner, int64(seen.Epoch), seen.Beat},
			func(rows pgx.Rows) error { return rows.Scan(partitionDest(&got)...) }})
		if err != nil {
			return belowFloor(err, level)
		}
		if answers.tag.RowsAffected() == 0 {
			return fenced("fence", "partition %d is not as it was seen: owner %q, epoch %d, beat %d", seen.Partition, seen.Owner, seen.Epoch, seen.Beat)
		}
		return nil
	}
	err := s.writeInFew(ctx, s.takers, "acquire partition", take)
	if e, ok := errors.AsType[*job.Error](err); ok && (e.Code == troubles["55P03"].code || e.Code == troubles["57014"].code) {
		if err := s.evict(ctx, seen); err != nil {
			return store.PartitionRow{}, err
		}
		err = s.writeInFew(ctx, s.takers, "acquire partition", take)
	}
	if err != nil {
		return store.PartitionRow{}, err
	}
	return got, nil
}

// evict ends the session that has held a partition's row for P/2. An owner that froze while it was sending its commit
// leaves the database waiting for the rest of it, with the row locked, and before PostgreSQL 17 no time-out ends that.
func (s *Store) evict(ctx context.Context, seen store.PartitionRow) error {
	return s.writeOn(ctx, s.takers, "acquire partition", func(w *link) error {
		n, err := w.exec(qEvict, seen.Partition, seen.Owner, int64(seen.Epoch))
		if err == nil && n > 0 {
			s.log.Warn("The connection of a partition's former owner, which left a commit half sent, was ended; the partition is taken over now", "partition", seen.Partition)
		}
		return err
	})
}

// ReleasePartition implements store.Partitions.
func (s *Store) ReleasePartition(ctx context.Context, f store.Fence) error {
	return s.writeInFew(ctx, s.takers, "release partition", func(w *link) error {
		_, err := w.exec(qRelease, f.Partition, f.Owner, int64(f.Epoch))
		return err
	})
}

// SettlePartition implements store.Partitions.
func (s *Store) SettlePartition(ctx context.Context, f store.Fence, lineage string) error {
	if !store.Clean(lineage) {
		return job.Errorf(job.KindRejected, "bad_lineage", "%q names no lineage", lineage)
	}
	return s.writeInFew(ctx, s.takers, "settle partition", func(w *link) error {
		n, err := w.exec(qSettlePartition, lineage, f.Partition, f.Owner, int64(f.Epoch))
		if err == nil && n == 0 {
			err = fenced("fence", "partition %d is not owned by %q under epoch %d any more", f.Partition, f.Owner, f.Epoch)
		}
		return err
	})
}
