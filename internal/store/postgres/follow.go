package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qJobsAt = statement(`SELECT j.uid, j.revision, j.partition, (SELECT c.partition FROM cursors c WHERE c.job = j.uid LIMIT 1), j.home FROM unnest($1::uuid[]) u (uid)` +
		eachOf("j", `SELECT * FROM all_jobs WHERE uid = u.uid`))
	qArrived = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload)
		SELECT u.place, 1, 'arrived', u.namespace, u.job, u.execution, '{}'
		FROM unnest($1::integer[], $2::text[], $3::uuid[], $4::uuid[]) WITH ORDINALITY u (place, namespace, job, execution, n) ORDER BY u.n`)
	qBackfillSend = statement(`WITH done AS (UPDATE backfill_progress SET partition = $2 WHERE id = $1 AND partition = $3 RETURNING id),
		told AS (INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload) SELECT $2, 1, 'backfill', $4, $5::uuid, id, $6 FROM done)` +
		guard(guardBackfill, `1`, `$1::text`))
)

// homes adds to rows that wait where they belong by now.
func homes(r *link, rows []engine.Row) error {
	at, known := map[job.UID]store.JobAt{}, noDefinitions()
	var uids [][16]byte
	for i := range rows {
		if uid := rows[i].Execution.JobUID; at[uid].Revision == 0 {
			at[uid] = store.JobAt{Revision: -1}
			uids = append(uids, uid)
		}
	}
	if err := jobsAt(r, uids, at); err != nil {
		return err
	}
	for i := range rows {
		e := &rows[i].Execution
		var err error
		if rows[i].Home, err = homeOf(r, known, at, e.JobUID, e.Revision, e.Partition); err != nil {
			return err
		}
	}
	return nil
}

// homeOf tells where what was made under a revision of a job belongs.
func homeOf(r *link, known definitions, at map[job.UID]store.JobAt, uid job.UID, revision int64, partition int) (*engine.Home, error) {
	if at[uid].Revision <= 0 {
		return nil, nil // it is gone
	}
	return at[uid].Home(revision, partition, func() (*job.Definition, error) { return known.get(r, version{uid, 0}) })
}

func jobsAt(r *link, uids [][16]byte, at map[job.UID]store.JobAt) error {
	if len(uids) == 0 {
		return nil
	}
	q := placesOf(uids, at)
	return r.each(q.q, q.args, q.row)
}

// placesOf asks where jobs are.
func placesOf(uids [][16]byte, at map[job.UID]store.JobAt) question {
	return question{qJobsAt, []any{uids}, func(rows pgx.Rows) error {
		var uid job.UID
		var a store.JobAt
		var planner *int
		if err := rows.Scan((*[16]byte)(&uid), &a.Revision, &a.Place, &planner, &a.Planner); err != nil {
			return err
		}
		if a.Cursors = planner != nil; a.Cursors {
			a.Planner = *planner
		}
		at[uid] = a
		return nil
	}}
}

// sent tells other partitions what this commit sends there.
func (c *commit) sent() error {
	var all []*job.Execution
	for i := range c.batch.Executions {
		if w := &c.batch.Executions[i]; w.Sent {
			all = append(all, &w.Row)
		}
	}
	if len(all) > 0 {
		c.add(qArrived, column(all, func(e **job.Execution) int32 { return int32((*e).Partition) }), //nolint:gosec // numbers of partitions
			column(all, func(e **job.Execution) string { return (*e).Namespace }), column(all, func(e **job.Execution) [16]byte { return (*e).JobUID }),
			column(all, func(e **job.Execution) [16]byte { return (*e).ID }))
	}
	for _, b := range c.batch.SentBackfills {
		text, err := encode(payload{At: c.batch.At, Revision: b.Revision})
		if err != nil {
			return err
		}
		c.add(qBackfillSend, b.ID[:], b.Partition, c.fence.Partition, b.Namespace, b.Job[:], text)
	}
	return nil
}
