package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// qEntriesOfKnown puts entries in if their job is as it was when it was read (a database that forgot its tail may give the number of a
// revision to another one, of another instant), and holds it so to the end of the transaction, which is this
// statement alone.
var qEntriesOfKnown = statement(`WITH held AS (SELECT uid FROM jobs
		WHERE namespace = $3 AND name = $4 AND uid = $5 AND revision = $6 AND pause IS NOT DISTINCT FROM $7
			AND (SELECT r.at FROM job_revisions r WHERE r.uid = jobs.uid AND r.revision = jobs.revision) = $11 FOR SHARE)
	INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload)
		SELECT $1, $2, a.kind, $3, held.uid, a.execution, a.payload
		FROM held CROSS JOIN unnest($8::text[], $9::uuid[], $10::text[]) WITH ORDINALITY AS a (kind, execution, payload, n) ORDER BY a.n ` + entrySaid)

// knownJobs are jobs as they were when they were last read for a trigger. What they say is looked at in the transaction that rests on it.
type knownJobs struct {
	mu sync.Mutex
	of map[[2]string]knownJob // by namespace and name
}

type knownJob struct {
	definition *job.Definition // nobody changes it
	pause      *string         // as it is stored
}

// These bound what is kept: jobs that say more than knownBytes are read each time.
const (
	jobsKnown  = 1024
	knownBytes = 16 << 10
)

func (k *knownJobs) get(namespace, name string) (knownJob, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, is := k.of[[2]string{namespace, name}]
	return known, is
}

func (k *knownJobs) put(known knownJob) {
	if store.SizeOfDefinition(known.definition) > knownBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil || len(k.of) >= jobsKnown {
		k.of = map[[2]string]knownJob{}
	}
	k.of[[2]string{known.definition.Namespace, known.definition.Name}] = known
}

func (k *knownJobs) drop(d *job.Definition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, [2]string{d.Namespace, d.Name})
}

// freshMost is how long the connection may have been idle over which a transaction leaves in one write. Of one that breaks then it is
// not known what became of it; of one whose BEGIN was answered before, it is.
const freshMost = 50 * time.Millisecond

// alikeMost is how many entries that could lie in one row with another are given rows of their own instead.
const alikeMost = 8

// triggersOfKnown is Triggers in one way to the database, for requests without keys for one job that is known. Not done: nothing was
// written, and whatever is in the way, such as a job that was changed since, is found out the other way.
func (s *Store) triggersOfKnown(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) (out []store.Triggered, done bool, err error) {
	known, is := s.knownJobs.get(all[0].Namespace, all[0].Job)
	if !is || !plainTriggers(all) {
		return nil, false, nil
	}
	t := newTriggers(all, partition)
	t.jobs[[2]string{all[0].Namespace, all[0].Job}] = known.definition
	var rows entryRows
	if t.judge() != nil || t.addAlone(&rows) != nil {
		return nil, false, nil
	}
	c, err := s.people.Acquire(ctx)
	if err != nil {
		return nil, false, nil // who asks for another one is told
	}
	defer s.people.release(c)
	if idle, told := c.Conn().PgConn().CustomData()[idleTime].(time.Duration); !told || idle > s.people.fresh || severed(c.Conn().PgConn().Conn()) {
		return nil, false, nil
	}
	switch done, err = s.putOfKnown(ctx, c, &t, &rows, &known); {
	case !done:
		s.knownJobs.drop(known.definition)
		return nil, false, nil
	case err != nil:
		return nil, true, err
	}
	t.tell(&s.singles)
	return t.out, true, nil
}

// plainTriggers tells whether requests are for one job, without keys, and would not save much in common rows.
func plainTriggers(all []store.Trigger) bool {
	alike := 0
	for i := range all {
		t := &all[i]
		if t.Key.Key != "" || t.Namespace != all[0].Namespace || t.Job != all[0].Job || store.CheckTrigger(t) != nil {
			return false
		}
		if i > 0 && store.Alike(&all[i-1], t) {
			alike++
		}
	}
	return alike < alikeMost
}

// addAlone makes a row of each entry.
func (w *triggers) addAlone(rows *entryRows) error {
	for n := range w.entries {
		if err := w.single(rows, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) putOfKnown(ctx context.Context, c *pgxpool.Conn, t *triggers, r *entryRows, known *knownJob) (done bool, err error) {
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.people.writes) // see transactOn
	defer cancel()
	text, d := texts[qEntriesOfKnown], known.definition
	begin, leave := context.WithTimeout(patience, s.people.begins)
	_, err = c.Conn().Prepare(begin, text, text) // asks the database once per connection
	if leave(); err != nil {
		return false, nil // nothing was written
	}
	next := 0
	rows, err := c.Conn().Query(patience, text, r.partitions[0], entryRest, d.Namespace, d.Name, [16]byte(d.UID), d.Revision, known.pause, r.kinds, r.ids, r.payloads, int64(d.UpdatedAt))
	if err == nil {
		for rows.Next() {
			if next++; err == nil {
				err = t.note(rows, &t.out[t.entries[next-1]].Entry)
			}
		}
		rows.Close()
		err = errors.Join(err, rows.Err())
	}
	if err == nil {
		return next > 0, nil
	}
	return s.failedOfKnown(patience, c, err)
}

// failedOfKnown judges an error of the only statement. What the database says of it is said before it commits; then nothing was written.
func (s *Store) failedOfKnown(ctx context.Context, c *pgxpool.Conn, err error) (done bool, _ error) {
	const op = "trigger"
	pg, said := errors.AsType[*pgconn.PgError](err)
	switch {
	case !said || pg.SeverityUnlocalized != "ERROR":
		return !pgconn.SafeToRetry(err), classifyCommit(op, err)
	case pg.Code == codeChanged || pg.Code == codeNoStatement: // see askSoon
		_ = c.Conn().Close(ctx)
		return false, nil
	case raced(pg.Code):
		return false, nil
	}
	return true, s.failed(op, err)
}
