package sqlite

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qNewestLive    = newestIn("executions")
	qNewestHistory = newestIn("history_executions")
	qAwaiting      = statement(`SELECT id, job_uid FROM executions INDEXED BY executions_awaiting
		WHERE partition = ? AND state = 'scheduled' AND reason = 'upstream' AND id > ? ORDER BY id LIMIT ?`)
	qMatchedPut  = statement(`INSERT INTO execution_parents (execution, parents) VALUES (?, ?) ON CONFLICT (execution) DO UPDATE SET parents = excluded.parents`)
	qMatchedDrop = statement(`DELETE FROM execution_parents WHERE execution = ?`)
	qMatched     = statement(`SELECT parents FROM execution_parents WHERE execution = ?`)
)

func newestIn(table string) query {
	return statement(`SELECT ` + rowColumns + ` FROM ` + table + ` INDEXED BY ` + table + `_job
		WHERE namespace = ? AND job = ? AND id >= ? AND id < ? AND job_uid = ? ORDER BY id DESC LIMIT ` + strconv.Itoa(store.NewestOf))
}

// UpstreamPage implements store.Engine.
func (s *Store) UpstreamPage(ctx context.Context, partition int, asks []engine.UpstreamAsk) (engine.UpstreamPage, error) {
	var out engine.UpstreamPage
	err := s.read(ctx, "read parents", func(r *link) (err error) {
		if out.Seq, _, err = seqOf(r, partition); err != nil {
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
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		return r.each(qAwaiting, []any{int64(partition), w.After[:], int64(w.Limit) + 1}, func(rows *sql.Rows) error {
			var id, uid sql.RawBytes
			if err := rows.Scan(&id, &uid); err != nil {
				return err
			}
			if len(out.Items) == w.Limit {
				out.Partial = true
				return nil
			}
			out.Items = append(out.Items, engine.Awaiting{Execution: job.ExecutionID(id), Child: job.UID(uid)})
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
	_, err = r.one(qPlaces, []any{uid[:]}, &planner, &place, new(int64))
	return d, planner, place, err
}

func (r *upstream) UIDOf(namespace, name string) (uid job.UID, err error) {
	var id []byte
	_, err = r.one(qUID, []any{namespace, name}, &id)
	copy(uid[:], id)
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
		if err := r.each(q, []any{d.Namespace, name, first[:], last[:], parent[:]}, func(rows *sql.Rows) error {
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
	err = r.each(qDecisionAt, []any{child[:], "", int64(at)}, func(rows *sql.Rows) error {
		_, is, err = scanDecisionAt(rows, child, "", at)
		return err
	})
	return is, err
}

func (r *upstream) Fill(row *engine.Row) (err error) {
	shards := qShardsHistory
	if r.live[row.Execution.ID] {
		shards = qShardsLive
	}
	*row, err = r.known.row(r.link, *row, shards)
	return err
}

func (r *upstream) Matched(id job.ExecutionID) ([]job.Parent, error) {
	var text sql.NullString
	_, err := r.one(qMatched, []any{id[:]}, &text)
	return store.ReadParents([]byte(text.String)), err
}

func (r *upstream) EachShard(row *engine.Row, from, limit int, see func(*job.Shard) error) error {
	if len(row.Shards) > 0 { // it lies in the row
		return store.SeeFrom(row.Shards, from, see)
	}
	id := row.Execution.ID
	return shardsFrom(r.link, id, r.live[id], from, limit, see)
}

// matched keeps by which executions of its parents an execution was decided.
func (c *commit) matched() error {
	for i := range c.batch.Matched {
		m := &c.batch.Matched[i]
		text, err := encode(m.Parents)
		if err != nil {
			return err
		}
		if _, err := c.exec(qMatchedPut, m.Execution[:], text); err != nil {
			return err
		}
	}
	return nil
}
