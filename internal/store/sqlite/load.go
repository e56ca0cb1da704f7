package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// The condition must stand as in the index executions_active, or that is not used.
const activeOf = ` FROM executions e WHERE e.partition = ? AND e.state NOT IN ('queued', 'scheduled')`

const (
	endedShards = `('succeeded', 'failed', 'timed_out', 'cancelled')`

	activeVersions = ` FROM (SELECT DISTINCT e.job_uid AS uid, e.revision AS revision` + activeOf + `) v JOIN `
	ofVersions     = ` j ON j.uid = v.uid JOIN job_revisions r ON r.uid = v.uid AND r.revision = v.revision`
)

// The hints keep the plan when the tables are empty or lopsided: each of these reads is by key or by its index.
var (
	qSeq            = statement(`SELECT seq, last_token FROM partitions WHERE id = ?`)
	qSessions       = statement(`SELECT ` + sessionColumns + ` FROM sessions WHERE partition = ? ORDER BY id`)
	qActiveCount    = statement(`SELECT count(*)` + activeOf)
	qActiveVersions = statement(`SELECT ` + definitionColumns + activeVersions + `jobs` + ofVersions)
	qActiveDeleted  = statement(`SELECT ` + anyDefinitionColumns + activeVersions + `deleted_jobs` + ofVersions)

	qShardsLive    = statement(`SELECT ` + allShardColumns + ` FROM shards WHERE execution = ? ORDER BY idx`)
	qShardsHistory = statement(`SELECT ` + allShardColumns + ` FROM history_shards WHERE execution = ? ORDER BY idx`)
	qExecLive      = statement(`SELECT ` + rowColumns + ` FROM executions WHERE id = ?`)
	qExecHistory   = statement(`SELECT ` + rowColumns + ` FROM history_executions WHERE id = ?`)
	qVersion       = statement(`SELECT ` + anyDefinitionColumns + ` FROM all_jobs j JOIN job_revisions r ON r.uid = j.uid WHERE j.uid = ? AND r.revision = ?`)
	qNewest        = statement(`SELECT ` + anyDefinitionColumns + ` FROM all_jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision WHERE j.uid = ?`)
	qCursorsOf     = statement(`SELECT c.job, c.schedule, ` + cursorColumns + ` FROM cursors c WHERE c.job = ? ORDER BY c.schedule`)

	qDue = statement(`SELECT ` + definitionColumns + `, c.schedule, ` + cursorColumns + `
		FROM cursors c INDEXED BY cursors_due
		CROSS JOIN jobs j ON j.uid = c.job CROSS JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision
		WHERE c.partition = ? AND c.next > 0 AND c.next <= ? AND (c.next, c.job, c.schedule) > (?, ?, ?) AND (j.disabled = 0 OR c.revision <> j.revision)
		ORDER BY c.next, c.job, c.schedule LIMIT ?`)
	qOwed = statement(`SELECT ` + definitionColumns + `, c.schedule, ` + cursorColumns + `
		FROM cursors c INDEXED BY cursors_owed
		CROSS JOIN jobs j ON j.uid = c.job CROSS JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision
		WHERE c.partition = ? AND c.owed > 0 AND (c.job, c.schedule) > (?, ?) ORDER BY c.job, c.schedule LIMIT ?`)
	qOwes    = statement(`SELECT 1 FROM cursors INDEXED BY cursors_owed WHERE partition = ? AND owed > 0 LIMIT 1`)
	qBacklog = statement(`SELECT ` + rowColumns + ` FROM executions INDEXED BY executions_backlog
		WHERE partition = ? AND state = 'queued' AND (planned_at, id) > (?, ?) ORDER BY planned_at, id LIMIT ?`)
)

// seqOf is the partition's newest commit in the snapshot.
func seqOf(r *link, partition int) (seq int64, last job.Token, err error) {
	found, err := r.one(qSeq, []any{int64(partition)}, &seq, &last)
	if err == nil && !found {
		err = job.Errorf(job.KindNotFound, "partition_not_found", "there is no partition %d", partition)
	}
	return seq, last, err
}

// LoadPartition implements store.Engine.
func (s *Store) LoadPartition(ctx context.Context, partition int) (engine.Loaded, error) {
	var out engine.Loaded
	err := s.read(ctx, "load partition", func(r *link) error {
		var err error
		if out.Seq, out.LastToken, err = seqOf(r, partition); err != nil {
			return err
		}
		if err := r.each(qSessions, []any{int64(partition)}, func(rows *sql.Rows) error {
			v, err := scanSession(rows)
			out.Sessions = append(out.Sessions, v)
			return err
		}); err != nil {
			return err
		}
		if out.Executions, err = activeRows(r, partition); err != nil {
			return err
		}
		if out.Waiting, err = waitingRows(r, partition); err != nil {
			return err
		}
		var one int64
		if out.Owes, err = r.one(qOwes, []any{int64(partition)}, &one); err != nil {
			return err
		}
		out.Backfills, err = loadBackfills(r, noDefinitions(), partition)
		return err
	})
	if err != nil {
		return engine.Loaded{}, err
	}
	return out, nil
}

type version struct {
	uid      job.UID
	revision int64 // 0: the newest
}

// definitions keeps what one page has read already.
type definitions struct {
	of        map[version]*job.Definition
	calendars store.KnownCalendars
}

func noDefinitions() definitions {
	return definitions{map[version]*job.Definition{}, store.KnownCalendars{}}
}

// get is nil when the job is gone.
func (d definitions) get(r *link, v version) (*job.Definition, error) {
	if got, ok := d.of[v]; ok {
		return got, nil
	}
	q, args := qVersion, []any{v.uid[:], v.revision}
	if v.revision == 0 {
		q, args = qNewest, args[:1]
	}
	var got *job.Definition
	err := r.each(q, args, func(rows *sql.Rows) (err error) {
		got, err = scanDefinition(rows)
		return err
	})
	if err == nil {
		err = addCalendars(r, d.calendars, got)
	}
	d.of[v] = got
	return got, err
}

// row reads what else belongs to an execution.
func (d definitions) row(r *link, out engine.Row, shards query) (engine.Row, error) {
	e := &out.Execution
	if len(out.Shards) == 0 {
		if err := eachShard(r, shards, []any{e.ID[:]}, func(sh *job.Shard) error {
			out.Shards = append(out.Shards, *sh)
			return nil
		}); err != nil {
			return out, err
		}
		store.SortShards(out.Shards)
	}
	var err error
	out.Definition, err = d.get(r, version{e.JobUID, e.Revision})
	share(&out)
	return out, err
}

// share keeps the params that most executions have, those of their job, once.
func share(row *engine.Row) {
	if d := row.Definition; d != nil && bytes.Equal(row.Execution.Params, d.Spec.Params) {
		row.Execution.Params = d.Spec.Params
	}
}

// fill reads the rows of executions into a page, as many as it holds.
func (d definitions) fill(r *link, page *store.Pageful[engine.Row], row engine.Row, shards query) error {
	known := len(d.of)
	row, err := d.row(r, row, shards)
	if err != nil {
		return err
	}
	size := store.SizeOfRow(&row)
	if len(d.of) > known {
		size += store.SizeOfDefinition(row.Definition)
	}
	return page.Add(row, size)
}

func cursorsOf(r *link, uid job.UID) (all []job.Cursor, err error) {
	err = r.each(qCursorsOf, []any{uid[:]}, func(rows *sql.Rows) error {
		c, err := scanCursor(rows)
		all = append(all, c)
		return err
	})
	return all, err
}

// DuePage implements store.Engine.
func (s *Store) DuePage(ctx context.Context, partition int, w engine.WantDue) (engine.DuePage, error) {
	out, page := engine.DuePage{Owed: w.Owed, Until: w.Until, After: w.After}, store.Pageful[engine.Due]{Limit: w.Limit}
	after := job.Cursor{}
	if w.After != nil {
		after = *w.After
	}
	err := s.read(ctx, "read due schedules", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		q, args := qDue, []any{int64(partition), int64(w.Until), int64(after.Next), after.Job[:], after.Schedule, int64(w.Limit) + 1}
		if w.Owed {
			q, args = qOwed, []any{int64(partition), after.Job[:], after.Schedule, int64(w.Limit) + 1}
		}
		if err := r.each(q, args, func(rows *sql.Rows) error {
			var c job.Cursor
			d, err := scanDefinition(rows, append([]any{&c.Schedule}, cursorDest(&c)...)...)
			if err != nil {
				return err
			}
			c.Job = d.UID
			return store.AddDue(&page, engine.Due{Definition: d, Cursor: c})
		}); err != nil {
			return err
		}
		known := store.KnownCalendars{}
		for i := range page.Rows {
			if err := addCalendars(r, known, page.Rows[i].Definition); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return engine.DuePage{}, err
	}
	out.Items, out.Partial = page.Rows, page.More
	return out, nil
}

// BacklogPage implements store.Engine.
func (s *Store) BacklogPage(ctx context.Context, partition int, w engine.WantBacklog) (engine.BacklogPage, error) {
	out := engine.BacklogPage{After: w.Place()}
	page := store.Pageful[engine.Row]{Limit: w.Limit}
	err := s.read(ctx, "read backlog", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		queued := store.Pageful[engine.Row]{Limit: w.Limit}
		if err := r.each(qBacklog, []any{int64(partition), int64(w.PlannedAt), w.ID[:], int64(w.Limit) + 1}, func(rows *sql.Rows) error {
			row, err := scanRow(rows)
			if err != nil {
				return err
			}
			return queued.Add(row, store.SizeOfRow(&row))
		}); err != nil {
			return err
		}
		out.Partial = queued.More
		known := noDefinitions()
		for _, row := range queued.Rows {
			switch err := known.fill(r, &page, row, qShardsLive); {
			case errors.Is(err, store.ErrEnough):
				out.Partial = true
				return nil
			case err != nil:
				return err
			}
		}
		return nil
	})
	if err != nil {
		return engine.BacklogPage{}, err
	}
	out.Rows = page.Rows
	return out, nil
}
