package postgres

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// The condition must stand as in the index executions_active, or that is not used. Here and below an order that only the right
// index has, of columns that are bounded but not said to be equal, keeps a table that is thought to be empty from being read
// by another index.
const (
	activeOnly = ` WHERE e.partition BETWEEN $1 AND $1 AND e.state NOT IN ('queued', 'scheduled') ORDER BY e.partition`
	activeOf   = ` FROM executions e` + activeOnly
	// Those whose shards lie apart.
	activeApart = ` WHERE e.partition BETWEEN $1 AND $1 AND e.state NOT IN ('queued', 'scheduled') AND e.shard_state IS NULL ORDER BY e.partition`

	endedShards = `('succeeded', 'failed', 'timed_out', 'cancelled')`
)

// eachOf joins the rows of a query to each row before it, see keyed.
func eachOf(alias, text string) string { return ` CROSS JOIN LATERAL (` + text + ` OFFSET 0) ` + alias }

var (
	qSeq      = statement(`SELECT seq, last_token FROM partitions WHERE id = $1`)
	qSessions = statement(`SELECT ` + sessionColumns + ` FROM sessions WHERE partition = $1`)

	qCursorsOf = statement(`SELECT c.* FROM unnest($1::uuid[]) u (job)` +
		eachOf("c", `SELECT c.job, c.schedule, `+cursorColumns+` FROM cursors c WHERE c.job = u.job`) + ` ORDER BY c.job, c.schedule`)
	qVersions = statement(`SELECT ` + anyDefinitionColumns + `, u.asked FROM unnest($1::uuid[], $2::bigint[]) u (uid, asked)` +
		eachOf("j", `SELECT * FROM all_jobs WHERE uid = u.uid`) +
		eachOf("r", `SELECT * FROM job_revisions WHERE uid = u.uid AND revision = CASE u.asked WHEN 0 THEN j.revision ELSE u.asked END`))

	qDue = statement(`SELECT ` + definitionColumns + `, c.schedule, ` + cursorColumns + ` FROM cursors c` +
		eachOf("j", `SELECT * FROM jobs WHERE uid = c.job`) + eachOf("r", `SELECT * FROM job_revisions WHERE uid = j.uid AND revision = j.revision`) + `
		WHERE c.partition = $1 AND c.next > 0 AND c.next <= $2 AND (c.next, c.job, c.schedule) > ($3, $4, $5) AND (NOT j.disabled OR c.revision <> j.revision)
		ORDER BY c.next, c.job, c.schedule LIMIT $6`)
	qOwed = statement(`SELECT ` + definitionColumns + `, c.schedule, ` + cursorColumns + ` FROM cursors c` +
		eachOf("j", `SELECT * FROM jobs WHERE uid = c.job`) + eachOf("r", `SELECT * FROM job_revisions WHERE uid = j.uid AND revision = j.revision`) + `
		WHERE c.partition = $1 AND c.owed > 0 AND (c.job, c.schedule) > ($2, $3) ORDER BY c.job, c.schedule LIMIT $4`)
	qOwes    = statement(`SELECT 1 FROM cursors WHERE partition = $1 AND owed > 0 LIMIT 1`)
	qBacklog = statement(`(SELECT ` + rowColumns + ` FROM executions
		WHERE partition = $1 AND state = 'queued' AND (planned_at, id) > ($2, $3) ORDER BY planned_at, id LIMIT $4)
		UNION ALL (` + firstMembers(rowColumns, `l.partition BETWEEN $1 AND $1 AND l.state = 'queued'`, `(m.planned_at, m.id) > ($2, $3)`,
		` ORDER BY m.planned_at, m.id LIMIT $4`) + `) ORDER BY planned_at, id LIMIT $4`)
)

// seqOf is the partition's newest commit in the snapshot.
func seqOf(r *link, partition int) (seq int64, err error) {
	var last job.Token
	found, err := r.one(qSeq, []any{partition}, &seq, (*int64)(&last))
	if err == nil && !found {
		err = noPartition(partition)
	}
	return seq, err
}

// withSeq asks a question together with seqOf.
func (l *link) withSeq(partition int, seq *int64, q question) error {
	var last job.Token
	_, err := l.ask(seqIs(partition, seq, &last), q)
	if err == nil && *seq < 0 {
		err = noPartition(partition)
	}
	return err
}

func noPartition(partition int) error {
	return job.Errorf(job.KindNotFound, "partition_not_found", "there is no partition %d", partition)
}

type version struct {
	uid      job.UID
	revision int64 // 0: the newest
}

// definitions keeps what one page has read already; nil for a job that is gone.
type definitions struct {
	of        map[version]*job.Definition
	calendars store.KnownCalendars
}

func noDefinitions() definitions {
	return definitions{map[version]*job.Definition{}, store.KnownCalendars{}}
}

// fetch reads those of some versions that are not known, in one query.
func (d definitions) fetch(r *link, versions []version) error {
	var missing []version
	for _, v := range versions {
		if _, known := d.of[v]; !known {
			missing = append(missing, v)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var found []*job.Definition
	q := d.question(missing, &found)
	if err := r.each(q.q, q.args, q.row); err != nil {
		return err
	}
	return addCalendars(r, d.calendars, found...)
}

// question asks for versions; their calendars are to be added to what is found.
func (d definitions) question(versions []version, found *[]*job.Definition) question {
	var uids [][16]byte
	var revisions []int64
	for _, v := range versions {
		if _, asked := d.of[v]; !asked {
			d.of[v] = nil
			uids, revisions = append(uids, v.uid), append(revisions, v.revision)
		}
	}
	return question{qVersions, []any{uids, revisions}, func(rows pgx.Rows) error {
		var asked int64
		got, err := scanDefinition(rows, &asked)
		if err == nil {
			d.of[version{got.UID, asked}] = got
			*found = append(*found, got)
		}
		return err
	}}
}

// get is nil when the job is gone.
func (d definitions) get(r *link, v version) (*job.Definition, error) {
	err := d.fetch(r, []version{v})
	return d.of[v], err
}

// share keeps the params that most executions have, those of their job, once.
func share(row *engine.Row) {
	if d := row.Definition; d != nil && bytes.Equal(row.Execution.Params, d.Spec.Params) {
		row.Execution.Params = d.Spec.Params
	}
}

// cursorsOf reads the cursors of a job by schedule.
func cursorsOf(r *link, uid job.UID) (all []job.Cursor, err error) {
	err = r.each(qCursorsOf, []any{[][16]byte{uid}}, func(rows pgx.Rows) error {
		c, err := scanCursor(rows)
		all = append(all, c)
		return err
	})
	return all, err
}

// DuePage implements store.Engine.
func (s *Store) DuePage(ctx context.Context, partition int, w engine.WantDue) (engine.DuePage, error) {
	var out engine.DuePage
	err := s.readInFew(ctx, "read due schedules", func(ask func(...question) error) error {
		out = engine.DuePage{Owed: w.Owed, Until: w.Until, After: w.After}
		page := store.Pageful[engine.Due]{Limit: w.Limit}
		var last job.Token
		if err := ask(seqIs(partition, &out.Seq, &last), dueOf(partition, w, &page)); err != nil {
			return err
		}
		if out.Seq < 0 {
			return noPartition(partition)
		}
		out.Items, out.Partial = page.Rows, page.More
		return addCalendarsInFew(ask, partition, out.Seq, column(page.Rows, func(d *engine.Due) *job.Definition { return d.Definition }))
	})
	if err != nil {
		return engine.DuePage{}, err
	}
	return out, nil
}

func dueOf(partition int, w engine.WantDue, page *store.Pageful[engine.Due]) question {
	after := job.Cursor{}
	if w.After != nil {
		after = *w.After
	}
	q, args := qDue, []any{partition, int64(w.Until), int64(after.Next), [16]byte(after.Job), after.Schedule, w.Limit + 1}
	if w.Owed {
		q, args = qOwed, []any{partition, [16]byte(after.Job), after.Schedule, w.Limit + 1}
	}
	return question{q, args, func(rows pgx.Rows) error {
		var c job.Cursor
		d, err := scanDefinition(rows, append([]any{&c.Schedule}, cursorDest(&c)...)...)
		if err != nil {
			return err
		}
		c.Job = d.UID
		return store.AddDue(page, engine.Due{Definition: d, Cursor: c})
	}}
}

// addCalendarsInFew is addCalendars; errMore when the partition was committed to since. People may have changed or deleted a calendar
// since, which the cursor's stamp tells the engine (Due.stale), as it does of one that was changed before.
func addCalendarsInFew(ask func(...question) error, partition int, of int64, all []*job.Definition) error {
	known := store.KnownCalendars{}
	missing := known.Missing(all...)
	if len(missing) == 0 {
		return nil
	}
	var seq int64
	var last job.Token
	if err := ask(seqIs(partition, &seq, &last), calendarsNamed(known, missing)); err != nil {
		return err
	}
	if seq != of {
		return errMore
	}
	known.Fill(all...)
	return nil
}

// BacklogPage implements store.Engine.
func (s *Store) BacklogPage(ctx context.Context, partition int, w engine.WantBacklog) (engine.BacklogPage, error) {
	out := engine.BacklogPage{After: w.Place()}
	page := store.Pageful[engine.Row]{Limit: w.Limit}
	err := s.read(ctx, "read backlog", func(r *link) error {
		queued := store.Pageful[engine.Row]{Limit: w.Limit}
		if err := r.withSeq(partition, &out.Seq, question{qBacklog, []any{partition, int64(w.PlannedAt), [16]byte(w.ID), w.Limit + 1}, func(rows pgx.Rows) error {
			row, err := scanRow(rows)
			if err != nil {
				return err
			}
			return queued.Add(row, store.SizeOfRow(&row))
		}}); err != nil {
			return err
		}
		err := fill(r, &page, queued.Rows, qShardsLive)
		out.Partial = queued.More || page.More
		return err
	})
	if err != nil {
		return engine.BacklogPage{}, err
	}
	out.Rows = page.Rows
	return out, nil
}
