package postgres

import (
	"github.com/jackc/pgx/v5"

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

// bulk puts n entries into one row.
func (w *triggers) bulk(from, n int) question {
	w.rows = append(w.rows, run{from, n})
	first := w.entries[from]
	t := &w.all[first]
	d := w.jobs[[2]string{t.Namespace, t.Job}]
	b := store.Bulk{At: t.Request.At, Revision: d.Revision, Items: make([]store.BulkItem, n)}
	for i := range n {
		p := w.payload(from + i)
		b.Items[i] = store.BulkItem{Execution: w.all[w.entries[from+i]].Execution, Key: p.Key, Params: p.Params, Kept: p.Kept}
	}
	return question{qBulkInsert, []any{w.numbers[from+n-1], w.out[first].Partition, entryRest, store.KindBulk, t.Namespace, d.UID[:],
		[16]byte(store.FirstOf(b.Items)), string(b.Append(nil)), n}, nil}
}

// singles puts entries into rows of their own.
func (w *triggers) singles() ([]question, error) {
	var numbers []int64
	var partitions []int32
	var kinds, namespaces, payloads []string
	var uids, ids [][]byte
	for _, n := range w.alone {
		i := w.entries[n]
		t := &w.all[i]
		text, err := encode(w.payload(n))
		if err != nil {
			return nil, err
		}
		d := w.jobs[[2]string{t.Namespace, t.Job}]
		numbers, partitions = append(numbers, w.out[i].Entry), append(partitions, int32(w.out[i].Partition)) //nolint:gosec // there are at most 4096
		kinds, namespaces, payloads = append(kinds, string(t.Request.TriggerKind())), append(namespaces, t.Namespace), append(payloads, text)
		uids, ids = append(uids, d.UID[:]), append(ids, t.Execution[:])
	}
	switch {
	case len(ids) == 0:
		return nil, nil
	case len(w.numbers) > 0:
		return []question{{qEntriesPut, []any{numbers, partitions, entryRest, kinds, namespaces, uids, ids, payloads}, nil}}, nil
	default:
		return []question{{qEntriesInsert, []any{partitions, entryRest, kinds, namespaces, uids, ids, payloads}, func(rows pgx.Rows) error {
			return rows.Scan(&w.out[w.entries[0]].Entry)
		}}}, nil
	}
}

// seqsNow asks how far the partitions of the entries are.
func (w *triggers) seqsNow() (all []question) {
	for _, i := range w.entries {
		p := w.out[i].Partition
		if _, asked := w.seqs[p]; asked || w.all[i].Told == nil {
			continue
		}
		w.seqs[p] = -1
		all = append(all, question{qSeq, []any{p}, func(rows pgx.Rows) error {
			var seq, token int64
			err := rows.Scan(&seq, &token)
			w.seqs[p] = seq
			return err
		}})
	}
	return all
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
		if seq, known := w.seqs[out.Partition]; known && seq >= 0 {
			store.Tell(t, out.Written, seq, w.jobs[[2]string{t.Namespace, t.Job}], w.params[n])
		}
	}
}
