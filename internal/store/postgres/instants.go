package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	// The order keeps the index, and the reader looks whether the row is his.
	qDecisionAt = statement(`SELECT job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions
		WHERE (job, schedule, "to") >= ($1::uuid, $2, $3::bigint) ORDER BY job, schedule, "to" LIMIT 1`)
	qUpcoming = statement(`SELECT ` + definitionColumns + `, c.schedule, ` + cursorColumns + `
		FROM (SELECT * FROM cursors WHERE partition = $1 AND next > 0 AND next <= $2 ORDER BY next, job, schedule LIMIT $5) c` +
		eachOf("j", `SELECT * FROM jobs WHERE uid = c.job`) + eachOf("r", `SELECT * FROM job_revisions WHERE uid = j.uid AND revision = j.revision`) + `
		WHERE j.namespace = $3 AND NOT j.disabled ORDER BY c.next, c.job, c.schedule LIMIT $4`)
	qUpcomingAll  = statement(`SELECT count(*) FROM (SELECT 1 FROM cursors WHERE partition = $1 AND next > 0 AND next <= $2 LIMIT $3) AS looked`)
	qPartitionIDs = statement(`SELECT id FROM partitions ORDER BY id`)
	qZonesPut     = statement(`INSERT INTO meta AS m (key, value) VALUES ('zones', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE m.value <> excluded.value`)
	qZonesTell    = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, payload) SELECT ` + plannerOf + `, $1, 'job_changed', j.namespace, j.uid, $2
		FROM jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision WHERE r.spec LIKE '%"timeZone":%' ORDER BY j.namespace, j.name`)
	qCountJobs = statement(`SELECT count(*) FROM (SELECT 1 FROM jobs LIMIT $1) AS looked`)
	qCountLive = statement(`SELECT state, count(*) FROM (SELECT state FROM executions LIMIT $1) AS looked GROUP BY state
		UNION ALL SELECT state, sum(remaining) FROM lots GROUP BY state`)
	qCountDecisions = statement(`SELECT count(*) FROM (SELECT 1 FROM decisions LIMIT $1) AS looked`)
	qCountBackfills = statement(`SELECT count(*) FROM (SELECT 1` + ofBackfills + ` WHERE ` + backfillLives + ` LIMIT $1) AS looked`)
)

// DecisionsIn implements store.Instants.
func (s *Store) DecisionsIn(ctx context.Context, uid job.UID, schedules []string, from, to job.Instant) ([]job.Decision, error) {
	var all []job.Decision
	err := s.look(ctx, "read decisions", func(r *link) error {
		for _, schedule := range schedules {
			if err := r.each(qDecisionAt, []any{uid[:], schedule, int64(from)}, func(rows pgx.Rows) error {
				d, is, err := scanDecisionAt(rows, uid, schedule, to)
				if is {
					all = append(all, d)
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// scanDecisionAt reads what qDecisionAt found; is tells whether that is one of the schedule and begins by the given instant.
func scanDecisionAt(rows pgx.Rows, uid job.UID, schedule string, by job.Instant) (d job.Decision, is bool, err error) {
	err = rows.Scan((*[16]byte)(&d.Job), &d.Namespace, &d.Name, &d.Schedule, (*string)(&d.Kind), (*string)(&d.Reason),
		(*int64)(&d.From), (*int64)(&d.To), &d.Count, (*int64)(&d.At))
	return d, err == nil && d.Job == uid && d.Schedule == schedule && d.From <= by, err
}

// Upcoming implements store.Instants.
func (s *Store) Upcoming(ctx context.Context, namespace string, until job.Instant, limit int) (rows []store.DueRow, more bool, err error) {
	err = s.look(ctx, "look ahead", func(r *link) error {
		var partitions []int64
		if err := r.each(qPartitionIDs, nil, func(rows pgx.Rows) error {
			var id int64
			err := rows.Scan(&id)
			partitions = append(partitions, id)
			return err
		}); err != nil {
			return err
		}
		for _, p := range partitions {
			n := 0
			if _, err := r.one(qUpcomingAll, []any{p, int64(until), int64(store.MaxUpcoming)}, &n); err != nil {
				return err
			}
			more = more || n == store.MaxUpcoming
			if err := r.each(qUpcoming, []any{p, int64(until), namespace, int64(limit) + 1, int64(store.MaxUpcoming)}, func(found pgx.Rows) error {
				var c job.Cursor
				d, err := scanDefinition(found, append([]any{&c.Schedule}, cursorDest(&c)...)...)
				if err != nil {
					return err
				}
				c.Job = d.UID
				rows = append(rows, store.DueRow{Definition: *d, Cursor: c})
				return nil
			}); err != nil {
				return err
			}
		}
		slices.SortFunc(rows, store.CompareDue)
		if len(rows) > limit {
			rows, more = rows[:limit], true
		}
		definitions := make([]*job.Definition, len(rows))
		for i := range rows {
			definitions[i] = &rows[i].Definition
		}
		return addCalendars(r, store.KnownCalendars{}, definitions...)
	})
	if err != nil {
		return nil, false, err
	}
	return rows, more, nil
}

// ZonesChanged implements store.Instants.
func (s *Store) ZonesChanged(ctx context.Context, mark int64, at job.Instant) (told int, err error) {
	note, err := encode(payload{At: at})
	if err != nil {
		return 0, err
	}
	var n int64
	err = s.write(ctx, "note the zones", func(w *link) error {
		n = 0
		changed, err := w.exec(qZonesPut, mark)
		if err != nil || changed == 0 {
			return err
		}
		n, err = w.exec(qZonesTell, entryRest, note)
		return err
	})
	return int(n), err
}

// Counts implements store.Instants.
func (s *Store) Counts(ctx context.Context) (store.Counts, error) {
	out := store.Counts{Live: map[job.ExecutionState]int{}}
	err := s.look(ctx, "count", func(r *link) error {
		for _, x := range []struct {
			q    query
			into *int
		}{{qCountJobs, &out.Jobs}, {qCountDecisions, &out.Decisions}, {qCountBackfills, &out.Backfills}} {
			if _, err := r.one(x.q, []any{int64(store.MaxCounted)}, x.into); err != nil {
				return err
			}
		}
		return r.each(qCountLive, []any{int64(store.MaxCounted)}, func(rows pgx.Rows) error {
			var state string
			var n int
			err := rows.Scan(&state, &n)
			out.Live[job.ExecutionState(state)] += n
			return err
		})
	})
	return out, err
}
