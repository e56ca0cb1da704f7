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
	qJobsToTrigger = statement(`SELECT ` + definitionColumns + `, j.pause FROM unnest($1::text[], $2::text[]) AS a (namespace, name)
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
		ORDER BY a.n ` + entrySaid)
	qEntriesPut = statement(`INSERT INTO inbox (id, partition, rank, kind, namespace, job, execution, payload, items) OVERRIDING SYSTEM VALUE
		SELECT a.id, a.partition, $3, a.kind, a.namespace, a.job, a.execution, a.payload, a.items
		FROM unnest($1::bigint[], $2::integer[], $4::text[], $5::text[], $6::uuid[], $7::uuid[], $8::text[], $9::integer[]) AS a (id, partition, kind, namespace, job, execution, payload, items) ` + entrySaid)
)

// entrySaid is what a new entry's owner needs to know of it, see triggers.note.
const entrySaid = `RETURNING id, partition, (SELECT p.seq FROM partitions p WHERE p.id = inbox.partition)`

// Trigger implements store.Control.
func (s *Store) Trigger(ctx context.Context, t store.Trigger, partition func(job.Definition) int) (store.Triggered, error) {
	return store.TriggerOne(ctx, s, t, partition)
}

// Triggers implements store.Control.
func (s *Store) Triggers(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) ([]store.Triggered, error) {
	if len(all) == 0 {
		return []store.Triggered{}, nil
	}
	if out, done, err := s.triggersOfKnown(ctx, all, partition); done {
		return out, err
	}
	var t triggers
	err := s.writeInFew(ctx, s.people, "trigger", func(w *link) error {
		t = newTriggers(all, partition)
		t.link, t.known = w, &s.knownJobs
		return t.run()
	})
	switch {
	case len(t.refused.Items) > 0:
		return nil, &t.refused
	case err != nil:
		return nil, err
	}
	t.tell(&s.singles)
	return t.out, nil
}

func newTriggers(all []store.Trigger, partition func(job.Definition) int) triggers {
	return triggers{all: all, partition: partition, out: make([]store.Triggered, len(all)),
		jobs: map[[2]string]*job.Definition{}, keys: map[[3]string]*usedKey{}, seqs: map[int]int64{}}
}

// triggers is the work of one transaction.
type triggers struct {
	*link
	known     *knownJobs
	all       []store.Trigger
	partition func(job.Definition) int
	out       []store.Triggered
	refused   job.SetError
	jobs      map[[2]string]*job.Definition // that are there and held, by namespace and name
	keys      map[[3]string]*usedKey
	entries   []int // places of those that are no repeats
	params    []json.RawMessage
	numbers   []int64       // for entries, in their order; where none lie in one row, they get them when they are written
	alone     []int         // places of entries with a row of their own
	rows      []run         // of others
	seqs      map[int]int64 // newest commits, by partition
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
		hold := question{qJobsToTrigger, []any{namespaces, names}, func(rows pgx.Rows) error {
			var pause *string
			d, err := scanDefinition(rows, &pause)
			if err == nil {
				n, w.jobs[[2]string{d.Namespace, d.Name}] = n+1, d
				w.known.put(knownJob{d, pause})
			}
			return err
		}}
		if _, err := w.ask(w.withNumbers(hold)...); err != nil || n == len(names) {
			return err
		}
		if _, err := w.one(qJobsThere, []any{namespaces, names}, &there); err != nil || n >= there {
			return err
		}
	}
}

// withNumbers asks for the numbers of entries, too, if some may lie in one row and that was not done.
func (w *triggers) withNumbers(q question) []question {
	if len(w.numbers) > 0 || !w.someAlike() {
		return []question{q}
	}
	return []question{q, {qEntryNumbers, []any{len(w.all)}, func(rows pgx.Rows) error { return rows.Scan(&w.numbers) }}}
}

// someAlike tells whether any two that follow each other may lie in one row.
func (w *triggers) someAlike() bool {
	for i := 1; i < len(w.all); i++ {
		if store.Alike(&w.all[i-1], &w.all[i]) {
			return true
		}
	}
	return false
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
				WithHint("use a new key for a new request: the same key goes with the same parameters and the same instant")
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

// addEntries puts what is no repeat into the inboxes, in one statement. Without repeats nothing follows, and it goes along with COMMIT.
func (w *triggers) addEntries() error {
	for i, at := range w.entries {
		if len(w.numbers) > 0 {
			w.out[at].Entry = w.numbers[i]
		}
	}
	var rows entryRows
	for from := 0; from < len(w.entries); {
		first := &w.all[w.entries[from]]
		n := store.Run(len(w.entries)-from, func(i int) bool {
			return len(w.numbers) > 0 && store.Alike(first, &w.all[w.entries[from+i]]) && w.numbers[from+i] == w.numbers[from]+int64(i)
		}, func(i int) int { return len(w.params[from+i]) })
		if n > 1 {
			w.bulk(&rows, from, n)
		} else if err := w.single(&rows, from); err != nil {
			return err
		}
		from += n
	}
	if len(rows.ids) == 0 {
		return nil
	}
	put := w.put(&rows)
	if len(w.entries) == len(w.all) {
		w.last = append(w.last, put)
		return nil
	}
	_, err := w.ask(put)
	return err
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
