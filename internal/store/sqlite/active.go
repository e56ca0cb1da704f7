package sqlite

import (
	"database/sql"
	"fmt"
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
		THEN ` + asRow(`s.execution, s.idx, s.state, s.reason, s.token, s.closed, s.report_seq, s.ended_at`) + `
		ELSE ` + asRow(qualified("s", shardColumns)) + ` END
		FROM executions e INDEXED BY executions_active CROSS JOIN shards s ON s.execution = e.id
		WHERE e.partition = ? AND e.state NOT IN ('queued', 'scheduled') ORDER BY e.id`)
)

// activeRows reads all that is under way in one pass over each table, for there may be 100,000 of them.
func activeRows(r *link, partition int) ([]engine.Row, error) {
	of := []any{int64(partition)}
	count := 0
	if _, err := r.one(qActiveCount, of, &count); err != nil {
		return nil, err
	}
	read := newRowReader()
	all := slices.Grow([]engine.Row(nil), count)
	if err := r.each(qActive, of, func(rows *sql.Rows) error {
		row, err := read.row(rows)
		all = append(all, row)
		return err
	}); err != nil {
		return nil, err
	}
	if err := addActiveShards(r, of, read, all); err != nil {
		return nil, err
	}
	versions, err := activeDefinitions(r, of)
	if err != nil {
		return nil, err
	}
	for i := range all {
		row := &all[i]
		slices.SortFunc(row.Shards, func(a, b job.Shard) int { return a.Index - b.Index }) // they are, as a rule
		row.Definition = versions[version{row.Execution.JobUID, row.Execution.Revision}]
		share(row)
	}
	return all, nil
}

// activeDefinitions are the revisions of jobs that something is under way of.
func activeDefinitions(r *link, of []any) (map[version]*job.Definition, error) {
	versions := map[version]*job.Definition{}
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

// addActiveShards reads the shards of rows.
func addActiveShards(r *link, of []any, read *rowReader, all []engine.Row) error {
	at := 0
	return r.each(qActiveShards, of, func(rows *sql.Rows) error {
		sh, err := read.activeShard(rows)
		if err != nil {
			return err
		}
		for at < len(all) && all[at].Execution.ID != sh.Execution {
			at++
		}
		if at == len(all) {
			return fmt.Errorf("a shard of execution %s was read out of order", sh.Execution)
		}
		row := &all[at]
		if row.Shards == nil {
			row.Shards = make([]job.Shard, 0, min(max(row.Execution.ShardTotal, 1), job.MaxShards))
		}
		row.Shards = append(row.Shards, sh)
		return nil
	})
}
