package postgres

import (
	"slices"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

type rowWrites []store.RowWrite

func (w rowWrites) texts(f func(*job.Execution) string) []string {
	return column(w, func(w *store.RowWrite) string { return f(&w.Row) })
}

func (w rowWrites) longs(f func(*job.Execution) int64) []int64 {
	return column(w, func(w *store.RowWrite) int64 { return f(&w.Row) })
}

func (w rowWrites) ints(f func(*job.Execution) int) []int32 {
	return column(w, func(w *store.RowWrite) int32 { return int32(f(&w.Row)) }) //nolint:gosec // counts of rows of ours
}

func (w rowWrites) ids() [][16]byte {
	return column(w, func(w *store.RowWrite) [16]byte { return w.ID() })
}

func (w rowWrites) params() []*string {
	return column(w, func(w *store.RowWrite) *string { return text(w.Row.Params) })
}

func (w rowWrites) was() []string {
	return column(w, func(w *store.RowWrite) string { return string(w.From) })
}

func (w rowWrites) shardWas() []string {
	return column(w, func(w *store.RowWrite) string { return string(w.ShardFrom()) })
}

// shards are the values of the columns of the shard in the row; NULL where that is not written.
func (w rowWrites) shards() (states, shards []*string) {
	states, shards = make([]*string, len(w)), make([]*string, len(w))
	var buf []byte
	for i := range w {
		if s := w[i].Shard; s != nil {
			buf = job.AppendShard(buf[:0], &s.Row)
			state, text := string(s.Row.State), string(buf)
			states[i], shards[i] = &state, &text
		}
	}
	return states, shards
}

// arrays are the values of rowColumns.
func (w rowWrites) arrays() []any {
	states, shards := w.shards()
	return []any{
		w.ids(), w.ints(func(e *job.Execution) int { return e.Partition }),
		w.texts(func(e *job.Execution) string { return e.Namespace }), w.texts(func(e *job.Execution) string { return e.Job }),
		column(w, func(w *store.RowWrite) [16]byte { return w.Row.JobUID }), w.longs(func(e *job.Execution) int64 { return e.Revision }),
		w.texts(func(e *job.Execution) string { return e.Pool }), w.texts(func(e *job.Execution) string { return e.Handler }),
		w.texts(func(e *job.Execution) string { return string(e.Trigger) }), w.longs(func(e *job.Execution) int64 { return int64(e.PlannedAt) }),
		w.texts(func(e *job.Execution) string { return e.RequestKey }), w.params(), w.ints(func(e *job.Execution) int { return e.ShardTotal }),
		w.texts(func(e *job.Execution) string { return string(e.State) }), w.texts(func(e *job.Execution) string { return string(e.Reason) }),
		w.texts(func(e *job.Execution) string { return string(e.Cancel) }), w.ints(func(e *job.Execution) int { return e.Round }),
		w.longs(func(e *job.Execution) int64 { return int64(e.CreatedAt) }), w.longs(func(e *job.Execution) int64 { return int64(e.StartedAt) }),
		w.longs(func(e *job.Execution) int64 { return int64(e.EndedAt) }), states, shards,
	}
}

// put writes rows: those that have much in common by a statement for each group, the rest by the other, or by its form for a few.
func (c *commit) put(common, other query, rows rowWrites, guards ...any) {
	groups, rest := store.GroupCommon(rows, store.Worthwhile)
	for i := range groups {
		c.add(common, append(commonArgs(&groups[i]), guards...)...)
	}
	if few, is := fewOf[other]; is && len(rest) < store.Worthwhile {
		other = few
	}
	if len(rest) > 0 {
		c.add(other, append(rowWrites(rest).arrays(), guards...)...)
	}
}

// commonArgs are the arguments of commonArrays.
func commonArgs(g *store.CommonRows) []any {
	return append(rowWrites(g.Rows).differing(), g.Partition, g.Namespace, g.Job, [16]byte(g.JobUID), g.Revision, g.Pool, g.Handler, string(g.Trigger),
		g.ShardTotal, string(g.State), string(g.Reason), string(g.Cancel), g.Round, string(g.ShardState))
}

// differing are the arrays of commonArrays.
func (w rowWrites) differing() []any {
	_, shards := w.shards()
	return []any{
		w.ids(), w.longs(func(e *job.Execution) int64 { return int64(e.PlannedAt) }), w.texts(func(e *job.Execution) string { return e.RequestKey }), w.params(),
		w.longs(func(e *job.Execution) int64 { return int64(e.CreatedAt) }), w.longs(func(e *job.Execution) int64 { return int64(e.StartedAt) }),
		w.longs(func(e *job.Execution) int64 { return int64(e.EndedAt) }), shards,
	}
}

// rowKinds are writes of rows by what they do.
type rowKinds struct {
	revived, absent, over, changed, fresh rowWrites
	inRow                                 rowWrites // the shard alone
	kept, carried                         rowWrites // to history: as written; with the shard that the row has
}

// kinds sorts the writes of rows: each batch has at most one of an execution, so that their order is free.
func (c *commit) kinds() (k rowKinds) {
	for i := range c.rows {
		w := c.rows[i]
		fromLot := c.leaves(&w)
		if w.ExecutionWrite == nil {
			if !fromLot {
				k.inRow = append(k.inRow, w)
			}
			continue
		}
		ended := w.Row.State.Ended()
		if w.From.Ended() {
			k.revived = append(k.revived, w)
		}
		switch {
		case w.From == "" && ended:
			k.absent = append(k.absent, w)
		case w.From == "":
			k.fresh = append(k.fresh, w)
			continue
		case fromLot:
		case ended:
			k.over = append(k.over, w)
		default:
			k.changed = append(k.changed, w)
			continue
		}
		c.order = append(c.order, w.Row.ID)
		if w.Shard == nil {
			c.ended[w.Row.ID] = &ending{total: max(w.Row.ShardTotal, 1)}
		}
		if w.Shard == nil && w.From != "" && w.Row.ShardTotal <= 1 {
			k.carried = append(k.carried, w)
		} else {
			k.kept = append(k.kept, w)
		}
	}
	return k
}

// executions writes rows by kind.
func (c *commit) executions() error {
	c.ended = map[job.ExecutionID]*ending{}
	k := c.kinds()
	for _, w := range slices.Concat(c.apart, c.late) {
		if p, lies := c.held.at[w.Row.Execution]; lies {
			c.leave(p, false, nil)
		}
	}
	c.notElsewhere(slices.Concat(k.fresh, k.absent))
	lots := c.intoLots(&k)
	c.fromLots()
	for i := range k.revived { // one by one: an id leads to one month, an array would lead to all
		id := [16]byte(k.revived[i].Row.ID)
		c.add(qExecutionRevive, id, string(k.revived[i].From))
		c.add(qShardsRevive, id)
		c.add(qShardsForget, id)
	}
	if len(k.absent) > 0 {
		c.add(qExecutionAbsent, k.absent.ids())
	}
	if len(k.carried) > 0 {
		c.add(qRowArchive, k.carried.arrays()...)
	}
	if len(k.over) > 0 {
		c.add(qExecutionDelete, k.over.ids(), k.over.was(), k.over.shardWas())
	}
	type from struct {
		state job.ExecutionState
		shard job.ShardState
	}
	for from, group := range groups(k.changed, func(w *store.RowWrite) from { return from{w.From, w.ShardFrom()} }) {
		c.put(qCommonUpdate, qExecutionUpdate, group, string(from.state), string(from.shard))
	}
	for from, group := range groups(k.inRow, (*store.RowWrite).ShardFrom) {
		states, shards := rowWrites(group).shards()
		c.add(qShardInRow, rowWrites(group).ids(), states, shards, string(from))
	}
	c.put(qCommonInsert, qExecutionInsert, k.fresh)
	c.put(qCommonArchive, qExecutionArchive, k.kept.inOrder())
	c.changeLots(lots)
	c.dead += int64(len(k.over) + len(k.changed) + len(k.inRow))
	return nil
}
