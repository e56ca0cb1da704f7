package sqlite

import (
	"context"
	"errors"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var qEntriesInsert = statements(`?, ?, ?, ?, ?, ?, ?`, func(rows string) string {
	return `INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload) VALUES ` + rows
})

// Trigger implements store.Control.
func (s *Store) Trigger(ctx context.Context, t store.Trigger, partition func(job.Definition) int) (store.Triggered, error) {
	return store.TriggerOne(ctx, s, t, partition)
}

// Triggers implements store.Control.
func (s *Store) Triggers(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) ([]store.Triggered, error) {
	out := make([]store.Triggered, len(all))
	var refused job.SetError
	var each triggers
	err := s.write(ctx, rankPeople, "trigger", func(w *link) error {
		each = triggers{link: w, partition: partition, jobs: map[[2]string]*job.Definition{}, seqs: map[int]int64{}}
		for i := range all {
			err := each.add(all[i], &out[i])
			if e, ok := errors.AsType[*job.Error](err); ok {
				refused.Add(i, e)
				if s.skip.wholeSet {
					return each.flush()
				}
			}
			if err != nil {
				return err
			}
		}
		return each.flush()
	})
	switch {
	case len(refused.Items) > 0:
		return nil, &refused
	case err != nil:
		return nil, err
	}
	each.tell()
	return out, nil
}

// triggers is the work of one transaction. Entries wait and are written several by a statement.
type triggers struct {
	*link
	partition func(job.Definition) int
	jobs      map[[2]string]*job.Definition // that were read, by namespace and name; nil: none is kept
	seqs      map[int]int64                 // newest commits, by partition
	waiting   []waitingEntry
	written   []waitingEntry
}

// waitingEntry is an inbox entry that is to be written, and the receipt that its number goes to.
type waitingEntry struct {
	out     *store.Triggered
	asked   store.Trigger // with the parameters that it starts with
	of      *job.Definition
	payload payload
}

func (w *triggers) job(namespace, name string) (*job.Definition, error) {
	if d := w.jobs[[2]string{namespace, name}]; d != nil {
		return d, nil
	}
	d, _, err := findJob(w.link, namespace, name)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, noJob(namespace, name)
	case w.jobs != nil:
		w.jobs[[2]string{namespace, name}] = d
	}
	return d, nil
}

func (w *triggers) add(t store.Trigger, out *store.Triggered) error {
	if err := store.CheckTrigger(&t); err != nil {
		return err
	}
	d, err := w.job(t.Namespace, t.Job)
	if err != nil {
		return err
	}
	*out = store.Triggered{Written: store.Written{Partition: w.partition(*d)}, Execution: t.Execution}
	if t.Key.Key != "" {
		if out.Repeated, err = w.useKey(t, out); err != nil || out.Repeated {
			return err
		}
	}
	params := t.Request.Params
	if t.Merge != nil {
		if params, err = t.Merge(*d); err != nil {
			return err
		}
	}
	p := payload{At: t.Request.At, Delayed: t.Request.Delayed, Key: t.Request.Key, Params: params, Revision: d.Revision}
	if t.Key.Key != "" {
		p.Kept = &store.RequestKey{Namespace: t.Key.Namespace, Operation: t.Key.Operation, Key: t.Key.Key}
	}
	w.waiting = append(w.waiting, waitingEntry{out: out, asked: t, of: d, payload: p})
	return nil
}

// flush writes the entries that wait. Their numbers follow each other: the one that writes them all is the only one
// that writes (AUTOINCREMENT gives the highest so far plus one).
func (w *triggers) flush() error {
	single := 0 // of the first that wait: to be written by themselves
	for single < len(w.waiting) {
		rest := w.waiting[single:]
		n := store.Run(len(rest), func(i int) bool {
			return rest[i].of.UID == rest[0].of.UID && store.Alike(&rest[0].asked, &rest[i].asked)
		},
			func(i int) int { return len(rest[i].payload.Params) })
		if n == 1 {
			single++
			continue
		}
		if err := w.singles(w.waiting[:single]); err != nil {
			return err
		}
		if err := w.bulk(rest[:n]); err != nil {
			return err
		}
		w.waiting, single = rest[n:], 0
	}
	err := w.singles(w.waiting)
	w.waiting = nil
	return err
}

// useKey finds the execution that the key made, or keeps the key for the one proposed.
func (w *triggers) useKey(t store.Trigger, out *store.Triggered) (repeated bool, err error) {
	k := t.Key
	var hash string
	var id []byte
	known, err := w.one(qKey, []any{k.Namespace, k.Operation, k.Key}, &hash, &id)
	if err != nil {
		return false, err
	}
	if !known {
		_, err := w.exec(qKeyInsert, k.Namespace, k.Operation, k.Key, k.Hash, t.Execution[:], int64(t.Request.At))
		return false, err
	}
	if hash != k.Hash {
		return false, job.Errorf(job.KindConflict, "idempotency_key_reused", "the idempotency key %q was used for another request", k.Key).
			WithHint("use a new key for a new request: the same key goes with the same parameters and the same instant")
	}
	copy(out.Execution[:], id)
	if err := w.flush(); err != nil { // it may be an entry of this list
		return false, err
	}
	e, _, partition, err := pendingTrigger(w.link, out.Execution)
	if err == nil && e != nil {
		out.Written = store.Written{Partition: partition, Entry: e.ID}
	}
	return true, err
}
