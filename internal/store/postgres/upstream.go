package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qNewestLive = statement(`SELECT * FROM (` + newestIn(`executions`) + `) e UNION ALL SELECT * FROM (` + newestInLots + `) m
		ORDER BY id DESC LIMIT ` + strconv.Itoa(store.NewestOf))
	qNewestHistory = statement(newestIn(`history_executions`))
	qAwaiting      = statement(`SELECT id, job_uid FROM executions
		WHERE partition BETWEEN $1 AND $1 AND state = 'scheduled' AND reason = 'upstream' AND id > $2 ORDER BY partition, id LIMIT $3`)
	qMatchedPut = statement(`INSERT INTO execution_parents (execution, parents) SELECT * FROM unnest($1::uuid[], $2::text[])
		ON CONFLICT (execution) DO UPDATE SET parents = excluded.parents`)
	qMatchedDrop      = statement(`DELETE FROM execution_parents WHERE execution = ANY($1::uuid[])`)
	qMatchedDropMonth = statement(`DELETE FROM execution_parents WHERE execution >= $1::uuid AND execution < $2::uuid`)
	qMatched          = statement(`SELECT parents FROM execution_parents WHERE execution = $1`)
)

// newestIn bounds the namespace by one value and the job by two, so that only the index of jobs has the order, and has it cheapest: were
// both bounded, that of pools would be, which reads the whole namespace.
func newestIn(table string) string {
	return `SELECT ` + rowColumns + ` FROM ` + table + `
		WHERE namespace = $1 AND job BETWEEN $2 AND $2 AND id >= $3 AND id < $4 AND job_uid = $5 ORDER BY job DESC, id DESC LIMIT ` + strconv.Itoa(store.NewestOf)
}

var newestInLots = firstMembers(rowColumns, `l.job_uid = $5 AND l.last >= $3 AND l.first < $4`, `m.id >= $3 AND m.id < $4`,
	` ORDER BY m.id DESC LIMIT `+strconv.Itoa(store.NewestOf))

// UpstreamPage implements store.Engine.
func (s *Store) UpstreamPage(ctx context.Context, partition int, asks []engine.UpstreamAsk) (engine.UpstreamPage, error) {
	var out engine.UpstreamPage
	err := s.read(ctx, "read parents", func(r *link) (err error) {
		if out.Seq, err = seqOf(r, partition); err != nil {
			return err
		}
		out.Asked, out.Items, err = store.ReadUpstreams(newUpstream(r), asks)
		return err
	})
	if err != nil {
		return engine.UpstreamPage{}, err
	}
	return out, nil
}

// Upstream implements store.Reader.
func (s *Store) Upstream(ctx context.Context, x job.Execution) (u engine.Upstream, matched []job.Parent, err error) {
	err = s.look(ctx, "read parents", func(r *link) error {
		if u, err = store.ReadUpstream(newUpstream(r), engine.UpstreamAsk{Child: x.JobUID, Waiting: x.ID}); err != nil {
			return err
		}
		matched, err = newUpstream(r).Matched(x.ID)
		return err
	})
	return u, matched, err
}

// Given implements store.Reader.
func (s *Store) Given(ctx context.Context, asks []store.GivenAsk) ([][]store.Given, error) {
	all := make([][]store.Given, len(asks))
	err := s.look(ctx, "read what parents gave", func(r *link) (err error) {
		for i := range asks {
			if all[i], err = store.ReadGiven(newUpstream(r), asks[i]); err != nil {
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

// AwaitingPage implements store.Engine.
func (s *Store) AwaitingPage(ctx context.Context, partition int, w engine.WantAwaiting) (engine.AwaitingPage, error) {
	var out engine.AwaitingPage
	err := s.read(ctx, "read what waits for parents", func(r *link) (err error) {
		if out.Seq, err = seqOf(r, partition); err != nil {
			return err
		}
		return r.each(qAwaiting, []any{partition, [16]byte(w.After), w.Limit + 1}, func(rows pgx.Rows) error {
			var x engine.Awaiting
			if err := rows.Scan((*[16]byte)(&x.Execution), (*[16]byte)(&x.Child)); err != nil {
				return err
			}
			if len(out.Items) == w.Limit {
				out.Partial = true
				return nil
			}
			out.Items = append(out.Items, x)
			return nil
		})
	})
	if err != nil {
		return engine.AwaitingPage{}, err
	}
	return out, nil
}

// upstream implements store.UpstreamReads and store.GivenReads.
type upstream struct {
	*link
	known definitions
	live  map[job.ExecutionID]bool
}

func newUpstream(r *link) *upstream {
	return &upstream{link: r, known: noDefinitions(), live: map[job.ExecutionID]bool{}}
}

func (r *upstream) Newest(uid job.UID) (d *job.Definition, planner, place int, err error) {
	if d, err = r.known.get(r.link, version{uid, 0}); err != nil || d == nil {
		return nil, 0, 0, err
	}
	err = r.each(qPlaces, []any{[][16]byte{uid}}, func(rows pgx.Rows) error {
		var id [16]byte
		return rows.Scan(&id, &planner, &place, new(int64))
	})
	return d, planner, place, err
}

func (r *upstream) UIDOf(namespace, name string) (uid job.UID, err error) {
	_, err = r.one(qUID, []any{namespace, name}, (*[16]byte)(&uid))
	return uid, err
}

func (r *upstream) Find(id job.ExecutionID) (*engine.Row, error) {
	row, live, err := findRow(r.link, id)
	r.live[id] = live
	return row, err
}

func (r *upstream) NewestBetween(d *job.Definition, parent job.UID, name string, first, last job.ExecutionID, ended bool) (newest *engine.Row, err error) {
	tables := []query{qNewestHistory, qNewestLive}
	if ended {
		tables = tables[:1]
	}
	for _, q := range tables {
		if err := r.each(q, []any{d.Namespace, name, [16]byte(first), [16]byte(last), [16]byte(parent)}, func(rows pgx.Rows) error {
			row, err := scanRow(rows)
			if newest == nil || store.Later(&row, newest) {
				newest = &row
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return newest, nil
}

func (r *upstream) Decided(child job.UID, at job.Instant) (is bool, err error) {
	err = r.each(qDecisionAt, []any{[16]byte(child), "", int64(at)}, func(rows pgx.Rows) error {
		_, is, err = scanDecisionAt(rows, child, "", at)
		return err
	})
	return is, err
}

func (r *upstream) Fill(row *engine.Row) error {
	shards := qShardsHistory
	if r.live[row.Execution.ID] {
		shards = qShardsLive
	}
	page := store.Pageful[engine.Row]{Limit: 1}
	if err := fill(r.link, &page, []engine.Row{*row}, shards); err != nil {
		return err
	}
	if len(page.Rows) == 1 {
		*row = page.Rows[0]
	}
	return nil
}

func (r *upstream) Matched(id job.ExecutionID) ([]job.Parent, error) {
	var text []byte
	_, err := r.one(qMatched, []any{[16]byte(id)}, &text)
	return store.ReadParents(text), err
}

func (r *upstream) EachShard(row *engine.Row, from, limit int, see func(*job.Shard) error) error {
	if len(row.Shards) > 0 { // it lies in the row
		return store.SeeFrom(row.Shards, from, see)
	}
	id := row.Execution.ID
	return shardsFrom(r.link, id, r.live[id], from, limit, see)
}
