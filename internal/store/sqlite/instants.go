package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qDecisionAt = statement(`SELECT job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions INDEXED BY decisions_instant
		WHERE job = ? AND schedule = ? AND "to" >= ? ORDER BY "to" LIMIT 1`)
	qUpcoming = statement(`SELECT ` + definitionColumns + `, c.job, c.schedule, ` + cursorColumns + `
		FROM (SELECT * FROM cursors INDEXED BY cursors_due WHERE partition = ?1 AND next > 0 AND next <= ?2 ORDER BY next, job, schedule LIMIT ?5) c
		CROSS JOIN jobs j ON j.uid = c.job CROSS JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision
		WHERE j.namespace = ?3 AND j.disabled = 0 ORDER BY c.next, c.job, c.schedule LIMIT ?4`)
	qUpcomingAll  = statement(`SELECT count(*) FROM (SELECT 1 FROM cursors INDEXED BY cursors_due WHERE partition = ?1 AND next > 0 AND next <= ?2 LIMIT ?3)`)
	qPartitionIDs = statement(`SELECT id FROM partitions ORDER BY id`)
	qZonesPut     = statement(`INSERT INTO meta (key, value) VALUES ('zones', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value`)
	qZonesTell    = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, payload) SELECT ` + plannerOf + `, ?, 'job_changed', j.namespace, j.uid, ?
		FROM jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision WHERE r.spec LIKE '%"timeZone":%'`)
	qCountJobs      = statement(`SELECT count(*) FROM (SELECT 1 FROM jobs LIMIT ?)`)
	qCountLive      = statement(`SELECT state, count(*) FROM (SELECT state FROM executions LIMIT ?) GROUP BY state`)
	qCountDecisions = statement(`SELECT count(*) FROM (SELECT 1 FROM decisions LIMIT ?)`)
	qCountBackfills = statement(`SELECT count(*) FROM (SELECT 1` + ofBackfills + ` WHERE ` + backfillLives + ` LIMIT ?)`)
)

// DecisionsIn implements store.Instants.
func (s *Store) DecisionsIn(ctx context.Context, uid job.UID, schedules []string, from, to job.Instant) ([]job.Decision, error) {
	var all []job.Decision
	err := s.look(ctx, "read decisions", func(r *link) error {
		for _, schedule := range schedules {
			if err := r.each(qDecisionAt, []any{uid[:], schedule, int64(from)}, func(rows *sql.Rows) error {
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
func scanDecisionAt(rows *sql.Rows, uid job.UID, _ string, by job.Instant) (d job.Decision, is bool, err error) {
	d.Job = uid
	var id sql.RawBytes
	err = rows.Scan(&id, &d.Namespace, &d.Name, &d.Schedule, (*string)(&d.Kind), (*string)(&d.Reason), &d.From, &d.To, &d.Count, &d.At)
	return d, err == nil && d.From <= by, err
}

// Upcoming implements store.Instants.
func (s *Store) Upcoming(ctx context.Context, namespace string, until job.Instant, limit int) (rows []store.DueRow, more bool, err error) {
	err = s.look(ctx, "look ahead", func(r *link) error {
		var partitions []int64
		if err := r.each(qPartitionIDs, nil, func(rows *sql.Rows) error {
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
			if err := r.each(qUpcoming, []any{p, int64(until), namespace, int64(limit) + 1, int64(store.MaxUpcoming)}, func(found *sql.Rows) error {
				var c job.Cursor
				var id sql.RawBytes
				d, err := scanDefinition(found, append([]any{&id, &c.Schedule}, cursorDest(&c)...)...)
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
	err = s.write(ctx, rankPeople, "note the zones", func(w *link) error {
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
		return r.each(qCountLive, []any{int64(store.MaxCounted)}, func(rows *sql.Rows) error {
			var state string
			var n int
			err := rows.Scan(&state, &n)
			out.Live[job.ExecutionState(state)] = n
			return err
		})
	})
	return out, err
}
