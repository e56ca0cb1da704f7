package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

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
	qShardPageLive    = statement(`SELECT ` + shardColumns + ` FROM shards WHERE execution = ? AND idx > ? ORDER BY idx LIMIT ?`)
	qShardPageHistory = statement(`SELECT ` + shardColumns + ` FROM history_shards WHERE execution = ? AND idx > ? ORDER BY idx LIMIT ?`)
	qDecisions        = statement(`SELECT id, job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions
		WHERE +namespace = ? AND id < ? ORDER BY id DESC LIMIT ?`)
	qDecisionsOfJob = statement(`SELECT id, job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions
		WHERE namespace = ? AND id < ? AND name = ? ORDER BY id DESC LIMIT ?`)
	qJournalRows = statement(`SELECT partition, seq, epoch, at, facts FROM journal WHERE partition = ? AND seq > ? ORDER BY seq LIMIT ?`)
)

// Executions are listed newest first by id, which sorts by planned instant (R4). Live rows are few and walked by key. History is
// large: each of its texts names the index that has its rows in order.
var (
	qListLive = statement(`SELECT ` + executionColumns + ` FROM executions WHERE +namespace = ?1 AND id < ?2
		AND (?3 = '' OR job = ?3) AND (?4 = '' OR state = ?4) AND (?5 = '' OR pool = ?5) ORDER BY id DESC LIMIT ?6`)
	qListHistory        = historyList("history_executions_namespace", ``)
	qListHistoryOfJob   = historyList("history_executions_job", ` AND job = ?3`)
	qListHistoryInState = historyList("history_executions_state", ` AND state = ?4 AND state <> 'succeeded'`)
)

func historyList(index, more string) query {
	return statement(`SELECT ` + executionColumns + ` FROM history_executions INDEXED BY ` + index + ` WHERE namespace = ?1 AND id < ?2` + more + `
		AND (?3 = '' OR job = ?3) AND (?4 = '' OR state = ?4) AND (?5 = '' OR pool = ?5) ORDER BY id DESC LIMIT ?6`)
}

// beyond is above every id.
var beyond = bytes.Repeat([]byte{0xff}, 17)

// page cuts rows, of which one more than wanted was asked for, and makes the text that leads on.
func page[T any](rows []T, p store.Page, list string, key func(T) any) ([]T, string) {
	if len(rows) <= p.Rows() {
		return rows, ""
	}
	rows = rows[:p.Rows()]
	return rows, store.After(list, key(rows[len(rows)-1]))
}

// Job implements store.Reader.
func (s *Store) Job(ctx context.Context, namespace, name string) (store.JobRow, error) {
	var out store.JobRow
	err := s.read(ctx, "read job", func(r *link) error {
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
	var all []store.JobRow
	err := s.read(ctx, "list jobs", func(r *link) error {
		if err := r.each(qJobs, []any{namespace, after, int64(p.Rows()) + 1}, func(rows *sql.Rows) error {
			d, err := scanDefinition(rows)
			if err == nil {
				all = append(all, store.JobRow{Definition: *d})
			}
			return err
		}); err != nil {
			return err
		}
		for i := range all {
			var err error
			if all[i].Cursors, err = cursorsOf(r, all[i].Definition.UID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	all, next := page(all, p, listJobs, func(r store.JobRow) any { return r.Definition.Name })
	return all, next, nil
}

// Execution implements store.Reader.
func (s *Store) Execution(ctx context.Context, namespace string, id job.ExecutionID) (job.Execution, error) {
	var out job.Execution
	err := s.read(ctx, "read execution", func(r *link) error {
		e, _, err := findExecution(r, id)
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
	entry, namespace, partition, err := pendingTrigger(r, id)
	if err != nil || entry == nil {
		return nil, err
	}
	d, err := definitions{}.get(r, version{uid: entry.Job})
	if err != nil || d == nil {
		return nil, err
	}
	params := entry.Request.Params
	if len(params) == 0 {
		params = d.Spec.Params
	}
	return &job.Execution{
		ID: id, Partition: partition, Namespace: namespace, Job: d.Name, JobUID: d.UID, Revision: d.Revision,
		Pool: d.Spec.Pool, Handler: d.Spec.Handler, Trigger: job.TriggerRequest, PlannedAt: entry.Request.At,
		RequestKey: entry.Request.Key, Params: params, ShardTotal: d.Spec.ShardTotal(), State: job.ExecutionScheduled,
		CreatedAt: entry.Request.At,
	}, nil
}

// Executions implements store.Reader.
func (s *Store) Executions(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
	if !f.Query.Empty() {
		return s.queried(ctx, f)
	}
	return s.listed(ctx, f)
}

// listed lists without the query.
func (s *Store) listed(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
	var after job.ExecutionID
	behind := beyond
	more, err := store.ParseAfter(listExecutions, f.After, &after)
	if err != nil {
		return nil, "", err
	}
	if more {
		behind = after[:]
	}
	history := qListHistory
	switch {
	case f.Job != "":
		history = qListHistoryOfJob
	case f.State != "" && f.State != job.ExecutionSucceeded:
		history = qListHistoryInState
	}
	var all []job.Execution
	args := []any{f.Namespace, behind, f.Job, string(f.State), f.Pool, int64(f.Rows()) + 1}
	err = s.read(ctx, "list executions", func(r *link) error {
		for _, q := range []query{qListLive, history} {
			if err := r.each(q, args, func(rows *sql.Rows) error {
				e, err := scanExecution(rows)
				all = append(all, e)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(all, func(a, b job.Execution) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	all, next := page(all, f.Page, listExecutions, func(e job.Execution) any { return e.ID })
	return all, next, nil
}

// Shards implements store.Reader.
func (s *Store) Shards(ctx context.Context, namespace string, id job.ExecutionID, p store.Page) ([]job.Shard, string, error) {
	after := -1
	if _, err := store.ParseAfter(listShards, p.After, &after); err != nil {
		return nil, "", err
	}
	var all []job.Shard
	err := s.read(ctx, "list shards", func(r *link) error {
		e, live, err := findExecution(r, id)
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
		q := qShardPageHistory
		if live {
			q = qShardPageLive
		}
		return r.each(q, []any{id[:], int64(after), int64(p.Rows()) + 1}, func(rows *sql.Rows) error {
			sh, err := scanShard(rows)
			all = append(all, sh)
			return err
		})
	})
	if err != nil {
		return nil, "", err
	}
	all, next := page(all, p, listShards, func(sh job.Shard) any { return sh.Index })
	return all, next, nil
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
	var all []numbered
	q, args := qDecisions, []any{namespace, before, int64(p.Rows()) + 1}
	if name != "" {
		q, args = qDecisionsOfJob, []any{namespace, before, name, int64(p.Rows()) + 1}
	}
	err := s.read(ctx, "list decisions", func(r *link) error {
		return r.each(q, args, func(rows *sql.Rows) error {
			var d numbered
			var uid sql.RawBytes
			err := rows.Scan(&d.id, &uid, &d.Namespace, &d.Name, &d.Schedule, (*string)(&d.Kind), (*string)(&d.Reason), &d.From, &d.To, &d.Count, &d.At)
			copy(d.Job[:], uid)
			all = append(all, d)
			return err
		})
	})
	if err != nil {
		return nil, "", err
	}
	all, next := page(all, p, listDecisions, func(d numbered) any { return d.id })
	var out []job.Decision
	for _, d := range all {
		out = append(out, d.Decision)
	}
	return out, next, nil
}

// Journal implements store.Reader.
func (s *Store) Journal(ctx context.Context, partition int, afterSeq int64, limit int) ([]store.JournalRow, error) {
	var all []store.JournalRow
	err := s.read(ctx, "read journal", func(r *link) error {
		return r.each(qJournalRows, []any{int64(partition), afterSeq, int64(store.Page{Limit: limit}.Rows())}, func(rows *sql.Rows) error {
			var j store.JournalRow
			var facts string
			err := rows.Scan(&j.Partition, &j.Seq, &j.Epoch, &j.At, &facts)
			j.Facts = []byte(facts)
			all = append(all, j)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
