package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Many triggers take a statement of each kind, not of each trigger: the way to the database is longer than SQLite's.
// Rows are locked and keys are put in the order of their names, whoever does it, so that no two wait for each other.
var (
	qJobsToTrigger = statement(`SELECT ` + definitionColumns + `, j.partition FROM unnest($1::text[], $2::text[]) AS a (namespace, name)
		JOIN jobs j ON j.namespace = a.namespace AND j.name = a.name JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision
		ORDER BY j.namespace, j.name FOR SHARE OF j`)
	qJobsThere = statement(`SELECT count(*) FROM unnest($1::text[], $2::text[]) AS a (namespace, name)
		JOIN jobs j ON j.namespace = a.namespace AND j.name = a.name`)

	qKeysPut = statement(`INSERT INTO request_keys (namespace, operation, key, hash, execution, at)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::bigint[]) AS a (namespace, operation, key)
		ORDER BY a.namespace COLLATE "C", a.operation COLLATE "C", a.key COLLATE "C"
		ON CONFLICT (namespace, operation, key) DO NOTHING RETURNING namespace, operation, key`)
	qKeysOf = statement(`SELECT k.namespace, k.operation, k.key, k.hash, k.execution FROM unnest($1::text[], $2::text[], $3::text[]) AS a (namespace, operation, key)
		JOIN request_keys k ON k.namespace = a.namespace AND k.operation = a.operation AND k.key = a.key`)

	qEntriesOf     = statement(`SELECT execution, id, partition FROM inbox WHERE execution = ANY($1::uuid[]) AND kind IN ('trigger', 'delayed')`)
	qEntriesInsert = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload)
		SELECT a.partition, $2, a.kind, a.namespace, a.job, a.execution, a.payload
		FROM unnest($1::integer[], $3::text[], $4::text[], $5::uuid[], $6::uuid[], $7::text[]) WITH ORDINALITY AS a (partition, kind, namespace, job, execution, payload, n)
		ORDER BY a.n RETURNING id`)
)

// Trigger implements store.Control.
func (s *Store) Trigger(ctx context.Context, t store.Trigger, partition func(job.Definition) int) (store.Triggered, error) {
	return store.TriggerOne(ctx, s, t, partition)
}

// Triggers implements store.Control.
func (s *Store) Triggers(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) ([]store.Triggered, error) {
	if len(all) == 0 {
		return []store.Triggered{}, nil
	}
	var t triggers
	err := s.writeInFew(ctx, s.people, "trigger", func(w *link) error {
		t = triggers{link: w, all: all, partition: partition, out: make([]store.Triggered, len(all)),
			jobs: map[[2]string]*job.Definition{}, keys: map[[3]string]*usedKey{}}
		return t.run()
	})
	switch {
	case len(t.refused.Items) > 0:
		return nil, &t.refused
	case err != nil:
		return nil, err
	}
	return t.out, nil
}

// triggers is the work of one transaction.
type triggers struct {
	*link
	all       []store.Trigger
	partition func(job.Definition) int
	out       []store.Triggered
	refused   job.SetError
	jobs      map[[2]string]*job.Definition // that are there and held, by namespace and name
	keys      map[[3]string]*usedKey
	entries   []int // places of those that are no repeats
	params    []json.RawMessage
}

// usedKey is a request key that the list names.
type usedKey struct {
	store.RequestKey
	hash      string // of the request that it was first used for
	execution job.ExecutionID
	first     int  // place in the list
	fresh     bool // this transaction put it
}

func keyOf(t *store.Trigger) [3]string { return [3]string{t.Key.Namespace, t.Key.Operation, t.Key.Key} }

func (w *triggers) run() error {
	w.name()
	for _, part := range []func() error{w.holdJobs, w.putKeys, w.judge, w.addEntries, w.findRepeated} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// name says what is to be looked up, up to the first that cannot be kept: judge refuses that one, or one before it.
func (w *triggers) name() {
	for i := range w.all {
		t := &w.all[i]
		if store.CheckTrigger(t) != nil {
			return
		}
		w.jobs[[2]string{t.Namespace, t.Job}] = nil
		if t.Key.Key != "" && w.keys[keyOf(t)] == nil {
			w.keys[keyOf(t)] = &usedKey{RequestKey: t.Key, first: i}
		}
	}
}

// holdJobs locks the jobs of the list and reads them.
func (w *triggers) holdJobs() error {
	var namespaces, names []string
	for k := range w.jobs {
		namespaces, names = append(namespaces, k[0]), append(names, k[1])
	}
	for {
		n, there := 0, 0
		if err := w.each(qJobsToTrigger, []any{namespaces, names}, func(rows pgx.Rows) error {
			var partition int
			d, err := scanDefinition(rows, &partition)
			if err == nil {
				n, w.jobs[[2]string{d.Namespace, d.Name}] = n+1, d
			}
			return err
		}); err != nil || n == len(names) {
			return err
		}
		if _, err := w.one(qJobsThere, []any{namespaces, names}, &there); err != nil || n >= there {
			return err
		}
	}
}

// putKeys keeps the keys that are new, and finds out what the others made. One that a sweep or a deletion of its job
// takes away in between is new.
func (w *triggers) putKeys() error {
	for {
		var ns, operations, keys, hashes []string
		var ids [][]byte
		var ats []int64
		for _, k := range w.keys {
			if t := &w.all[k.first]; !k.fresh && k.execution.IsZero() && w.jobs[[2]string{t.Namespace, t.Job}] != nil {
				ns, operations, keys, hashes = append(ns, k.Namespace), append(operations, k.Operation), append(keys, k.Key), append(hashes, k.Hash)
				ids, ats = append(ids, t.Execution[:]), append(ats, int64(t.Request.At))
			}
		}
		if len(keys) == 0 {
			return nil
		}
		if err := w.each(qKeysPut, []any{ns, operations, keys, hashes, ids, ats}, func(rows pgx.Rows) error {
			var k [3]string
			err := rows.Scan(&k[0], &k[1], &k[2])
			if used := w.keys[k]; err == nil {
				used.fresh, used.hash, used.execution = true, used.Hash, w.all[used.first].Execution
			}
			return err
		}); err != nil {
			return err
		}
		if err := w.each(qKeysOf, []any{ns, operations, keys}, func(rows pgx.Rows) error {
			var k [3]string
			var hash string
			var id [16]byte
			err := rows.Scan(&k[0], &k[1], &k[2], &hash, &id)
			if used := w.keys[k]; err == nil {
				used.hash, used.execution = hash, id
			}
			return err
		}); err != nil {
			return err
		}
	}
}

// judge decides about each in the order of the list; the first that is refused ends it.
func (w *triggers) judge() error {
	for i := range w.all {
		err := w.decide(i)
		if e, ok := errors.AsType[*job.Error](err); ok {
			w.refused.Add(i, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *triggers) decide(i int) error {
	t, out := &w.all[i], &w.out[i]
	if err := store.CheckTrigger(t); err != nil {
		return err
	}
	d := w.jobs[[2]string{t.Namespace, t.Job}]
	if d == nil {
		return noJob(t.Namespace, t.Job)
	}
	*out = store.Triggered{Written: store.Written{Partition: w.partition(*d)}, Execution: t.Execution}
	if t.Key.Key != "" {
		k := w.keys[keyOf(t)]
		if k.hash != t.Key.Hash {
			return job.Errorf(job.KindConflict, "idempotency_key_reused", "the idempotency key %q was used for another request", t.Key.Key).
				WithHint("use a new key for a new request")
		}
		out.Execution, out.Repeated = k.execution, !k.fresh || k.first != i
		if out.Repeated {
			return nil
		}
	}
	params := t.Request.Params
	if t.Merge != nil {
		var err error
		if params, err = t.Merge(*d); err != nil {
			return err
		}
	}
	w.entries, w.params = append(w.entries, i), append(w.params, params)
	return nil
}

// addEntries puts what is no repeat into the inboxes, in the order of the list: those that lie in a row with others, and
// the rest at once.
func (w *triggers) addEntries() error {
	var singles []int // places in entries
	for from := 0; from < len(w.entries); {
		first := &w.all[w.entries[from]]
		n := store.Run(len(w.entries)-from, func(i int) bool { return store.Alike(first, &w.all[w.entries[from+i]]) },
			func(i int) int { return len(w.params[from+i]) })
		if n == 1 {
			singles = append(singles, from)
		} else {
			if err := w.addSingles(singles); err != nil {
				return err
			}
			if err := w.addBulk(from, n); err != nil {
				return err
			}
			singles = nil
		}
		from += n
	}
	return w.addSingles(singles)
}

func (w *triggers) payload(n int) payload {
	t := &w.all[w.entries[n]]
	p := payload{At: t.Request.At, Delayed: t.Request.Delayed, Key: t.Request.Key, Params: w.params[n], Revision: w.jobs[[2]string{t.Namespace, t.Job}].Revision}
	if t.Key.Key != "" {
		p.Kept = &store.RequestKey{Namespace: t.Key.Namespace, Operation: t.Key.Operation, Key: t.Key.Key}
	}
	return p
}

// addBulk puts n entries into one row, or into some when others draw numbers at the same time.
func (w *triggers) addBulk(from, n int) error {
	numbers := make([]int64, 0, n)
	if err := w.each(qEntryNumbers, []any{n}, func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		numbers = append(numbers, id)
		return err
	}); err != nil {
		return err
	}
	for len(numbers) > 0 {
		k := 1
		for k < len(numbers) && numbers[k] == numbers[k-1]+1 {
			k++
		}
		if err := w.addRow(from, numbers[:k]); err != nil {
			return err
		}
		from, numbers = from+k, numbers[k:]
	}
	return nil
}

func (w *triggers) addRow(from int, numbers []int64) error {
	first := w.entries[from]
	t := &w.all[first]
	d := w.jobs[[2]string{t.Namespace, t.Job}]
	b := store.Bulk{At: t.Request.At, Revision: d.Revision, Items: make([]store.BulkItem, len(numbers))}
	for i := range numbers {
		p, at := w.payload(from+i), w.entries[from+i]
		b.Items[i] = store.BulkItem{Execution: w.all[at].Execution, Key: p.Key, Params: p.Params, Kept: p.Kept}
		w.out[at].Entry = numbers[i]
	}
	_, err := w.exec(qBulkInsert, numbers[len(numbers)-1], w.out[first].Partition, entryRest, store.KindBulk, t.Namespace, d.UID[:],
		[16]byte(store.FirstOf(b.Items)), string(b.Append(nil)), len(numbers))
	return err
}

// addSingles puts entries into rows of their own.
func (w *triggers) addSingles(places []int) error {
	var partitions []int32
	var kinds, namespaces, payloads []string
	var uids, ids [][]byte
	for _, n := range places {
		i := w.entries[n]
		t := &w.all[i]
		text, err := encode(w.payload(n))
		if err != nil {
			return err
		}
		d := w.jobs[[2]string{t.Namespace, t.Job}]
		partitions = append(partitions, int32(w.out[i].Partition)) //nolint:gosec // there are at most 4096
		kinds, namespaces, payloads = append(kinds, string(t.Request.TriggerKind())), append(namespaces, t.Namespace), append(payloads, text)
		uids, ids = append(uids, d.UID[:]), append(ids, t.Execution[:])
	}
	if len(ids) == 0 {
		return nil
	}
	n := 0
	insert := question{qEntriesInsert, []any{partitions, entryRest, kinds, namespaces, uids, ids, payloads}, func(rows pgx.Rows) error {
		err := rows.Scan(&w.out[w.entries[places[n]]].Entry)
		n++
		return err
	}}
	if len(places) == len(w.all) { // nothing follows: none of them is a repeat
		w.last = append(w.last, insert)
		return nil
	}
	return w.each(insert.q, insert.args, insert.row)
}

// findRepeated names the entries of what was asked for before and waits for its owner still.
func (w *triggers) findRepeated() error {
	var ids [][]byte
	asked := map[job.ExecutionID]store.Written{}
	for i := range w.out {
		if out := &w.out[i]; !out.Repeated {
			asked[out.Execution] = out.Written
		}
	}
	for i := range w.out {
		if out := &w.out[i]; out.Repeated && asked[out.Execution] == (store.Written{}) {
			ids = append(ids, out.Execution[:])
		}
	}
	if len(ids) > 0 {
		if err := w.each(qEntriesOf, []any{ids}, func(rows pgx.Rows) error {
			var id [16]byte
			var written store.Written
			err := rows.Scan(&id, &written.Entry, &written.Partition)
			asked[id] = written
			return err
		}); err != nil {
			return err
		}
		if err := w.findInBulk(ids, asked); err != nil {
			return err
		}
	}
	for i := range w.out {
		if written, ok := asked[w.out[i].Execution]; ok && w.out[i].Repeated {
			w.out[i].Written = written
		}
	}
	return nil
}

func (w *triggers) findInBulk(ids [][]byte, asked map[job.ExecutionID]store.Written) error {
	for _, raw := range ids {
		id := job.ExecutionID(raw)
		if asked[id] != (store.Written{}) {
			continue
		}
		e, _, partition, err := pendingInBulk(w.link, id)
		if err != nil {
			return err
		}
		if e != nil {
			asked[id] = store.Written{Partition: partition, Entry: e.ID}
		}
	}
	return nil
}
