package sqlite

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Names of the lists in page texts.
const (
	listJobs       = "jobs"
	listExecutions = "executions"
	listShards     = "shards"
	listDecisions  = "decisions"
	listRevisions  = "revisions"
)

var (
	qJobs = statement(`SELECT ` + definitionColumns + ` FROM jobs j JOIN job_revisions r ON r.uid = j.uid AND r.revision = j.revision
		WHERE j.namespace = ? AND j.name > ? ORDER BY j.name LIMIT ?`)
	qShardPageLive    = statement(`SELECT ` + allShardColumns + ` FROM shards WHERE execution = ? AND idx >= ? ORDER BY idx LIMIT ?`)
	qShardPageHistory = statement(`SELECT ` + allShardColumns + ` FROM history_shards WHERE execution = ? AND idx >= ? ORDER BY idx LIMIT ?`)
	qBlockPageLive    = statement(`SELECT idx, block FROM shards WHERE execution = ? AND idx BETWEEN ? AND -1 ORDER BY idx`)
	qBlockPageHistory = statement(`SELECT idx, block FROM history_shards WHERE execution = ? AND idx BETWEEN ? AND -1 ORDER BY idx`)
	qDecisions        = statement(`SELECT id, job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions
		WHERE namespace = ? AND id < ? ORDER BY id DESC LIMIT ?`)
	qDecisionsOfJob = statement(`SELECT id, job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions
		WHERE namespace = ? AND id < ? AND name = ? ORDER BY id DESC LIMIT ?`)
	qJournalRows = statement(`SELECT partition, seq, epoch, at, facts FROM journal WHERE partition = ? AND seq > ? ORDER BY seq LIMIT ?`)
)

// Job implements store.Reader.
func (s *Store) Job(ctx context.Context, namespace, name string) (store.JobRow, error) {
	var out store.JobRow
	err := s.look(ctx, "read job", func(r *link) error {
		d, _, err := findJob(r, namespace, name)
		if err != nil {
			return err
		}
		if d == nil {
			return noJob(namespace, name)
		}
		out.Definition = *d
		out.Cursors, err = cursorsOf(r, d.UID)
		return err
	})
	if err != nil {
		return store.JobRow{}, err
	}
	return out, nil
}

// Jobs implements store.Reader.
func (s *Store) Jobs(ctx context.Context, namespace string, p store.Page) ([]store.JobRow, string, error) {
	var after string
	if _, err := store.ParseAfter(listJobs, p.After, &after); err != nil {
		return nil, "", err
	}
	all := store.Pageful[store.JobRow]{Limit: p.Rows()}
	err := s.look(ctx, "list jobs", func(r *link) error {
		if err := r.each(qJobs, []any{namespace, after, int64(p.Rows()) + 1}, func(rows *sql.Rows) error {
			d, err := scanDefinition(rows)
			if err != nil {
				return err
			}
			return all.Add(store.JobRow{Definition: *d}, store.SizeOfDefinition(d))
		}); err != nil {
			return err
		}
		known := store.KnownCalendars{}
		for i := range all.Rows {
			err := addCalendars(r, known, &all.Rows[i].Definition)
			if err != nil {
				return err
			}
			if all.Rows[i].Cursors, err = cursorsOf(r, all.Rows[i].Definition.UID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(listJobs, func(r store.JobRow) any { return r.Definition.Name }), nil
}

// Execution implements store.Reader.
func (s *Store) Execution(ctx context.Context, namespace string, id job.ExecutionID) (job.Execution, error) {
	var out job.Execution
	err := s.look(ctx, "read execution", func(r *link) error {
		e, err := findExecution(r, id)
		if err != nil {
			return err
		}
		if e == nil {
			if e, err = scheduled(r, id); err != nil {
				return err
			}
		}
		if e == nil || e.Namespace != namespace {
			return noExecution(namespace, id)
		}
		out = *e
		return nil
	})
	return out, err
}

// scheduled shows a trigger that waits in the inbox as the execution that it will be; nil when there is none.
func scheduled(r *link, id job.ExecutionID) (*job.Execution, error) {
	waits, namespace, partition, err := pendingTrigger(r, id)
	if err != nil || waits == nil {
		return nil, err
	}
	d, err := noDefinitions().get(r, version{waits.Job, waits.revision})
	if err != nil || d == nil {
		return nil, err
	}
	params := waits.Request.Params
	if len(params) == 0 {
		params = d.Spec.Params
	}
	return &job.Execution{
		ID: id, Partition: partition, Namespace: namespace, Job: d.Name, JobUID: d.UID, Revision: d.Revision,
		Pool: d.Spec.Pool, Handler: d.Spec.Handler, Trigger: job.TriggerRequest, PlannedAt: waits.Request.At,
		RequestKey: waits.Request.Key, Params: params, ShardTotal: d.Spec.ShardTotal(), State: job.ExecutionScheduled,
		Reason: store.ReasonAsked(waits.Request), CreatedAt: store.AskedAt(waits.Request),
	}, nil
}

// Shards implements store.Reader.
func (s *Store) Shards(ctx context.Context, namespace string, id job.ExecutionID, p store.Page) ([]job.Shard, string, error) {
	after := -1
	if _, err := store.ParseAfter(listShards, p.After, &after); err != nil {
		return nil, "", err
	}
	all := store.Pageful[job.Shard]{Limit: p.Rows()}
	err := s.look(ctx, "list shards", func(r *link) error {
		row, live, err := findRow(r, id)
		if err != nil {
			return err
		}
		if row == nil {
			e, err := scheduled(r, id)
			if err != nil || e == nil {
				return cmp.Or(err, noExecution(namespace, id))
			}
			row = &engine.Row{Execution: *e}
		}
		if row.Execution.Namespace != namespace {
			return noExecution(namespace, id)
		}
		if len(row.Shards) > 0 {
			if sh := row.Shards[0]; after < 0 {
				return all.Add(sh, store.SizeOfShard(&sh))
			}
			return nil
		}
		return shardsFrom(r, id, live, after+1, p.Rows()+1, func(sh *job.Shard) error { return all.Add(*sh, store.SizeOfShard(sh)) })
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(listShards, func(sh job.Shard) any { return sh.Index }), nil
}

// shardsFrom reads shards that do not lie in the row of their execution by index, up to limit of them.
func shardsFrom(r *link, id job.ExecutionID, live bool, from, limit int, see func(*job.Shard) error) error {
	own, blocks := qShardPageHistory, qBlockPageHistory
	if live {
		own, blocks = qShardPageLive, qBlockPageLive
	}
	m := store.ShardMerge{Left: limit, See: see}
	if err := r.each(blocks, []any{id[:], int64(store.BlockKey(store.InBlock(from)))}, func(rows *sql.Rows) error {
		var key int
		var block sql.RawBytes
		if err := rows.Scan(&key, &block); err != nil {
			return err
		}
		if m.Packed = store.PackedShards(m.Packed, id, key, block, from); len(m.Packed) >= limit {
			return store.ErrEnough
		}
		return nil
	}); err != nil {
		return err
	}
	if err := eachShard(r, own, []any{id[:], int64(from), int64(limit)}, m.Own); err != nil {
		return err
	}
	return m.Rest()
}

// Decisions implements store.Reader. Newest first is by the order of the commits.
func (s *Store) Decisions(ctx context.Context, namespace, name string, p store.Page) ([]job.Decision, string, error) {
	before := int64(1) << 62
	if _, err := store.ParseAfter(listDecisions, p.After, &before); err != nil {
		return nil, "", err
	}
	type numbered struct {
		id int64
		job.Decision
	}
	all := store.Pageful[numbered]{Limit: p.Rows()}
	q, args := qDecisions, []any{namespace, before, int64(p.Rows()) + 1}
	if name != "" {
		q, args = qDecisionsOfJob, []any{namespace, before, name, int64(p.Rows()) + 1}
	}
	err := s.look(ctx, "list decisions", func(r *link) error {
		return r.each(q, args, func(rows *sql.Rows) error {
			var d numbered
			var uid sql.RawBytes
			err := rows.Scan(&d.id, &uid, &d.Namespace, &d.Name, &d.Schedule, (*string)(&d.Kind), (*string)(&d.Reason), &d.From, &d.To, &d.Count, &d.At)
			if err != nil {
				return err
			}
			copy(d.Job[:], uid)
			return all.Add(d, store.RowBytes)
		})
	})
	if err != nil {
		return nil, "", err
	}
	var out []job.Decision
	for _, d := range all.Rows {
		out = append(out, d.Decision)
	}
	return out, all.Next(listDecisions, func(d numbered) any { return d.id }), nil
}

// Journal implements store.Reader.
func (s *Store) Journal(ctx context.Context, partition int, afterSeq int64, limit int) ([]store.JournalRow, error) {
	var all []store.JournalRow
	err := s.look(ctx, "read journal", func(r *link) error {
		return r.each(qJournalRows, []any{int64(partition), afterSeq, int64(store.Page{Limit: limit}.Rows())}, func(rows *sql.Rows) error {
			var j store.JournalRow
			var facts string
			err := rows.Scan(&j.Partition, &j.Seq, &j.Epoch, &j.At, &facts)
			if err == nil {
				j.Facts, err = store.JournalFacts(facts)
			}
			all = append(all, j)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
