package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const entryMissing = `SELECT min(x)::text FROM unnest($1) x WHERE x NOT IN (SELECT id FROM done)`

// SQLSTATEs of takt_guard.
const (
	guardFence     = "TK001"
	guardEntry     = "TK002"
	guardExecution = "TK003"
	guardShard     = "TK004"
	guardPlanner   = "TK005"
	guardBackfill  = "TK006"
)

// guard ends a statement whose rows are those of the CTE done: unless there are as many as wanted, the transaction ends, with
// what the query missing finds as its detail. (OFFSET keeps the planner from asking twice.)
func guard(code, wanted, missing string) string {
	return ` SELECT takt_guard(ok, '` + code + `', CASE WHEN NOT ok THEN (` + missing + `) END)
		FROM (SELECT (SELECT count(*) FROM done) = ` + wanted + ` AS ok OFFSET 0) o`
}

// keyed is the place (ctid) of each row of a table that an array of keys leads to. A row is looked for by itself, in a
// subquery that OFFSET keeps apart: a join would be planned by the size that the table had when it was last vacuumed, which
// may have been nothing, and would then read all of it for each row.
func keyed(arrays, table, condition string) string {
	return `ctid = ANY(ARRAY(SELECT k.place FROM ` + arrays + ` CROSS JOIN LATERAL (SELECT t.ctid AS place FROM ` + table + ` t WHERE ` + condition + ` OFFSET 0) k))`
}

// A commit differs from that of SQLite in that it leaves in one write: each kind of rows is one statement over arrays, and
// guards stand in the statements themselves. (partition + 0 matches no index.)
var (
	qFence = statement(`WITH done AS (UPDATE partitions SET seq = $1, last_token = greatest(last_token, $2)
		WHERE id = $3 AND owner = $4 AND epoch = $5 AND seq = $1 - 1 RETURNING id)` + guard(guardFence, `1`, `NULL`))
	qConsume = statement(`WITH done AS (DELETE FROM inbox WHERE ` +
		keyed(`unnest($1::bigint[]) u (id)`, `inbox`, `t.id = u.id AND t.partition + 0 = $2 AND t.items IS NULL`) + ` RETURNING id)` + guard(guardEntry, `cardinality($1)`, entryMissing))
	qForward = statement(`WITH done AS (UPDATE inbox SET partition = $3 WHERE ` +
		keyed(`unnest($1::bigint[]) u (id)`, `inbox`, `t.id = u.id AND t.partition + 0 = $2 AND t.items IS NULL`) + ` RETURNING id)` + guard(guardEntry, `cardinality($1)`, entryMissing))
	qTriggers   = statement(`SELECT ` + entryColumns + ` FROM inbox WHERE id = ANY($1::bigint[]) AND partition = $2 AND kind IN ('trigger', 'delayed')`)
	qKeysForget = statement(`DELETE FROM request_keys WHERE ` +
		keyed(`unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) u (namespace, operation, key, execution)`, `request_keys`,
			`t.namespace = u.namespace AND t.operation = u.operation AND t.key = u.key AND t.execution = u.execution`))
	qJournal = statement(`INSERT INTO journal (partition, seq, epoch, at, facts) VALUES ($1, $2, $3, $4, $5)`)

	// Only the planner of a job writes its cursors. A new one is let in by who has the others of its job, and when there
	// are none by the job's home, which never changes: so no two partitions can pass at a time, and no lock is needed.
	qCursorPut = statement(`WITH done AS (INSERT INTO cursors AS k (job, schedule, partition, revision, next, last, held, stamp, owed, owed_to, owed_later, runs, failures)
		SELECT u.job, u.schedule, $1, u.revision, u.next, u.last, u.held, u.stamp, u.owed, u.owed_to, u.owed_later, u.runs, u.failures
		FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[])
			u (job, schedule, revision, next, last, held, stamp, owed, owed_to, owed_later, runs, failures)
		WHERE (SELECT ` + plannerOf + ` FROM all_jobs j WHERE j.uid = u.job OFFSET 0) = $1
		ON CONFLICT (job, schedule) DO UPDATE SET revision = excluded.revision, next = excluded.next, last = excluded.last, held = excluded.held,
			stamp = excluded.stamp, owed = excluded.owed, owed_to = excluded.owed_to, owed_later = excluded.owed_later, runs = excluded.runs
			WHERE k.partition = $1 RETURNING job, schedule)` +
		guard(guardPlanner, `cardinality($2)`, `SELECT min(x.job::text) FROM unnest($2, $3) x (job, schedule)
			WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.job = x.job AND done.schedule = x.schedule)`))
	qStreak     = statement(`UPDATE cursors SET failures = CASE WHEN NOT $1 THEN failures + $2 WHEN $3 > 0 AND failures >= $3 THEN failures ELSE 0 END WHERE job = $4 AND partition + 0 = $5`)
	qCursorDrop = statement(`DELETE FROM cursors WHERE ` +
		keyed(`unnest($1::uuid[], $2::text[]) u (job, schedule)`, `cursors`, `t.job = u.job AND t.schedule = u.schedule AND t.partition + 0 = $3`))
	qHandover = statement(`WITH moved AS (UPDATE cursors SET partition = $3 WHERE ` +
		keyed(`unnest($1::uuid[]) u (job)`, `cursors`, `t.job = u.job AND t.partition + 0 = $2`) + ` RETURNING job), done AS (SELECT DISTINCT job FROM moved)` +
		guard(guardPlanner, `cardinality($1)`, `SELECT min(x::text) FROM unnest($1) x WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.job = x)`))
	qDecisionInsert = statement(`INSERT INTO decisions (job, namespace, name, schedule, kind, reason, "from", "to", count, at)
		SELECT u.job, u.namespace, u.name, u.schedule, u.kind, u.reason, u."from", u."to", u.count, u.at
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
			WITH ORDINALITY u (job, namespace, name, schedule, kind, reason, "from", "to", count, at, n) ORDER BY u.n`)
	qSessionPut = statement(`INSERT INTO sessions (` + sessionColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (id) DO UPDATE SET partition = excluded.partition, namespace = excluded.namespace, pool = excluded.pool,
		worker = excluded.worker, incarnation = excluded.incarnation, handlers = excluded.handlers, slots = excluded.slots,
		labels = excluded.labels, build = excluded.build, ttl = excluded.ttl, beat = excluded.beat, margin = excluded.margin,
		opened_at = excluded.opened_at, unheard = excluded.unheard`)
	qSessionEnd   = statement(`DELETE FROM sessions WHERE id = ANY($1::text[])`)
	qPoisonInsert = statement(`INSERT INTO poison (partition, seq, at, entry, kind, event, error) VALUES ($1, $2, $3, $4, $5, $6, $7)`)
)

// Commit implements store.Engine. f.Seq is not looked at: b.Seq says where the batch belongs.
func (s *Store) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	if err := store.CheckBatch(b); err != nil {
		return err
	}
	if f.Owner == "" { // a released partition has no owner, which is nobody's name
		return fenced("fence", "commit %d of partition %d by nobody", b.Seq, f.Partition)
	}
	err := s.commit(ctx, f, b, nil)
	if e, ok := errors.AsType[*job.Error](err); ok && e.Code == "state_guard" { // nothing was written; maybe shards lie otherwise
		var apart map[job.ExecutionID]bool
		if apart, err = s.lieApart(ctx, b); err == nil {
			err = s.commit(ctx, f, b, apart)
		}
	}
	return err
}

// lieApart finds the executions whose shard does not lie in their row, as those of earlier versions. How it lies never
// changes, and the owner alone makes rows, so that this may be read before the commit.
func (s *Store) lieApart(ctx context.Context, b *engine.Batch) (map[job.ExecutionID]bool, error) {
	ids, apart := store.MayLieApart(b), map[job.ExecutionID]bool{}
	err := s.snapshot(ctx, s.commits, "look how shards lie", func(r *link) error {
		for _, q := range []query{qExecLive, qExecHistory} {
			found, err := rowsOf(r, q, ids)
			if err != nil {
				return err
			}
			for id := range found {
				apart[id] = len(found[id].Shards) == 0
			}
		}
		return nil
	})
	return apart, err
}

// commit writes the batch in one transaction. apart: see store.RowWrites.
func (s *Store) commit(ctx context.Context, f store.Fence, b *engine.Batch, apart map[job.ExecutionID]bool) error {
	facts := string(engine.PackFacts(nil, b.Facts))
	c := commit{store: s, fence: f, batch: b}
	c.rows, c.apart, c.late = store.RowWrites(b, apart)
	if err := c.findBlocks(ctx); err != nil {
		return err
	}
	moved, err := c.findLots(ctx)
	if err != nil {
		return err
	}
	c.add(qFence, b.Seq, int64(b.LastToken), f.Partition, f.Owner, int64(f.Epoch))
	if moved {
		c.add(qMovedOn)
	}
	if err := c.forgetKeys(ctx); err != nil {
		return err
	}
	if err := c.findBulk(ctx); err != nil {
		return err
	}
	for _, part := range []func() error{c.entries, c.executions, c.shards, c.moveEnded, c.cursors, c.backfills, c.sent, c.sessions, c.records, c.matched, c.tellChildren} {
		if err := part(); err != nil {
			return err
		}
	}
	c.add(qJournal, f.Partition, b.Seq, int64(f.Epoch), int64(b.At), facts)
	if err := again(func() error { return c.ensure(ctx) }, func() error { return c.send(ctx) }); err != nil {
		return err
	}
	s.lots.keep(f.Partition, c.settled())
	s.care.committed(b.At, c.dead)
	return nil
}

// commit is the work of one transaction.
type commit struct {
	store    *Store
	fence    store.Fence
	batch    *engine.Batch
	steps    []step
	rows     []store.RowWrite
	apart    []*engine.ShardWrite // shards that do not lie in the row of their execution
	late     []*engine.ShardWrite // of those, new ones of executions that are there
	blocked  []*block
	held     *holding     // what lies in lots
	lots     []*lotChange // of those that lay there
	made     []*lot
	ended    map[job.ExecutionID]*ending
	order    []job.ExecutionID // of ended
	taken    []store.BulkTaken // rows of the inbox that hold many entries
	consumed []int64           // entries that have a row each
	dead     int64             // rows of live tables that it deletes or changes
}

type step struct {
	text string
	args []any
}

// ending is an execution that moves to history in this commit.
type ending struct {
	total int // its shards
	moved int // of them, by their own write
}

func (c *commit) add(q query, args ...any) {
	c.steps = append(c.steps, step{mutated(c.store.mutate, q), args})
}

// ensure makes the months that the commit writes into, before it holds its partition's row.
func (c *commit) ensure(ctx context.Context) error {
	planned := make([]job.Instant, len(c.order))
	for i, id := range c.order {
		planned[i] = id.PlannedAt()
	}
	made := []job.Instant{c.batch.At}
	for i := range c.batch.Decisions {
		made = append(made, c.batch.Decisions[i].At)
	}
	return errors.Join(c.store.ensureMonths(ctx, monthsOfExecutions, planned...), c.store.ensureMonths(ctx, monthsOfCommits, made...))
}

// send sends all in one write. The steps are one transaction without BEGIN and COMMIT: one that is implicit in all that
// comes before the Sync message, and ends at the first error.
func (c *commit) send(ctx context.Context) error {
	const op = "commit"
	conn, err := c.store.commits.Acquire(ctx)
	if err != nil {
		return c.store.failed(op, silent(ctx, err))
	}
	defer c.store.commits.release(conn)
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.store.commits.patience)
	defer cancel()
	var batch pgx.Batch
	for _, s := range c.steps {
		if _, err := conn.Conn().Prepare(patience, s.text, s.text); err != nil { // asks the database once per connection
			return c.store.failed(op, silent(ctx, err))
		}
		batch.Queue(s.text, s.args...)
	}
	results := conn.Conn().SendBatch(patience, &batch)
	for range c.steps {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // says the same
			return c.refused(op, err)
		}
	}
	if err := results.Close(); err != nil {
		return classifyCommit(op, err)
	}
	return nil
}

// refused is for the error of a step. When the database says it, nothing was written; else the rest was under way.
func (c *commit) refused(op string, err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return classifyCommit(op, err)
	}
	f, b := c.fence, c.batch
	switch pg.Code {
	case guardFence:
		return fenced("fence", "commit %d of partition %d by %q under epoch %d: the partition has moved on", b.Seq, f.Partition, f.Owner, f.Epoch)
	case guardEntry:
		return fenced("entry_guard", "inbox entry %s of partition %d is not there", pg.Detail, f.Partition)
	case guardPlanner:
		return fenced("planner_guard", "job %s is not planned by partition %d", pg.Detail, f.Partition)
	case guardBackfill:
		return fenced("backfill_guard", "backfill %s is not of partition %d", pg.Detail, f.Partition)
	case guardExecution, guardShard:
		return c.stateGuard(pg.Code, pg.Detail)
	}
	if id, is := inHistory(pg); is {
		return c.stateGuard(guardExecution, id)
	}
	return c.store.failed(op, err)
}

// forgetKeys forgets the request keys of triggers that are set aside: they lead to no execution, so that asking again
// must be a new request. An entry never changes, so that it may be read before the commit. (JSON functions of the database
// refuse the \u0000 that its params may hold.)
func (c *commit) forgetKeys(ctx context.Context) error {
	if len(c.batch.Poison) == 0 {
		return nil
	}
	ids := column(c.batch.Poison, func(p *engine.Poison) int64 { return p.Entry })
	var all []entry
	err := c.store.read(ctx, "read what is set aside", func(r *link) error {
		for _, id := range ids {
			e, err := bulkEntry(r, c.fence.Partition, id)
			if err != nil {
				return err
			}
			if e != nil && e.kept != nil {
				all = append(all, *e)
			}
		}
		return r.each(qTriggers, []any{ids, c.fence.Partition}, func(rows pgx.Rows) error {
			e, err := scanEntry(rows)
			if err == nil && e.kept != nil {
				all = append(all, e)
			}
			return err
		})
	})
	if err == nil && len(all) > 0 {
		c.add(qKeysForget, column(all, func(e *entry) string { return e.kept.Namespace }), column(all, func(e *entry) string { return e.kept.Operation }),
			column(all, func(e *entry) string { return e.kept.Key }), column(all, func(e *entry) [16]byte { return e.Execution }))
	}
	return err
}

// entries takes what the batch consumes out of the inbox.
func (c *commit) entries() error {
	var whole []int64 // rows of which nothing is left
	var was []string
	for i := range c.taken {
		if t := &c.taken[i]; t.Now == "" {
			whole, was = append(whole, t.ID), append(was, t.Taken)
		} else {
			c.add(qBulkTake, t.ID, c.fence.Partition, t.Taken, t.Now)
		}
	}
	if len(whole) > 0 {
		c.add(qBulkDelete, whole, c.fence.Partition, was)
	}
	if len(c.consumed) > 0 {
		c.add(qConsume, c.consumed, c.fence.Partition)
	}
	for to, all := range groups(c.batch.Forwarded, func(f *engine.Forward) int { return f.Partition }) {
		c.add(qForward, column(all, func(f *engine.Forward) int64 { return f.Entry }), c.fence.Partition, to)
	}
	c.dead += int64(len(c.taken) + len(c.consumed) + len(c.batch.Forwarded))
	return nil
}

// lastOf drops all but the last of those with equal keys: one statement cannot write a row twice.
func lastOf[T any, K comparable](all []T, key func(*T) K) []T {
	seen := map[K]bool{}
	var out []T
	for i := len(all) - 1; i >= 0; i-- {
		if k := key(&all[i]); !seen[k] {
			seen[k] = true
			out = append(out, all[i])
		}
	}
	slices.Reverse(out)
	return out
}

func (c *commit) cursors() error {
	type key struct {
		uid      job.UID
		schedule string
	}
	for _, s := range c.batch.Streaks {
		c.add(qStreak, s.Reset, s.Failed, s.Most, [16]byte(s.Job), c.fence.Partition)
	}
	all := lastOf(c.batch.Cursors, func(k *job.Cursor) key { return key{k.Job, k.Schedule} })
	uid, schedule := func(k *job.Cursor) [16]byte { return k.Job }, func(k *job.Cursor) string { return k.Schedule }
	if len(all) > 0 {
		c.add(qCursorPut, c.fence.Partition, column(all, uid), column(all, schedule),
			column(all, func(k *job.Cursor) int64 { return k.Revision }), column(all, func(k *job.Cursor) int64 { return int64(k.Next) }),
			column(all, func(k *job.Cursor) int64 { return int64(k.Last) }), column(all, func(k *job.Cursor) int64 { return int64(k.Held) }),
			column(all, func(k *job.Cursor) int64 { return k.Stamp }), column(all, func(k *job.Cursor) int64 { return int64(k.Owed) }),
			column(all, func(k *job.Cursor) int64 { return int64(k.OwedTo) }), column(all, func(k *job.Cursor) string { return k.OwedLater }),
			column(all, func(k *job.Cursor) int64 { return k.Runs }),
			column(all, func(k *job.Cursor) int64 { return int64(k.Failures) }))
	}
	if gone := c.batch.DropCursors; len(gone) > 0 {
		c.add(qCursorDrop, column(gone, uid), column(gone, schedule), c.fence.Partition)
	}
	for to, all := range groups(c.batch.Handovers, func(h *engine.Handover) int { return h.Partition }) {
		c.add(qHandover, column(all, func(h *engine.Handover) [16]byte { return h.Job }), c.fence.Partition, to)
	}
	return nil
}

func (c *commit) sessions() error {
	for i := range c.batch.Sessions {
		args, err := sessionArgs(&c.batch.Sessions[i])
		if err != nil {
			return err
		}
		c.add(qSessionPut, args...)
	}
	if gone := c.batch.EndSessions; len(gone) > 0 {
		c.add(qSessionEnd, column(gone, func(id *job.SessionID) string { return string(*id) }))
	}
	return nil
}

// records are the rows that only grow: decisions and poison.
func (c *commit) records() error {
	b := c.batch
	if d := b.Decisions; len(d) > 0 {
		c.add(qDecisionInsert, column(d, func(d *job.Decision) [16]byte { return d.Job }), column(d, func(d *job.Decision) string { return d.Namespace }),
			column(d, func(d *job.Decision) string { return d.Name }), column(d, func(d *job.Decision) string { return d.Schedule }),
			column(d, func(d *job.Decision) string { return string(d.Kind) }), column(d, func(d *job.Decision) string { return string(d.Reason) }),
			column(d, func(d *job.Decision) int64 { return int64(d.From) }), column(d, func(d *job.Decision) int64 { return int64(d.To) }),
			column(d, func(d *job.Decision) int64 { return d.Count }), column(d, func(d *job.Decision) int64 { return int64(d.At) }))
	}
	for i := range b.Poison {
		p := &b.Poison[i]
		c.add(qPoisonInsert, c.fence.Partition, b.Seq, int64(b.At), p.Entry, store.MakeClean(p.Kind),
			text([]byte(store.MakeClean(string(p.Event)))), store.MakeClean(p.Error))
	}
	return nil
}
