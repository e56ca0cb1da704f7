package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Ranks of inbox entries: cancels, pauses and deletions overtake.
const (
	entryFirst int64 = 0
	entryRest  int64 = 1
)

var (
	qJob = statement(`SELECT ` + definitionColumns + `, ` + plannerOf + `
		FROM jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision WHERE j.namespace = ? AND j.name = ?`)
	qJobInsert = statement(`INSERT INTO jobs (namespace, name, uid, revision, partition, home, disabled, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
	qJobUpdate = statement(`UPDATE jobs SET revision = ?, partition = ?, disabled = ? WHERE namespace = ? AND name = ?`)
	qRevision  = statement(`INSERT INTO job_revisions (uid, revision, labels, spec, at, author, reason) VALUES (?, ?, ?, ?, ?, ?, ?)`)
	qDocument  = statement(`SELECT labels, spec FROM job_revisions WHERE uid = ? AND revision = ?`)

	qEntryInsert = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`)
	qEntryOf     = statement(`SELECT id, kind, job, execution, payload, namespace, partition FROM inbox WHERE execution = ? AND kind IN ('trigger', 'delayed')`)
	qPending     = statement(`SELECT 1 FROM inbox WHERE id = ? AND items IS NULL`)

	qKey       = statement(`SELECT hash, execution FROM request_keys WHERE namespace = ? AND operation = ? AND key = ?`)
	qKeyInsert = statement(`INSERT INTO request_keys (namespace, operation, key, hash, execution, at) VALUES (?, ?, ?, ?, ?, ?)`)
	qKeyDrop   = statement(`DELETE FROM request_keys WHERE namespace = ? AND operation = ? AND key = ? AND execution = ?`)
	qKeySweep  = statement(`DELETE FROM request_keys WHERE (namespace, operation, key) IN
		(SELECT namespace, operation, key FROM request_keys WHERE at < ? ORDER BY at LIMIT ?)`)
)

// payload is the part of an entry that nothing looks for.
type payload struct {
	At       job.Instant       `json:"at,omitempty"`
	Key      string            `json:"key,omitempty"`
	Params   json.RawMessage   `json:"params,omitempty"`
	Revision int64             `json:"revision,omitempty"` // of the job, that a trigger is for
	Kept     *store.RequestKey `json:"kept,omitempty"`     // that leads to a trigger's execution
	Note     string            `json:"note,omitempty"`
	Delayed  bool              `json:"delayed,omitempty"` // of a trigger: not before At
}

// entry is an inbox entry as it is stored.
type entry struct {
	engine.Entry
	revision int64             // that it is about; 0: whichever is the newest
	kept     *store.RequestKey // without its hash; nil: none
	bulk     []byte            // the payload of a row that holds many
}

func scanEntry(rows *sql.Rows, more ...any) (entry, error) {
	var e entry
	var uid, id sql.RawBytes
	var text sql.NullString
	if err := rows.Scan(append([]any{&e.ID, (*string)(&e.Kind), &uid, &id, &text}, more...)...); err != nil {
		return e, err
	}
	copy(e.Job[:], uid)
	copy(e.Execution[:], id)
	if e.Kind == store.KindBulk {
		e.bulk = []byte(text.String)
		return e, nil // see eachEntry
	}
	var p payload
	if err := decode("payload of an inbox entry", text, &p); err != nil {
		e.Kind = store.UnfitEntry(e.Kind)
		return e, nil //nolint:nilerr // a kind that nobody knows is left alone, with an alarm
	}
	e.Note, e.revision, e.kept = p.Note, p.Revision, p.Kept
	if e.Kind.Triggers() || e.Kind == engine.EntryReschedule {
		e.Request = &engine.Request{At: p.At, Delayed: p.Delayed, Key: p.Key, Params: p.Params}
	}
	return e, nil
}

// addEntry puts an entry into a partition's inbox and returns its receipt.
func addEntry(w *link, partition int, namespace string, rank int64, e engine.Entry, p payload) (store.Written, error) {
	out := store.Written{Partition: partition}
	text, err := encode(p)
	if err != nil {
		return out, err
	}
	var uid, id any
	if !e.Job.IsZero() {
		uid = e.Job[:]
	}
	if !e.Execution.IsZero() {
		id = e.Execution[:]
	}
	_, err = w.one(qEntryInsert, []any{int64(partition), rank, string(e.Kind), namespace, uid, id, text}, &out.Entry)
	return out, err
}

// findJob reads a job's newest revision and the partition that plans it; nil when it is not there. What is written to
// that one's inbox while it hands the job over is forwarded by it.
func findJob(l *link, namespace, name string) (d *job.Definition, planner int, err error) {
	err = l.each(qJob, []any{namespace, name}, func(rows *sql.Rows) (err error) {
		d, err = scanDefinition(rows, &planner)
		return err
	})
	if err == nil && d != nil {
		err = addCalendars(l, store.KnownCalendars{}, d)
	}
	return d, planner, err
}

func noJob(namespace, name string) error {
	return job.Errorf(job.KindNotFound, "job_not_found", "there is no job %q in namespace %q", name, namespace)
}

func noExecution(namespace string, id job.ExecutionID) error {
	return job.Errorf(job.KindNotFound, "execution_not_found", "there is no execution %s in namespace %q", id, namespace)
}

// PutJob implements store.Control.
func (s *Store) PutJob(ctx context.Context, p store.PutJob) (job.Definition, store.Written, error) {
	if err := store.CheckPutJob(&p); err != nil {
		return job.Definition{}, store.Written{}, err
	}
	var out store.AppliedJob
	err := s.write(ctx, rankPeople, "put job", func(w *link) (err error) {
		if out, err = putJob(w, p); err == nil {
			err = linkJob(w, &out)
		}
		return err
	})
	if err != nil {
		return job.Definition{}, store.Written{}, err
	}
	return out.Definition, out.Written, nil
}

func mayPut(p store.PutJob, old *job.Definition) error {
	have := int64(0)
	if old != nil {
		have = old.Revision
	}
	if p.IfRevision > 0 && have != p.IfRevision || p.IfRevision < 0 && have != 0 {
		return revisionChanged(p.Definition.Name, have)
	}
	return nil
}

func revisionChanged(name string, have int64) error {
	return job.Errorf(job.KindConflict, "revision_changed", "the job %q has revision %d, not the one asked for", name, have).
		WithHint("read the job again and repeat the change")
}

func sameDocument(w *link, old *job.Definition, labels any, spec string) (bool, error) {
	var oldLabels sql.NullString
	var oldSpec string
	if _, err := w.one(qDocument, []any{old.UID[:], old.Revision}, &oldLabels, &oldSpec); err != nil {
		return false, err
	}
	text, _ := labels.(string)
	return oldSpec == spec && oldLabels.String == text, nil
}

// putRevision tells the planner of the job: that of a new one is the partition of its pool.
func putRevision(w *link, p store.PutJob, old *job.Definition, planner int, labels any, spec string) (store.Written, error) {
	d := p.Definition
	d.Revision = 1
	disabled := flag(d.Spec.Disabled)
	var err error
	if old == nil {
		planner = p.Partition
		_, err = w.exec(qJobInsert, d.Namespace, d.Name, d.UID[:], d.Revision, int64(p.Partition), int64(planner), disabled, int64(p.At))
	} else {
		d.UID, d.Revision = old.UID, old.Revision+1
		_, err = w.exec(qJobUpdate, d.Revision, int64(p.Partition), disabled, d.Namespace, d.Name)
	}
	if err != nil {
		return store.Written{}, err
	}
	if _, err := w.exec(qRevision, d.UID[:], d.Revision, labels, spec, int64(p.At), p.Change.By, p.Change.Reason); err != nil {
		return store.Written{}, err
	}
	return addEntry(w, planner, d.Namespace, entryRest, engine.Entry{Kind: engine.EntryJobChanged, Job: d.UID}, payload{At: p.At})
}

// pendingTrigger finds the inbox entry that asks for an execution; nil when its owner has taken it.
func pendingTrigger(l *link, id job.ExecutionID) (found *entry, namespace string, partition int, err error) {
	err = l.each(qEntryOf, []any{id[:]}, func(rows *sql.Rows) error {
		e, err := scanEntry(rows, &namespace, &partition)
		found = &e
		return err
	})
	if err == nil && found == nil {
		return pendingInBulk(l, id)
	}
	return found, namespace, partition, err
}

// Ask implements store.Control.
func (s *Store) Ask(ctx context.Context, a store.Ask) (store.Written, error) {
	if a.Kind != engine.EntryCancel && a.Kind != engine.EntryRerun && a.Kind != engine.EntryReschedule {
		return store.Written{}, job.Errorf(job.KindInvalid, "bad_kind", "%q is nothing to ask about an execution", a.Kind)
	}
	if err := store.CheckAsk(&a); err != nil {
		return store.Written{}, err
	}
	var out store.Written
	err := s.write(ctx, rankPeople, "ask", func(w *link) error {
		e, err := findExecution(w, a.Execution)
		if err != nil {
			return err
		}
		var namespace string
		var partition int
		var waits *entry
		rank := entryRest
		if e != nil {
			namespace, partition = e.Namespace, e.Partition
			if a.Kind == engine.EntryCancel {
				rank = entryFirst
			}
		} else if waits, namespace, partition, err = pendingTrigger(w, a.Execution); err != nil { // can only be cancelled behind its trigger
			return err
		}
		if namespace == "" || namespace != a.Namespace {
			return noExecution(a.Namespace, a.Execution)
		}
		if a.Kind == engine.EntryReschedule {
			if err := reschedule(w, e, waits, &a); err != nil {
				return err
			}
		}
		out, err = addEntry(w, partition, a.Namespace, rank, engine.Entry{Kind: a.Kind, Execution: a.Execution}, payload{At: a.Instant(), Note: a.Note})
		return err
	})
	if err != nil {
		return store.Written{}, err
	}
	return out, nil
}

// EntryPending implements store.Control.
func (s *Store) EntryPending(ctx context.Context, entry int64) (pending bool, err error) {
	err = s.look(ctx, "read inbox", func(r *link) error {
		var one int64
		if pending, err = r.one(qPending, []any{entry}, &one); err == nil && !pending {
			pending, err = bulkPending(r, entry)
		}
		return err
	})
	return pending, err
}

// SweepRequestKeys implements store.Control.
func (s *Store) SweepRequestKeys(ctx context.Context, before job.Instant, limit int) (int, error) {
	var n int64
	err := s.write(ctx, rankPeople, "sweep request keys", func(w *link) (err error) {
		n, err = w.exec(qKeySweep, int64(before), int64(limit))
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(n), nil
}
