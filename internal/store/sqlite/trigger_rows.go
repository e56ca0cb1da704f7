package sqlite

import (
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// singles writes entries, each in a row.
func (w *triggers) singles(left []waitingEntry) error {
	for len(left) > 0 {
		size := fit(len(left))
		var args []any
		for i := range manySizes[size] {
			e := &left[i]
			e.payload.Params = store.Compact(e.payload.Params)
			text, err := encode(e.payload)
			if err != nil {
				return err
			}
			args = append(args, int64(e.out.Partition), entryRest, string(e.asked.Request.TriggerKind()), e.asked.Namespace, e.of.UID[:], e.asked.Execution[:], text)
		}
		last, err := w.insert(qEntriesInsert[size], args...)
		if err != nil {
			return err
		}
		for i := range manySizes[size] {
			left[i].out.Entry = last - int64(manySizes[size]-1-i)
		}
		if err := w.look(left[:manySizes[size]]); err != nil {
			return err
		}
		left = left[manySizes[size]:]
	}
	return nil
}

// bulk writes entries into one row.
func (w *triggers) bulk(all []waitingEntry) error {
	var last int64
	if _, err := w.one(qLastEntry, nil, &last); err != nil {
		return err
	}
	first := &all[0]
	b := store.Bulk{At: first.payload.At, Revision: first.payload.Revision, Items: make([]store.BulkItem, len(all))}
	for i := range all {
		e := &all[i]
		b.Items[i] = store.BulkItem{Execution: e.asked.Execution, Key: e.payload.Key, Params: e.payload.Params, Kept: e.payload.Kept}
		last++
		e.out.Entry = last
	}
	low := store.FirstOf(b.Items)
	_, err := w.exec(qBulkInsert, last, int64(first.out.Partition), entryRest, store.KindBulk, first.asked.Namespace, first.of.UID[:], low[:],
		string(b.Append(nil)), int64(len(all)))
	if err != nil {
		return err
	}
	return w.look(all)
}

// look notes how far the partitions are of those whose owners are to be told.
func (w *triggers) look(all []waitingEntry) error {
	for i := range all {
		p := all[i].out.Partition
		if _, known := w.seqs[p]; known || all[i].asked.Told == nil {
			continue
		}
		seq := int64(-1)
		if _, err := w.one(qSeq, []any{int64(p)}, &seq, new(job.Token)); err != nil {
			return err
		}
		w.seqs[p] = seq
	}
	w.written = append(w.written, all...)
	return nil
}

// tell says what owners need to know of the entries, once they are committed.
func (w *triggers) tell() {
	for i := range w.written {
		e := &w.written[i]
		if seq, known := w.seqs[e.out.Partition]; known && seq >= 0 {
			store.Tell(&e.asked, e.out.Written, seq, e.of, e.payload.Params)
		}
	}
}
