package sqlite

import (
	"context"
	"database/sql"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const partitionSelect = `SELECT p.id, p.owner, p.epoch, p.seq, p.last_token, p.lineage, b.beat
	FROM partitions p JOIN partition_beats b ON b.id = p.id`

var (
	qPartitionCount  = statement(`SELECT count(*) FROM partitions`)
	qPartitionInsert = statement(`INSERT INTO partitions (id, owner, epoch, seq, last_token, lineage)
		SELECT ?, '', 0, 0, 0, ifnull(max(value), 0) FROM meta WHERE key = 'restored'`)
	qBeatInsert    = statement(`INSERT INTO partition_beats (id, beat) VALUES (?, 0)`)
	qPartitionRows = statement(partitionSelect + ` ORDER BY p.id`)
	qPartitionRow  = statement(partitionSelect + ` WHERE p.id = ?`)

	qAcquire = statement(`UPDATE partitions SET owner = ?1, epoch = max(epoch + 1, last_token + 1, ?2)
		WHERE id = ?3 AND owner = ?4 AND epoch = ?5 AND (SELECT beat FROM partition_beats WHERE id = ?3) = ?6`)
	qRenew = statement(`UPDATE partition_beats SET beat = beat + 1
		WHERE id = ?1 AND EXISTS (SELECT 1 FROM partitions WHERE id = ?1 AND owner = ?2 AND owner <> '' AND epoch = ?3) RETURNING beat`)
	qRelease = statement(`UPDATE partitions SET owner = '' WHERE id = ? AND owner = ? AND epoch = ?`)
)

// makePartitions fills a new database; an existing one keeps the number it was made with.
func makePartitions(w *link, n int) error {
	var have int
	if _, err := w.one(qPartitionCount, nil, &have); err != nil || have > 0 {
		return err
	}
	for id := range n {
		if _, err := w.exec(qPartitionInsert, int64(id)); err != nil {
			return err
		}
		if _, err := w.exec(qBeatInsert, int64(id)); err != nil {
			return err
		}
	}
	return nil
}

func partitionDest(r *store.PartitionRow) []any {
	return []any{&r.Partition, &r.Owner, &r.Epoch, &r.Seq, &r.LastToken, &r.Lineage, &r.Beat}
}

// PartitionRows implements store.Partitions.
func (s *Store) PartitionRows(ctx context.Context) (all []store.PartitionRow, err error) {
	err = s.read(ctx, "read partitions", func(r *link) error {
		return r.each(qPartitionRows, nil, func(rows *sql.Rows) error {
			var p store.PartitionRow
			err := rows.Scan(partitionDest(&p)...)
			all = append(all, p)
			return err
		})
	})
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
	err := s.write(ctx, rankOwnership, "acquire partition", func(w *link) error {
		n, err := w.exec(qAcquire, owner, clock, int64(seen.Partition), seen.Owner, int64(seen.Epoch), seen.Beat)
		if err != nil {
			return err
		}
		if n == 0 {
			return fenced("fence", "partition %d is not as it was seen: owner %q, epoch %d, beat %d", seen.Partition, seen.Owner, seen.Epoch, seen.Beat)
		}
		if err := s.checkFloor(w, level); err != nil {
			return err
		}
		_, err = w.one(qPartitionRow, []any{int64(seen.Partition)}, partitionDest(&got)...)
		return err
	})
	if err != nil {
		return store.PartitionRow{}, err
	}
	return got, nil
}

// RenewPartition implements store.Partitions.
//
// SQLite has one writer, so a renewal does wait for the commit in flight; its rank lets it pass all that queue behind.
// That is well below the lease (a commit takes milliseconds), and nothing is lost if it is not: whoever holds the
// data directory's lock file is the only server, so no other waits to take the partition over; the holder
// would only fence itself off and acquire again.
func (s *Store) RenewPartition(ctx context.Context, f store.Fence) (int64, error) {
	var beat int64
	err := s.write(ctx, rankOwnership, "renew partition", func(w *link) error {
		found, err := w.one(qRenew, []any{int64(f.Partition), f.Owner, int64(f.Epoch)}, &beat)
		if err == nil && !found {
			err = fenced("fence", "partition %d is not owned by %q under epoch %d any more", f.Partition, f.Owner, f.Epoch)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return beat, nil
}

// ReleasePartition implements store.Partitions.
func (s *Store) ReleasePartition(ctx context.Context, f store.Fence) error {
	return s.write(ctx, rankOwnership, "release partition", func(w *link) error {
		_, err := w.exec(qRelease, int64(f.Partition), f.Owner, int64(f.Epoch))
		return err
	})
}
