package sqlite

import (
	"database/sql"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qJobAt        = statement(`SELECT j.revision, j.partition, (SELECT c.partition FROM cursors c WHERE c.job = j.uid LIMIT 1), j.home FROM all_jobs j WHERE j.uid = ?`)
	qArrived      = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload) VALUES (?, 1, 'arrived', ?, ?, ?, '{}')`)
	qBackfillSend = statement(`UPDATE backfill_progress SET partition = ? WHERE id = ? AND partition = ?`)
)

// homes adds to rows that wait where they belong by now.
func homes(r *link, rows []engine.Row) error {
	at, known := map[job.UID]store.JobAt{}, noDefinitions()
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
	a, asked := at[uid]
	if !asked {
		var planner sql.NullInt64
		found, err := r.one(qJobAt, []any{uid[:]}, &a.Revision, &a.Place, &planner, &a.Planner)
		if err != nil {
			return nil, err
		}
		if a.Cursors = planner.Valid; a.Cursors {
			a.Planner = int(planner.Int64)
		}
		if !found {
			a.Revision = 0
		}
		at[uid] = a
	}
	if a.Revision == 0 {
		return nil, nil // it is gone
	}
	return a.Home(revision, partition, func() (*job.Definition, error) { return known.get(r, version{uid, 0}) })
}

// sent tells other partitions what this commit sends there.
func (c *commit) sent() error {
	for i := range c.batch.Executions {
		w := &c.batch.Executions[i]
		if !w.Sent {
			continue
		}
		if _, err := c.exec(qArrived, int64(w.Row.Partition), w.Row.Namespace, w.Row.JobUID[:], w.Row.ID[:]); err != nil {
			return err
		}
	}
	for _, b := range c.batch.SentBackfills {
		n, err := c.exec(qBackfillSend, int64(b.Partition), b.ID[:], int64(c.fence.Partition))
		if err != nil {
			return err
		}
		if n == 0 {
			return fenced("backfill_guard", "backfill %s is not of partition %d", b.ID, c.fence.Partition)
		}
		if _, err := addEntry(c.link, b.Partition, b.Namespace, entryRest, engine.Entry{Kind: engine.EntryBackfill, Job: b.Job, Execution: b.ID},
			payload{At: c.batch.At, Revision: b.Revision}); err != nil {
			return err
		}
	}
	return nil
}
