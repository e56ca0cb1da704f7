package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Rows of the inbox that hold many triggers, see store.Bulk. Numbers are drawn from the sequence of the others; a row holds
// those that follow each other. (An owner alone takes entries of its partition, so that what it took may be read before a commit.)
var (
	qEntryNumbers = statement(`SELECT array_agg(nextval(s.of)) FROM (SELECT pg_get_serial_sequence('inbox', 'id')::regclass AS of OFFSET 0) s, generate_series(1, $1)`)
	qBulkRows     = statement(`SELECT id, items, coalesce(taken, '') FROM inbox
		WHERE partition BETWEEN $1 AND $1 AND id BETWEEN $2 AND $3 AND items IS NOT NULL ORDER BY partition, id`)
	qBulkDelete = statement(`WITH done AS (DELETE FROM inbox WHERE ` +
		keyed(`unnest($1::bigint[], $3::text[]) u (id, taken)`, `inbox`, `t.id = u.id AND t.partition + 0 = $2 AND coalesce(t.taken, '') = u.taken`) + ` RETURNING id)` +
		guard(guardEntry, `cardinality($1)`, entryMissing))
	qBulkTake = statement(`WITH done AS (UPDATE inbox SET taken = $4 WHERE id = $1 AND partition + 0 = $2 AND coalesce(taken, '') = $3 RETURNING id)` +
		guard(guardEntry, `1`, `$1::text`))
	qBulkOf      = statement(`SELECT ` + bulkColumns + ` FROM inbox WHERE execution BETWEEN $1 AND $2 AND items IS NOT NULL`)
	qBulkOfEntry = statement(`SELECT ` + bulkColumns + ` FROM inbox WHERE id BETWEEN $1 AND $2 AND items IS NOT NULL ORDER BY id LIMIT 1`)
)

const bulkColumns = `id, job, payload, items, coalesce(taken, ''), namespace, partition`

// bulkRow is a row of bulkColumns.
type bulkRow struct {
	store.BulkRow
	uid       job.UID
	payload   []byte
	namespace string
	partition int
}

func scanBulk(rows pgx.Rows) (r bulkRow, err error) {
	err = rows.Scan(&r.ID, (*[16]byte)(&r.uid), &r.payload, &r.Items, &r.Taken, &r.namespace, &r.partition)
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
func eachEntry(rows pgx.Rows, each func(entry) error) error {
	var items *int
	var taken *string
	e, err := scanEntry(rows, &items, &taken)
	if err != nil {
		return err
	}
	if items == nil {
		e.alone = true
		return each(e)
	}
	r := bulkRow{BulkRow: store.BulkRow{ID: e.ID, Items: *items}, uid: e.Job, payload: e.bulk}
	if taken != nil {
		r.Taken = *taken
	}
	return r.entries(each)
}

// pendingInBulk is pendingTrigger among the rows that hold many.
func pendingInBulk(l *link, id job.ExecutionID) (found *entry, namespace string, partition int, err error) {
	err = l.each(qBulkOf, []any{[16]byte(store.LowestLike(id)), [16]byte(id)}, func(rows pgx.Rows) error {
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
	return l.each(qBulkOfEntry, []any{from, to}, func(rows pgx.Rows) error {
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

// findBulk divides what the batch consumes into entries that lie in rows with others, and the rest.
func (c *commit) findBulk(ctx context.Context) error {
	if taken, rest, known := c.store.singles.divide(c.fence.Partition, c.batch.Consumed); known {
		c.taken, c.consumed = taken, rest
		return nil
	}
	c.consumed = c.batch.Consumed
	from, to := store.BulkRange(c.consumed)
	var found []store.BulkRow
	err := c.store.askOf(ctx, c.store.commits, "look at the inbox", question{qBulkRows, []any{c.fence.Partition, from, to}, func(rows pgx.Rows) error {
		var r store.BulkRow
		err := rows.Scan(&r.ID, &r.Items, &r.Taken)
		found = append(found, r)
		return err
	}})
	c.taken, c.consumed = store.TakeBulk(found, c.consumed)
	return err
}
