package sqlite

import (
	"database/sql"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Rows of the inbox that hold many triggers, see store.Bulk.
var (
	qLastEntry  = statement(`SELECT seq FROM sqlite_sequence WHERE name = 'inbox'`)
	qBulkInsert = statement(`INSERT INTO inbox (id, partition, rank, kind, namespace, job, execution, payload, items) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	qBulkRows   = statement(`SELECT id, items, taken FROM inbox INDEXED BY inbox_bulk WHERE partition = ? AND id BETWEEN ? AND ? AND items IS NOT NULL`)
	qBulkDelete = statement(`DELETE FROM inbox WHERE id = ?`)
	qBulkTake   = statement(`UPDATE inbox SET taken = ? WHERE id = ?`)
	qBulkOf     = statement(`SELECT id, job, payload, items, taken, namespace, partition FROM inbox INDEXED BY inbox_execution
		WHERE execution BETWEEN ? AND ? AND items IS NOT NULL`)
	qBulkOfEntry = statement(`SELECT id, job, payload, items, taken, namespace, partition FROM inbox WHERE id BETWEEN ? AND ? AND items IS NOT NULL ORDER BY id LIMIT 1`)
)

// bulkRow is a row of qBulkOf.
type bulkRow struct {
	store.BulkRow
	uid       job.UID
	payload   []byte // until the next row
	namespace string
	partition int
}

func scanBulk(rows *sql.Rows) (r bulkRow, err error) {
	var uid, payload sql.RawBytes
	var taken sql.NullString
	err = rows.Scan(&r.ID, &uid, &payload, &r.Items, &taken, &r.namespace, &r.partition)
	copy(r.uid[:], uid)
	r.Taken, r.payload = taken.String, payload
	return r, err
}

// entries are those of the row that were not taken; one of a kind that nobody knows when the row cannot be read.
func (r *bulkRow) entries(each func(entry) error) error {
	b, err := r.ReadBulk(r.payload)
	if err != nil {
		e := entry{}
		e.ID, e.Kind, e.Job = r.ID, store.UnfitEntry(store.KindBulk), r.uid
		return each(e)
	}
	for i := range b.Items {
		e := entry{Entry: r.Entry(b, r.uid, i), revision: b.Revision, kept: b.Items[i].Kept}
		if r.Waits(e.ID) {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachEntry reads a row of qInbox: one entry, or many.
func eachEntry(rows *sql.Rows, each func(entry) error) error {
	var items sql.NullInt64
	var taken sql.NullString
	e, err := scanEntry(rows, &items, &taken)
	if err != nil {
		return err
	}
	if !items.Valid {
		return each(e)
	}
	r := bulkRow{BulkRow: store.BulkRow{ID: e.ID, Items: int(items.Int64), Taken: taken.String}, uid: e.Job, payload: e.bulk}
	return r.entries(each)
}

// pendingInBulk is pendingTrigger among the rows that hold many.
func pendingInBulk(l *link, id job.ExecutionID) (found *entry, namespace string, partition int, err error) {
	low := store.LowestLike(id)
	err = l.each(qBulkOf, []any{low[:], id[:]}, func(rows *sql.Rows) error {
		r, err := scanBulk(rows)
		if err != nil {
			return err
		}
		return r.entries(func(e entry) error {
			if e.Execution == id {
				found, namespace, partition = &e, r.namespace, r.partition
			}
			return nil
		})
	})
	return found, namespace, partition, err
}

// eachOfBulk is called with the row that holds an entry, if there is one.
func eachOfBulk(l *link, id int64, each func(r *bulkRow) error) error {
	from, to := store.BulkRange([]int64{id})
	return l.each(qBulkOfEntry, []any{from, to}, func(rows *sql.Rows) error {
		r, err := scanBulk(rows)
		if err != nil || !r.Waits(id) {
			return err
		}
		return each(&r)
	})
}

// bulkEntry is an entry that lies in a row with others; nil when there is none that waits.
func bulkEntry(l *link, partition int, id int64) (found *entry, err error) {
	err = eachOfBulk(l, id, func(r *bulkRow) error {
		if r.partition != partition {
			return nil
		}
		return r.entries(func(e entry) error {
			if e.ID == id {
				found = &e
			}
			return nil
		})
	})
	return found, err
}

func bulkPending(l *link, id int64) (pending bool, err error) {
	err = eachOfBulk(l, id, func(*bulkRow) error {
		pending = true
		return nil
	})
	return pending, err
}

// consumeBulk takes the entries that lie in rows with others, and tells the rest.
func (c *commit) consumeBulk(ids []int64) (rest []int64, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	from, to := store.BulkRange(ids)
	var found []store.BulkRow
	if err := c.each(qBulkRows, []any{int64(c.fence.Partition), from, to}, func(rows *sql.Rows) error {
		var r store.BulkRow
		var taken sql.NullString
		err := rows.Scan(&r.ID, &r.Items, &taken)
		r.Taken = taken.String
		found = append(found, r)
		return err
	}); err != nil {
		return nil, err
	}
	changed, rest := store.TakeBulk(found, ids)
	for i := range changed {
		t := &changed[i]
		if t.Now == "" {
			_, err = c.exec(qBulkDelete, t.ID)
		} else {
			_, err = c.exec(qBulkTake, t.Now, t.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}
