package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

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
		WHERE j.namespace = $1 AND j.name > $2 ORDER BY j.name LIMIT $3`)
	qCursorsOfJobs    = statement(`SELECT c.job, c.schedule, ` + cursorColumns + ` FROM cursors c WHERE c.job = ANY($1::uuid[]) ORDER BY c.job, c.schedule`)
	qShardPageLive    = statement(`SELECT ` + allShardColumns + ` FROM shards WHERE execution = $1 AND idx >= $2 ORDER BY idx LIMIT $3`)
	qShardPageHistory = statement(`SELECT ` + allShardColumns + ` FROM history_shards WHERE execution = $1 AND idx >= $2 ORDER BY idx LIMIT $3`)
	qBlockPageLive    = statement(`SELECT idx, block FROM shards WHERE execution = $1 AND idx >= $2 AND idx < 0 ORDER BY idx LIMIT $3`)
	qBlockPageHistory = statement(`SELECT idx, block FROM history_shards WHERE execution = $1 AND idx >= $2 AND idx < 0 ORDER BY idx LIMIT $3`)
	// As in lists of executions, the columns are ordered as a row with the id for the sake of the right index, and the
	// reader stops at the first row that is not his.
	qDecisions = statement(`SELECT id, job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions
		WHERE (namespace, id) < ($1, $2::bigint) ORDER BY namespace DESC, id DESC LIMIT $3`)
	qDecisionsOfJob = statement(`SELECT id, job, namespace, name, schedule, kind, reason, "from", "to", count, at FROM decisions
		WHERE (namespace, name, id) < ($1, $3, $2::bigint) ORDER BY namespace DESC, name DESC, id DESC LIMIT $4`)
	qJournalRows = statement(`SELECT partition, seq, epoch, at, facts FROM journal WHERE partition = $1 AND seq > $2 ORDER BY seq LIMIT $3`)
)

// Job implements store.Reader.
func (s *Store) Job(ctx context.Context, namespace, name string) (store.JobRow, error) {
	var out store.JobRow
	if !store.Clean(namespace) || !store.Clean(name) {
		return out, noJob(namespace, name)
	}
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
	if !store.Clean(namespace) || !store.Clean(after) { // no row has such a name
		return nil, "", nil
	}
	all := store.Pageful[store.JobRow]{Limit: p.Rows()}
	err := s.look(ctx, "list jobs", func(r *link) error {
		if err := inPieces(p.Rows()+1, &all.More, func(limit int) (n int, err error) {
			err = r.each(qJobs, []any{namespace, after, limit}, func(rows pgx.Rows) error {
				d, err := scanDefinition(rows)
				if err != nil {
					return err
				}
				n, after = n+1, d.Name
				return all.Add(store.JobRow{Definition: *d}, store.SizeOfDefinition(d))
			})
			return n, err
		}); err != nil {
			return err
		}
		definitions := column(all.Rows, func(row *store.JobRow) *job.Definition { return &row.Definition })
		if err := addCalendars(r, store.KnownCalendars{}, definitions...); err != nil {
			return err
		}
		return addCursors(r, all.Rows)
	})
	if err != nil {
		return nil, "", err
	}
	return all.Rows, all.Next(listJobs, func(r store.JobRow) any { return r.Definition.Name }), nil
}

// addCursors reads the cursors of a page of jobs at once.
func addCursors(r *link, page []store.JobRow) error {
	at := map[job.UID]int{}
	var uids [][]byte
	for i := range page {
		uid := page[i].Definition.UID
		at[uid], uids = i, append(uids, uid[:])
	}
	if len(uids) == 0 {
		return nil
	}
	return r.each(qCursorsOfJobs, []any{uids}, func(rows pgx.Rows) error {
		c, err := scanCursor(rows)
		if err == nil {
			row := &page[at[c.Job]]
			row.Cursors = append(row.Cursors, c)
		}
		return err
	})
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

// shardsFrom reads shards that do not lie in the row of their execution by index, up to limit of them. Rows of their own
// may be large: they are read in pieces.
func shardsFrom(r *link, id job.ExecutionID, live bool, from, limit int, see func(*job.Shard) error) error {
	own, blocks := qShardPageHistory, qBlockPageHistory
	if live {
		own, blocks = qShardPageLive, qBlockPageLive
	}
	m := store.ShardMerge{Left: limit, See: see}
	for key, more := blockKey(from), true; more && len(m.Packed) < limit; {
		want, got := limit/store.BlockShards+2, 0
		if err := r.each(blocks, []any{id[:], key, want}, func(rows pgx.Rows) error {
			var block []byte
			if err := rows.Scan(&key, &block); err != nil {
				return err
			}
			m.Packed = store.PackedShards(m.Packed, id, int(key), block, from)
			got++
			return nil
		}); err != nil {
			return err
		}
		key, more = key+1, got == want
	}
	full, next := false, from
	if err := inPieces(limit, &full, func(limit int) (n int, err error) {
		err = eachShard(r, own, []any{id[:], next, limit}, func(sh *job.Shard) error {
			n, next = n+1, sh.Index+1
			err := m.Own(sh)
			full = errors.Is(err, store.ErrEnough)
			return err
		})
		return n, err
	}); err != nil {
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
	if !store.Clean(namespace) || !store.Clean(name) { // no row has such a name
		return nil, "", nil
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
		return r.each(q, args, func(rows pgx.Rows) error {
			var d numbered
			err := rows.Scan(&d.id, (*[16]byte)(&d.Job), &d.Namespace, &d.Name, &d.Schedule, (*string)(&d.Kind), (*string)(&d.Reason), (*int64)(&d.From), (*int64)(&d.To), &d.Count, (*int64)(&d.At))
			if err != nil {
				return err
			}
			if d.Namespace != namespace || name != "" && d.Name != name {
				return store.ErrEnough
			}
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
		return r.each(qJournalRows, []any{partition, afterSeq, int64(store.Page{Limit: limit}.Rows())}, func(rows pgx.Rows) error {
			var j store.JournalRow
			var facts string
			err := rows.Scan(&j.Partition, &j.Seq, (*int64)(&j.Epoch), (*int64)(&j.At), &facts)
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
