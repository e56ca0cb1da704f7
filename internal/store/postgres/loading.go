package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// LoadPartition implements store.Engine. A server that takes over loads many partitions at once, of which most have little: that is one
// way to the database, two where something is under way, three where calendars belong to it, or shards that have ended. Each is a snapshot
// of its own. When the partition was committed to in between they do not belong together, and all is read anew in one transaction.
func (s *Store) LoadPartition(ctx context.Context, partition int) (engine.Loaded, error) {
	var l *loading
	err := s.readInFew(ctx, "load partition", func(ask func(...question) error) error {
		l = &loading{partition: partition}
		return l.read(ask)
	})
	if err != nil {
		return engine.Loaded{}, err
	}
	return l.out, nil
}

// readInFew lets fn ask in few ways to the database, each a snapshot of its own. When fn finds that they do not belong together, which is
// errMore, it runs again, with all ways in one transaction.
func (s *Store) readInFew(ctx context.Context, op string, fn func(ask func(...question) error) error) error {
	err := fn(func(all ...question) error { return s.ask(ctx, op, all...) })
	if errors.Is(err, errMore) {
		err = s.read(ctx, op, func(r *link) error {
			return fn(func(all ...question) error { _, err := r.ask(all...); return err })
		})
	}
	return err
}

// loading is a partition that is being read.
type loading struct {
	partition int
	out       engine.Loaded
	known     definitions
	found     []*job.Definition
	homes     map[job.UID]store.JobAt
	shards    *shardsOf
}

func (l *loading) read(ask func(...question) error) error {
	l.known, l.homes = noDefinitions(), map[job.UID]store.JobAt{}
	if err := ask(l.all()...); err != nil {
		return err
	}
	if l.out.Seq < 0 {
		return noPartition(l.partition)
	}
	slices.SortFunc(l.out.Sessions, func(a, b job.Session) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(l.out.Executions, func(a, b engine.Row) int { return bytes.Compare(a.Execution.ID[:], b.Execution.ID[:]) })
	slices.SortFunc(l.out.Backfills, func(a, b engine.Backfill) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for _, more := range []func() []question{l.belonging, l.rest} {
		if all := more(); len(all) > 0 {
			var seq int64
			var last job.Token
			if err := ask(append([]question{seqIs(l.partition, &seq, &last)}, all...)...); err != nil {
				return err
			}
			if seq != l.out.Seq {
				return errMore
			}
		}
	}
	return l.join()
}

// all is what the partition has.
func (l *loading) all() []question {
	return []question{
		seqIs(l.partition, &l.out.Seq, &l.out.LastToken),
		{qSessions, []any{l.partition}, func(rows pgx.Rows) error {
			v, err := scanSession(rows)
			l.out.Sessions = append(l.out.Sessions, v)
			return err
		}},
		active(qActive, l.partition, func(c *store.Columns) { l.out.Executions = append(l.out.Executions, c.ActiveRow()) }),
		waitingRows(l.partition, &l.out.Waiting),
		{qOwes, []any{l.partition}, func(pgx.Rows) error { l.out.Owes = true; return nil }},
		{qBackfillsLive, []any{l.partition}, func(rows pgx.Rows) error {
			b, err := scanBackfill(rows)
			l.out.Backfills = append(l.out.Backfills, engine.Backfill{Backfill: b})
			return err
		}},
	}
}

// belonging is what that refers to.
func (l *loading) belonging() (all []question) {
	versions := column(l.out.Executions, func(row *engine.Row) version { return version{row.Execution.JobUID, row.Execution.Revision} })
	for i := range l.out.Backfills {
		uid := l.out.Backfills[i].JobUID
		versions = append(versions, version{uid, l.out.Backfills[i].Revision}, version{uid, 0})
	}
	if len(versions) > 0 {
		all = append(all, l.known.question(versions, &l.found))
	}
	if len(l.out.Backfills) > 0 {
		all = append(all, placesOf(column(l.out.Backfills, func(b *engine.Backfill) [16]byte { return b.JobUID }), l.homes))
	}
	if slices.ContainsFunc(l.out.Executions, func(row engine.Row) bool { return len(row.Shards) == 0 }) {
		l.shards = newShardsOf(l.out.Executions)
		all = append(all, active(qActiveShards, l.partition, l.shards.add))
	}
	return all
}

// rest is what that leaves open: calendars, and of executions of which some shards are missing those that have ended.
func (l *loading) rest() (all []question) {
	if missing := l.known.calendars.Missing(l.found...); len(missing) > 0 {
		all = append(all, calendarsNamed(l.known.calendars, missing))
	}
	if l.shards != nil {
		if missing := l.shards.missing(); len(missing) > 0 {
			all = append(all, active(qActiveEnded, missing, l.shards.add))
		}
	}
	return all
}

func (l *loading) join() (err error) {
	l.known.calendars.Fill(l.found...)
	for i := range l.out.Executions {
		row := &l.out.Executions[i]
		store.SortShards(row.Shards)
		row.Definition = l.known.of[version{row.Execution.JobUID, row.Execution.Revision}]
		share(row)
	}
	for i := range l.out.Backfills {
		b := &l.out.Backfills[i]
		b.Definition = l.known.of[version{b.JobUID, b.Revision}]
		if b.Home, err = homeOf(nil, l.known, l.homes, b.JobUID, b.Revision, l.partition); err != nil { // everything is known
			return err
		}
	}
	return nil
}
