package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const jobText = `SELECT ` + definitionColumns + `, ` + plannerOf + `
	FROM jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision WHERE j.namespace = $1 AND j.name = $2`

// Who changes a job holds its row FOR UPDATE, who triggers it FOR SHARE: so a trigger pins the revision that is the
// newest until it commits. A row that was changed while one waited for it does not fit its old revision any more and
// is left out, although it is there: who finds nothing looks again.
var (
	qJob         = statement(jobText)
	qJobToChange = statement(jobText + ` FOR UPDATE OF j`)
	qJobThere    = statement(`SELECT 1 FROM jobs WHERE namespace = $1 AND name = $2`)
	qJobInsert   = statement(`INSERT INTO jobs (namespace, name, uid, revision, partition, home, disabled, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (namespace, name) DO NOTHING`)
	qJobUpdate = statement(`UPDATE jobs SET revision = $1, partition = $2, disabled = $3 WHERE namespace = $4 AND name = $5`)
	qRevision  = statement(`INSERT INTO job_revisions (uid, revision, labels, spec, at, author, reason) VALUES ($1, $2, $3, $4, $5, $6, $7)`)
	qDocument  = statement(`SELECT labels, spec FROM job_revisions WHERE uid = $1 AND revision = $2`)

	qEntryInsert = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`)
	qEntryOf     = statement(`SELECT id, kind, job, execution, payload, namespace, partition FROM inbox WHERE execution = $1 AND kind IN ('trigger', 'delayed')`)
	qPending     = statement(`SELECT 1 FROM inbox WHERE id = $1 AND items IS NULL`)

	// An execution moves between these tables while one looks: one statement sees one moment.
	qWhereabouts = statement(`SELECT namespace, partition, false FROM executions WHERE id = $1
		UNION ALL ` + memberBy(`namespace, partition, false`, `$1`) + `
		UNION ALL SELECT namespace, partition, false FROM history_executions WHERE id = $1
		UNION ALL SELECT namespace, partition, true FROM inbox WHERE execution = $1 AND kind IN ('trigger', 'delayed')`)

	// Servers sweep at the same time: one passes over what another has in hand.
	qKeySweep = statement(`DELETE FROM request_keys WHERE ctid = ANY(ARRAY
		(SELECT ctid FROM request_keys WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))`)
)

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
	_, err = w.one(qEntryInsert, []any{partition, rank, string(e.Kind), namespace, uid, id, text}, &out.Entry)
	return out, err
}

// findJob reads a job's newest revision and the partition that plans it; nil when it is not there. What is written to
// that one's inbox while it hands the job over is forwarded by it.
func findJob(l *link, namespace, name string) (d *job.Definition, planner int, err error) {
	return readJob(l, qJob, namespace, name)
}

func readJob(l *link, q query, namespace, name string) (d *job.Definition, planner int, err error) {
	err = l.each(q, []any{namespace, name}, func(rows pgx.Rows) (err error) {
		d, err = scanDefinition(rows, &planner)
		return err
	})
	if err == nil && d != nil {
		err = addCalendars(l, store.KnownCalendars{}, d)
	}
	return d, planner, err
}

// holdJob is findJob for who will change the job: nobody else does before the transaction ends.
func holdJob(w *link, namespace, name string) (d *job.Definition, planner int, err error) {
	for {
		if d, planner, err = readJob(w, qJobToChange, namespace, name); err != nil || d != nil {
			return d, planner, err
		}
		var one int
		if there, err := w.one(qJobThere, []any{namespace, name}, &one); err != nil || !there {
			return nil, 0, err
		}
	}
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
	err := s.write(ctx, "put job", func(w *link) (err error) {
		if err = lockNames(w, []store.PutJob{p}, nil); err != nil {
			return err
		}
		if err = lockDependencies(w, dependent([]store.PutJob{p})...); err != nil {
			return err
		}
		if err = lockCalendars(w, nil, []store.PutJob{p}); err != nil {
			return err
		}
		if out, err = putJob(w, p); err == nil {
			err = linkJob(w, &out)
		}
		if err == nil {
			err = tellOwner(w, &p, &out)
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

func sameDocument(w *link, old *job.Definition, labels *string, spec string) (bool, error) {
	var oldLabels *string
	var oldSpec string
	if _, err := w.one(qDocument, []any{old.UID[:], old.Revision}, &oldLabels, &oldSpec); err != nil {
		return false, err
	}
	sameLabels := (oldLabels == nil) == (labels == nil) && (labels == nil || *labels == *oldLabels)
	return oldSpec == spec && sameLabels, nil
}

// putRevision writes the next revision; false when the job that was not there is there now.
func putRevision(w *link, p store.PutJob, old *job.Definition, labels *string, spec string) (bool, error) {
	d := p.Definition
	d.Revision = 1
	var n int64
	var err error
	if old == nil {
		n, err = w.exec(qJobInsert, d.Namespace, d.Name, d.UID[:], d.Revision, p.Partition, p.Partition, d.Spec.Disabled, int64(p.At))
	} else {
		d.UID, d.Revision = old.UID, old.Revision+1
		n, err = w.exec(qJobUpdate, d.Revision, p.Partition, d.Spec.Disabled, d.Namespace, d.Name)
	}
	if err != nil || n == 0 {
		return false, err
	}
	_, err = w.exec(qRevision, d.UID[:], d.Revision, labels, spec, int64(p.At), p.Change.By, p.Change.Reason)
	return true, err
}

// tellOwner puts a changed job into the inbox of its planner: that of a new one is the partition of its pool.
func tellOwner(w *link, p *store.PutJob, out *store.AppliedJob) (err error) {
	if out.Action == store.ActionUnchanged {
		return nil
	}
	e := engine.Entry{Kind: engine.EntryJobChanged, Job: out.Definition.UID}
	out.Written, err = addEntry(w, out.Written.Partition, p.Definition.Namespace, entryRest, e, payload{At: p.At})
	return err
}

// pendingTrigger finds the inbox entry that asks for an execution; nil when its owner has taken it.
func pendingTrigger(l *link, id job.ExecutionID) (found *entry, namespace string, partition int, err error) {
	err = l.each(qEntryOf, []any{id[:]}, func(rows pgx.Rows) error {
		e, err := scanEntry(rows, &namespace, &partition)
		found = &e
		return err
	})
	if err == nil && found == nil {
		return pendingInBulk(l, id)
	}
	return found, namespace, partition, err
}

// Ask implements store.Control. What waits for its owner can only be cancelled behind its trigger.
func (s *Store) Ask(ctx context.Context, a store.Ask) (store.Written, error) {
	if a.Kind != engine.EntryCancel && a.Kind != engine.EntryRerun && a.Kind != engine.EntryReschedule {
		return store.Written{}, job.Errorf(job.KindInvalid, "bad_kind", "%q is nothing to ask about an execution", a.Kind)
	}
	if err := store.CheckAsk(&a); err != nil {
		return store.Written{}, err
	}
	var out store.Written
	err := s.write(ctx, "ask", func(w *link) error {
		if err := keepFromSweeps(w); err != nil {
			return err
		}
		var namespace string
		var partition int
		var waits bool
		inBulk, ns, p, err := pendingInBulk(w, a.Execution) // what is taken meanwhile is found next
		if err != nil {
			return err
		}
		found, err := w.one(qWhereabouts, []any{a.Execution[:]}, &namespace, &partition, &waits)
		if err != nil {
			return err
		}
		if !found && inBulk != nil {
			found, namespace, partition, waits = true, ns, p, true
		}
		if !found || namespace != a.Namespace {
			return noExecution(a.Namespace, a.Execution)
		}
		if a.Kind == engine.EntryReschedule {
			if err := reschedule(w, &a); err != nil {
				return err
			}
		}
		rank := entryRest
		if a.Kind == engine.EntryCancel && !waits {
			rank = entryFirst
		}
		out, err = addEntry(w, partition, a.Namespace, rank, engine.Entry{Kind: a.Kind, Execution: a.Execution}, payload{At: a.Instant(), Note: a.Note})
		return err
	})
	if err != nil {
		return store.Written{}, err
	}
	return out, nil
}

// EntryPending implements store.Control. Requests that wait for long ask this again and again, most of them when the machine has no
// time for it: it takes one way to the database.
func (s *Store) EntryPending(ctx context.Context, entry int64) (pending bool, err error) {
	from, to := store.BulkRange([]int64{entry})
	err = s.askOf(ctx, s.lists, "read inbox", question{qPending, []any{entry}, func(pgx.Rows) error {
		pending = true
		return nil
	}}, question{qBulkOfEntry, []any{from, to}, func(rows pgx.Rows) error {
		r, err := scanBulk(rows)
		pending = pending || err == nil && r.Waits(entry)
		return err
	}})
	return pending, err
}

// SweepRequestKeys implements store.Control.
func (s *Store) SweepRequestKeys(ctx context.Context, before job.Instant, limit int) (int, error) {
	var n int64
	err := s.write(ctx, "sweep request keys", func(w *link) (err error) {
		n, err = w.exec(qKeySweep, int64(before), limit)
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(n), nil
}
