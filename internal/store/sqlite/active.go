package sqlite

import (
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// The index has the executions in the order of their ids; the shards come in the same order.
var (
	qActive       = statement(`SELECT ` + asRow(qualified("e", rowColumns)) + activeOf + ` ORDER BY e.id`)
	qActiveShards = statement(`SELECT CASE WHEN s.state IN ` + endedShards + `
		THEN ` + asRow(qualified("s", store.EndedShardColumns)) + ` ELSE ` + asRow(qualified("s", store.ActiveShardColumns)) + ` END
		FROM executions e INDEXED BY executions_active CROSS JOIN shards s ON s.execution = e.id
		WHERE e.partition = ? AND e.state NOT IN ('queued', 'scheduled') AND e.shard_state IS NULL ORDER BY e.id`)
)

// activeRows reads all that is under way in one pass over each table, for there may be 100,000 of them.
func activeRows(r *link, partition int) ([]engine.Row, error) {
	of := []any{int64(partition)}
	count := 0
	if _, err := r.one(qActiveCount, of, &count); err != nil {
		return nil, err
	}
	var row packed
	columns := store.ColumnsOf(&row)
	all := slices.Grow([]engine.Row(nil), count)
	if err := r.each(qActive, of, func(rows *sql.Rows) error {
		err := row.next(rows)
		if err == nil {
			all = append(all, columns.ActiveRow())
			err = row.end()
		}
		return err
	}); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(row engine.Row) bool { return len(row.Shards) == 0 }) {
		if err := addActiveShards(r, of, all); err != nil {
			return nil, err
		}
	}
	versions, err := activeDefinitions(r, of, all)
	if err != nil {
		return nil, err
	}
	for i := range all {
		row := &all[i]
		store.SortShards(row.Shards)
		row.Definition = versions[version{row.Execution.JobUID, row.Execution.Revision}]
		share(row)
	}
	return all, nil
}

// activeDefinitions are the revisions of jobs that something is under way of: by their keys, or all in one query.
func activeDefinitions(r *link, of []any, all []engine.Row) (map[version]*job.Definition, error) {
	const few = 1000
	versions := map[version]*job.Definition{}
	for i := range all {
		versions[version{all[i].Execution.JobUID, all[i].Execution.Revision}] = nil
	}
	if len(versions) <= few {
		known := noDefinitions()
		for v := range versions {
			if _, err := known.get(r, v); err != nil {
				return nil, err
			}
		}
		return known.of, nil
	}
	for _, q := range []query{qActiveVersions, qActiveDeleted} {
		if err := r.each(q, of, func(rows *sql.Rows) error {
			d, err := scanDefinition(rows)
			if err == nil {
				versions[version{d.UID, d.Revision}] = d
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	err := addCalendars(r, store.KnownCalendars{}, slices.Collect(maps.Values(versions))...)
	return versions, err
}

// addActiveShards reads the shards that lie apart.
func addActiveShards(r *link, of []any, all []engine.Row) error {
	var row packed
	columns, at := store.ColumnsOf(&row), 0
	return r.each(qActiveShards, of, func(rows *sql.Rows) error {
		if err := row.next(rows); err != nil {
			return err
		}
		columns.ActiveShards(func(sh *job.Shard) {
			for at < len(all) && all[at].Execution.ID != sh.Execution {
				at++
			}
			if at == len(all) {
				return
			}
			of := &all[at]
			if of.Shards == nil {
				of.Shards = make([]job.Shard, 0, min(max(of.Execution.ShardTotal, 1), job.MaxShards))
			}
			of.Shards = append(of.Shards, *sh)
		})
		if at == len(all) {
			return errors.New("a shard was read out of the order of executions")
		}
		return row.end()
	})
}
