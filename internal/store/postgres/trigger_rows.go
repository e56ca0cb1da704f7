package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func (w *triggers) payload(n int) payload {
	t := &w.all[w.entries[n]]
	p := payload{At: t.Request.At, Delayed: t.Request.Delayed, Key: t.Request.Key, Params: w.params[n], Revision: w.jobs[[2]string{t.Namespace, t.Job}].Revision}
	if t.Key.Key != "" {
		p.Kept = &store.RequestKey{Namespace: t.Key.Namespace, Operation: t.Key.Operation, Key: t.Key.Key}
	}
	return p
}

// run is entries that lie in one row.
type run struct{ from, n int }

// entryRows are rows of inboxes, by column.
type entryRows struct {
	numbers                     []int64
	partitions                  []int32
	kinds, namespaces, payloads []string
	uids, ids                   [][16]byte
	items                       []*int32 // nil: the row holds one entry
}

func (r *entryRows) add(out *store.Triggered, number int64, kind string, d *job.Definition, id job.ExecutionID, payload string, items *int32) {
	r.numbers, r.partitions = append(r.numbers, number), append(r.partitions, int32(out.Partition)) //nolint:gosec // there are at most 4096
	r.kinds, r.namespaces, r.payloads = append(r.kinds, kind), append(r.namespaces, d.Namespace), append(r.payloads, payload)
	r.uids, r.ids, r.items = append(r.uids, d.UID), append(r.ids, id), append(r.items, items)
}

// bulk puts n entries into one row.
func (w *triggers) bulk(rows *entryRows, from, n int) {
	w.rows = append(w.rows, run{from, n})
	first := w.entries[from]
	t := &w.all[first]
	d := w.jobs[[2]string{t.Namespace, t.Job}]
	b := store.Bulk{At: t.Request.At, Revision: d.Revision, Items: make([]store.BulkItem, n)}
	for i := range n {
		p := w.payload(from + i)
		b.Items[i] = store.BulkItem{Execution: w.all[w.entries[from+i]].Execution, Key: p.Key, Params: p.Params, Kept: p.Kept}
	}
	items := int32(n) //nolint:gosec // at most store.BulkItems
	rows.add(&w.out[first], w.numbers[from+n-1], store.KindBulk, d, store.FirstOf(b.Items), string(b.Append(nil)), &items)
}

// single puts an entry into a row of its own.
func (w *triggers) single(rows *entryRows, n int) error {
	w.alone = append(w.alone, n)
	w.params[n] = store.Compact(w.params[n])
	i := w.entries[n]
	t := &w.all[i]
	text, err := encode(w.payload(n))
	if err != nil {
		return err
	}
	rows.add(&w.out[i], w.out[i].Entry, string(t.Request.TriggerKind()), w.jobs[[2]string{t.Namespace, t.Job}], t.Execution, text, nil)
	return nil
}

// put writes the rows, each of which gets its number now if none of them has one.
func (w *triggers) put(r *entryRows) question {
	if len(w.numbers) > 0 {
		return question{qEntriesPut, []any{r.numbers, r.partitions, entryRest, r.kinds, r.namespaces, r.uids, r.ids, r.payloads, r.items},
			func(rows pgx.Rows) error { return w.note(rows, new(int64)) }}
	}
	next := 0
	return question{qEntriesInsert, []any{r.partitions, entryRest, r.kinds, r.namespaces, r.uids, r.ids, r.payloads}, func(rows pgx.Rows) error {
		next++
		return w.note(rows, &w.out[w.entries[next-1]].Entry)
	}}
}

// note takes in the number of an entry that was put in, and how far its partition is. Where several say that, the least counts.
func (w *triggers) note(rows pgx.Rows, entry *int64) error {
	var p int
	var seq int64
	if err := rows.Scan(entry, &p, &seq); err != nil {
		return err
	}
	if was, known := w.seqs[p]; !known || seq < was {
		w.seqs[p] = seq
	}
	return nil
}

// tell says what owners need to know of the entries, once they are committed. None of them is there before that, so that the
// commits up to the one that was seen took none of them.
func (w *triggers) tell(known *singles) {
	alone, rows := map[int][]int64{}, map[int][]store.BulkRow{}
	for _, n := range w.alone {
		out := &w.out[w.entries[n]]
		alone[out.Partition] = append(alone[out.Partition], out.Entry)
	}
	for _, r := range w.rows {
		at := w.out[w.entries[r.from]].Partition
		rows[at] = append(rows[at], store.BulkRow{ID: w.numbers[r.from+r.n-1], Items: r.n})
	}
	for p := range w.seqs {
		known.add(p, alone[p], rows[p])
	}
	for n, i := range w.entries {
		t, out := &w.all[i], &w.out[i]
		if seq, known := w.seqs[out.Partition]; known {
			store.Tell(t, out.Written, seq, w.jobs[[2]string{t.Namespace, t.Job}], w.params[n])
		}
	}
}
