package postgres

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

type shardWrites []*engine.ShardWrite

func (w shardWrites) ids() [][16]byte {
	return column(w, func(w **engine.ShardWrite) [16]byte { return (*w).Row.Execution })
}

func (w shardWrites) indexes() []int32 { return w.ints(func(s *job.Shard) int { return s.Index }) }

func (w shardWrites) was() []string {
	return column(w, func(w **engine.ShardWrite) string { return string((*w).From) })
}

func (w shardWrites) texts(f func(*job.Shard) string) []string {
	return column(w, func(w **engine.ShardWrite) string { return f(&(*w).Row) })
}

func (w shardWrites) longs(f func(*job.Shard) int64) []int64 {
	return column(w, func(w **engine.ShardWrite) int64 { return f(&(*w).Row) })
}

func (w shardWrites) ints(f func(*job.Shard) int) []int32 {
	return column(w, func(w **engine.ShardWrite) int32 { return int32(f(&(*w).Row)) }) //nolint:gosec // counts of rows of ours
}

func (w shardWrites) flags(f func(*job.Shard) bool) []bool {
	return column(w, func(w **engine.ShardWrite) bool { return f(&(*w).Row) })
}

func (w shardWrites) json(f func(*job.Shard) []byte) []*string {
	return column(w, func(w **engine.ShardWrite) *string { return text(f(&(*w).Row)) })
}

// arrays are the values of shardColumns.
func (w shardWrites) arrays() ([]any, error) {
	failures, attempts := make([]*string, len(w)), make([]*string, len(w))
	for i := range w {
		var err error
		if failures[i], err = encodeSome(w[i].Row.Error != nil, w[i].Row.Error); err != nil {
			return nil, err
		}
		if all := w[i].Row.Attempts; len(all) > 0 {
			text := string(job.AppendAttempts(nil, all))
			attempts[i] = &text
		}
	}
	return []any{
		w.ids(), w.indexes(), w.texts(func(s *job.Shard) string { return string(s.State) }), w.texts(func(s *job.Shard) string { return string(s.Reason) }),
		w.longs(func(s *job.Shard) int64 { return int64(s.Token) }), w.texts(func(s *job.Shard) string { return string(s.Session) }),
		w.texts(func(s *job.Shard) string { return s.Worker }), w.flags(func(s *job.Shard) bool { return s.Closed }),
		w.flags(func(s *job.Shard) bool { return s.Confirmed }), w.ints(func(s *job.Shard) int { return s.Attempt }),
		w.ints(func(s *job.Shard) int { return s.Faults }), w.ints(func(s *job.Shard) int { return s.Losses }),
		w.longs(func(s *job.Shard) int64 { return int64(s.LeasedAt) }), w.longs(func(s *job.Shard) int64 { return int64(s.StartedAt) }),
		w.longs(func(s *job.Shard) int64 { return int64(s.EndedAt) }), w.longs(func(s *job.Shard) int64 { return int64(s.TimeoutAt) }),
		w.longs(func(s *job.Shard) int64 { return int64(s.RetryAt) }), w.longs(func(s *job.Shard) int64 { return int64(s.StopBy) }),
		w.longs(func(s *job.Shard) int64 { return s.ReportSeq }), w.json(func(s *job.Shard) []byte { return s.Checkpoint }),
		w.longs(func(s *job.Shard) int64 { return s.CheckpointSeq }), w.longs(func(s *job.Shard) int64 { return s.Progress.Done }),
		w.longs(func(s *job.Shard) int64 { return s.Progress.Total }), w.texts(func(s *job.Shard) string { return s.Progress.Note }),
		w.json(func(s *job.Shard) []byte { return s.Result }), failures, attempts,
	}, nil
}

// shards writes them by kind. A shard that ends with its execution goes straight to history.
func (c *commit) shards() error {
	if err := c.blocks(); err != nil {
		return err
	}
	var fresh, ending, changed shardWrites
	for _, w := range c.apart {
		gone := c.ended[w.Row.Execution]
		switch {
		case w.From == "":
			fresh = append(fresh, w)
		case gone != nil:
			gone.moved++
			ending = append(ending, w)
		default:
			changed = append(changed, w)
		}
	}
	if len(fresh) > 0 {
		args, err := fresh.arrays()
		if err != nil {
			return err
		}
		c.add(qShardInsert, args...)
	}
	if len(c.late) > 0 {
		args, err := shardWrites(c.late).arrays()
		if err != nil {
			return err
		}
		c.add(qShardLate, args...)
	}
	if len(ending) > 0 {
		args, err := ending.arrays()
		if err != nil {
			return err
		}
		c.add(qShardDelete, ending.ids(), ending.indexes(), ending.was())
		c.add(qShardArchive, args...)
	}
	for from, group := range groups(changed, func(w **engine.ShardWrite) job.ShardState { return (*w).From }) {
		args, err := shardWrites(group).arrays()
		if err != nil {
			return err
		}
		c.add(qShardUpdate, append(args, string(from))...)
	}
	c.dead += int64(len(ending) + len(changed))
	return nil
}

// moveEnded takes along the shards that had no write of their own.
func (c *commit) moveEnded() error {
	var rest [][16]byte
	for _, id := range c.order {
		if gone := c.ended[id]; gone != nil && gone.moved != gone.total {
			rest = append(rest, id)
		}
	}
	if len(rest) > 0 {
		c.add(qShardsArchive, rest)
		c.add(qShardsDelete, rest)
	}
	return nil
}
