package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qFence = statement(`UPDATE partitions SET seq = ?1, last_token = max(last_token, ?2)
		WHERE id = ?3 AND owner = ?4 AND epoch = ?5 AND seq = ?1 - 1`)
	qConsume = statement(`DELETE FROM inbox WHERE id = ? AND partition = ? AND items IS NULL`)
	qForward = statement(`UPDATE inbox SET partition = ? WHERE id = ? AND partition = ? AND items IS NULL`)
	qEntry   = statement(`SELECT 1 FROM inbox WHERE id = ? AND partition = ?`)
	qTrigger = statement(`SELECT id, kind, job, execution, payload FROM inbox WHERE id = ? AND partition = ? AND kind IN ('trigger', 'delayed')`)
	qJournal = statement(`INSERT INTO journal (partition, seq, epoch, at, facts) VALUES (?, ?, ?, ?, ?)`)

	// Only the planner of a job writes its cursors. A new one is let in by who has the others of its job, and when there
	// are none by the job's home, which never changes: so no two partitions can pass at a time, and no lock is needed.
	qCursorUpdate = statement(`UPDATE cursors SET revision = ?, next = ?, last = ?, held = ?, stamp = ?, owed = ?, owed_to = ?, owed_later = ?, runs = ? WHERE job = ? AND schedule = ? AND partition = ?`)
	qCursorInsert = statement(`INSERT INTO cursors (job, schedule, partition, revision, next, last, held, stamp, owed, owed_to, owed_later, runs, failures)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 WHERE ` + plannerOf1 + ` = ?3 ON CONFLICT DO NOTHING`)
	qCursorPut = statement(`INSERT INTO cursors (job, schedule, partition, revision, next, last, held, stamp, owed, owed_to, owed_later, runs, failures) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job, schedule) DO UPDATE SET partition = excluded.partition, revision = excluded.revision,
		next = excluded.next, last = excluded.last, held = excluded.held, stamp = excluded.stamp,
		owed = excluded.owed, owed_to = excluded.owed_to, owed_later = excluded.owed_later, runs = excluded.runs`)
	qStreak         = statement(`UPDATE cursors SET failures = CASE WHEN NOT ?1 THEN failures + ?2 WHEN ?3 > 0 AND failures >= ?3 THEN failures ELSE 0 END WHERE job = ?4 AND partition = ?5`)
	qCursorDrop     = statement(`DELETE FROM cursors WHERE job = ? AND schedule = ? AND partition = ?`)
	qHandover       = statement(`UPDATE cursors SET partition = ? WHERE job = ? AND partition = ?`)
	qDecisionInsert = statement(`INSERT INTO decisions (job, namespace, name, schedule, kind, reason, "from", "to", count, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	qSessionPut = statement(`INSERT INTO sessions (` + sessionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET partition = excluded.partition, namespace = excluded.namespace, pool = excluded.pool,
		worker = excluded.worker, incarnation = excluded.incarnation, handlers = excluded.handlers, slots = excluded.slots,
		labels = excluded.labels, build = excluded.build, ttl = excluded.ttl, beat = excluded.beat, margin = excluded.margin,
		opened_at = excluded.opened_at, unheard = excluded.unheard`)
	qSessionEnd   = statement(`DELETE FROM sessions WHERE id = ?`)
	qPoisonInsert = statement(`INSERT INTO poison (partition, seq, at, entry, kind, event, error) VALUES (?, ?, ?, ?, ?, ?, ?)`)
)

// Commit implements store.Engine. f.Seq is not looked at: b.Seq says where the batch belongs.
func (s *Store) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	if err := store.CheckBatch(b); err != nil {
		return err
	}
	facts := string(engine.PackFacts(nil, b.Facts))
	again, err := s.commit(ctx, f, b, facts, false)
	if again { // nothing was written; a row that is refused is found by itself, and named
		_, err = s.commit(ctx, f, b, facts, true)
	}
	return err
}

// commit writes the batch in one transaction. again: a row of several written at once was refused.
func (s *Store) commit(ctx context.Context, f store.Fence, b *engine.Batch, facts string, singly bool) (again bool, err error) {
	err = s.write(ctx, rankCommit, "commit", func(w *link) error {
		c := commit{link: w, skip: s.skip, fence: f, batch: b, singly: singly, ended: map[job.ExecutionID]*ending{}}
		for _, part := range []func() error{c.takeFence, c.dropKeys, c.consume, c.forward, c.executions, c.shards, c.moveEnded, c.cursors, c.backfills, c.sent, c.sessions, c.records, c.matched, c.tellChildren} {
			if err := part(); err != nil {
				again = errors.Is(err, errSingly)
				return err
			}
		}
		_, err := w.exec(qJournal, int64(f.Partition), b.Seq, int64(f.Epoch), int64(b.At), facts)
		return err
	})
	return again, err
}

// commit is the work of one transaction.
type commit struct {
	*link
	skip   mutant
	fence  store.Fence
	batch  *engine.Batch
	singly bool                        // write row by row
	ended  map[job.ExecutionID]*ending // those with shards apart
	order  []job.ExecutionID           // of ended
	rows   []store.RowWrite
	apart  []*engine.ShardWrite // shards that do not lie in the row of their execution
	late   []*engine.ShardWrite // of those, new ones of executions that are there
	args   []any                // scratch
	text   []byte               // scratch
}

// ending is an execution that moves to history in this commit.
type ending struct {
	total int // its shards
	moved int // of them, by their own write
}

// takeFence is the first statement: its row lock and its condition are R2.
func (c *commit) takeFence() error {
	f, b := c.fence, c.batch
	if f.Owner == "" && !c.skip.fence { // a released partition has no owner, which is nobody's name
		return fenced("fence", "commit %d of partition %d by nobody", b.Seq, f.Partition)
	}
	n, err := c.exec(qFence, b.Seq, int64(b.LastToken), int64(f.Partition), f.Owner, int64(f.Epoch))
	if err != nil {
		return err
	}
	if n == 0 && !c.skip.fence {
		return fenced("fence", "commit %d of partition %d by %q under epoch %d: the partition has moved on", b.Seq, f.Partition, f.Owner, f.Epoch)
	}
	return nil
}

// dropKeys forgets the request keys of triggers that are set aside: they lead to no execution, so that
// asking again must be a new request.
func (c *commit) dropKeys() error {
	for i := range c.batch.Poison {
		var set *entry
		if err := c.each(qTrigger, []any{c.batch.Poison[i].Entry, int64(c.fence.Partition)}, func(rows *sql.Rows) error {
			e, err := scanEntry(rows)
			set = &e
			return err
		}); err != nil {
			return err
		}
		if set == nil {
			var err error
			if set, err = bulkEntry(c.link, c.fence.Partition, c.batch.Poison[i].Entry); err != nil {
				return err
			}
		}
		if set == nil || set.kept == nil {
			continue
		}
		if _, err := c.exec(qKeyDrop, set.kept.Namespace, set.kept.Operation, set.kept.Key, set.Execution[:]); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) consume() error {
	consumed, err := c.consumeBulk(c.batch.Consumed)
	if err != nil {
		return err
	}
	if !c.singly && !c.skip.consume {
		return c.consumeMany(consumed)
	}
	for _, id := range consumed {
		n, err := c.takeEntry(id)
		if err != nil {
			return err
		}
		if n == 0 {
			return fenced("entry_guard", "inbox entry %d of partition %d is not there", id, c.fence.Partition)
		}
	}
	return nil
}

func (c *commit) forward() error {
	for _, f := range c.batch.Forwarded {
		n, err := c.exec(qForward, int64(f.Partition), f.Entry, int64(c.fence.Partition))
		if err != nil {
			return err
		}
		if n == 0 {
			return fenced("entry_guard", "inbox entry %d of partition %d is not there", f.Entry, c.fence.Partition)
		}
	}
	return nil
}

func (c *commit) takeEntry(id int64) (int64, error) {
	if c.skip.consume {
		var one int64
		_, err := c.one(qEntry, []any{id, int64(c.fence.Partition)}, &one)
		return one, err
	}
	return c.exec(qConsume, id, int64(c.fence.Partition))
}

func (c *commit) cursors() error {
	for _, s := range c.batch.Streaks {
		if _, err := c.exec(qStreak, s.Reset, int64(s.Failed), int64(s.Most), s.Job[:], int64(c.fence.Partition)); err != nil {
			return err
		}
	}
	for i := range c.batch.Cursors {
		if err := c.cursor(&c.batch.Cursors[i]); err != nil {
			return err
		}
	}
	for i := range c.batch.DropCursors {
		k := &c.batch.DropCursors[i]
		if _, err := c.exec(qCursorDrop, k.Job[:], k.Schedule, int64(c.fence.Partition)); err != nil {
			return err
		}
	}
	for i := range c.batch.Handovers {
		h := &c.batch.Handovers[i]
		n, err := c.exec(qHandover, int64(h.Partition), h.Job[:], int64(c.fence.Partition))
		if err == nil && n == 0 && !c.skip.planner {
			err = c.notPlanned(h.Job)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) cursor(k *job.Cursor) error {
	if c.skip.planner {
		_, err := c.exec(qCursorPut, k.Job[:], k.Schedule, int64(c.fence.Partition), k.Revision, int64(k.Next), int64(k.Last), int64(k.Held), k.Stamp,
			int64(k.Owed), int64(k.OwedTo), k.OwedLater, k.Runs, int64(k.Failures))
		return err
	}
	n, err := c.exec(qCursorUpdate, k.Revision, int64(k.Next), int64(k.Last), int64(k.Held), k.Stamp, int64(k.Owed), int64(k.OwedTo), k.OwedLater, k.Runs, k.Job[:], k.Schedule, int64(c.fence.Partition))
	if err == nil && n == 0 {
		n, err = c.exec(qCursorInsert, k.Job[:], k.Schedule, int64(c.fence.Partition), k.Revision, int64(k.Next), int64(k.Last), int64(k.Held), k.Stamp,
			int64(k.Owed), int64(k.OwedTo), k.OwedLater, k.Runs, int64(k.Failures))
	}
	if err == nil && n == 0 {
		err = c.notPlanned(k.Job)
	}
	return err
}

func (c *commit) notPlanned(u job.UID) error {
	return fenced("planner_guard", "job %s is not planned by partition %d", u, c.fence.Partition)
}

func (c *commit) sessions() error {
	for i := range c.batch.Sessions {
		args, err := sessionArgs(&c.batch.Sessions[i])
		if err != nil {
			return err
		}
		if _, err := c.exec(qSessionPut, args...); err != nil {
			return err
		}
	}
	for _, id := range c.batch.EndSessions {
		if _, err := c.exec(qSessionEnd, string(id)); err != nil {
			return err
		}
	}
	return nil
}

// records are the rows that only grow: decisions and poison.
func (c *commit) records() error {
	b := c.batch
	for i := range b.Decisions {
		d := &b.Decisions[i]
		if _, err := c.exec(qDecisionInsert, d.Job[:], d.Namespace, d.Name, d.Schedule, string(d.Kind), string(d.Reason),
			int64(d.From), int64(d.To), d.Count, int64(d.At)); err != nil {
			return err
		}
	}
	for i := range b.Poison {
		p := &b.Poison[i]
		if _, err := c.exec(qPoisonInsert, int64(c.fence.Partition), b.Seq, int64(b.At), p.Entry, store.MakeClean(p.Kind),
			text([]byte(store.MakeClean(string(p.Event)))), store.MakeClean(p.Error)); err != nil {
			return err
		}
	}
	return nil
}
