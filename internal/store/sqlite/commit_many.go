package sqlite

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Rows of one kind are written several by a statement: much of what a row costs is the statement around it. (The + before
// a state keeps partial indexes out of the plan: with one in view, SQLite plans anew for each value that is bound.)

// many is one statement in the sizes of manySizes.
type many [len(manySizes)]query

var manySizes = [...]int{64, 16, 4, 1} // rows

// fit is the index of the largest size that n rows fill, n ≥ 1.
func fit(n int) int {
	size := 0
	for manySizes[size] > n {
		size++
	}
	return size
}

// statements registers the text for each size; rows is the values of that many rows, such as (?, ?), (?, ?).
func statements(marks string, text func(rows string) string) (m many) {
	row := "(" + marks + ")"
	for i, n := range manySizes {
		m[i] = statement(text(strings.Repeat(row+", ", n-1) + row))
	}
	return m
}

// The values of rowColumns: those that differ by place, the others once for all rows.
const (
	differMarks = `?, ?, ?, ?, ?, ?, ?, ?`
	alikeValues = `new.column1, ?, ?, ?, ?, ?, ?, ?, ?, new.column2, new.column3, new.column4, ?, ?, ?, ?, ?, new.column5, new.column6, new.column7, ?, new.column8`
)

var (
	qExecutionsInsert = statements(rowMarks, func(rows string) string {
		return `INSERT INTO executions (` + rowColumns + `) SELECT * FROM (VALUES ` + rows + `) AS new
			WHERE NOT EXISTS (SELECT 1 FROM history_executions WHERE id = new.column1) ON CONFLICT DO NOTHING`
	})
	qAlikeInsert = statements(differMarks, func(rows string) string {
		return `INSERT INTO executions (` + rowColumns + `) SELECT ` + alikeValues + ` FROM (VALUES ` + rows + `) AS new
			WHERE NOT EXISTS (SELECT 1 FROM history_executions WHERE id = new.column1) ON CONFLICT DO NOTHING`
	})
	qAlikeArchive = statements(differMarks, func(rows string) string {
		return `INSERT INTO history_executions (` + rowColumns + `) SELECT ` + alikeValues + ` FROM (VALUES ` + rows + `) AS new WHERE true ON CONFLICT DO NOTHING`
	})
	qExecutionsDelete = statements(`?`, func(rows string) string {
		return `DELETE FROM executions WHERE id IN (` + rows + `) AND +state = ?`
	})
	qRowsDelete = statements(`?`, func(rows string) string {
		return `DELETE FROM executions WHERE id IN (` + rows + `) AND +state = ? AND +shard_state = ?`
	})
	qExecutionsArchive = statements(rowMarks, func(rows string) string {
		return `INSERT INTO history_executions (` + rowColumns + `) VALUES ` + rows + ` ON CONFLICT DO NOTHING`
	})
	qShardsInsert = statements(shardMarks, func(rows string) string {
		return `INSERT INTO shards (` + shardColumns + `) VALUES ` + rows + ` ON CONFLICT DO NOTHING`
	})
	qShardsEnd = statements(`?, ?`, func(rows string) string {
		return `DELETE FROM shards WHERE (execution, idx) IN (VALUES ` + rows + `) AND +state = ?`
	})
	qShardsKeep = statements(shardMarks, func(rows string) string {
		return `INSERT INTO history_shards (` + shardColumns + `) VALUES ` + rows
	})
	qConsumeMany = statements(`?`, func(rows string) string {
		return `DELETE FROM inbox WHERE id IN (` + rows + `) AND partition = ? AND items IS NULL`
	})
)

// errSingly says that a row of several is refused: one by one it will tell which, or turn out to lie otherwise.
var errSingly = errors.New("a row of several is refused")

// all runs a statement over n rows. It fails with errSingly unless every one was touched.
func (c *commit) all(m *many, n int, row func(args []any, i int) ([]any, error), last ...any) error {
	return c.around(m, n, nil, row, last)
}

// around is all with arguments before those of the rows and behind them.
func (c *commit) around(m *many, n int, first []any, row func(args []any, i int) ([]any, error), last []any) error {
	touched := int64(0)
	for from := 0; from < n; {
		size := fit(n - from)
		c.args = append(c.args[:0], first...)
		for i := from; i < from+manySizes[size]; i++ {
			var err error
			if c.args, err = row(c.args, i); err != nil {
				return err
			}
		}
		got, err := c.exec(m[size], append(c.args, last...)...)
		if err != nil {
			return err
		}
		touched += got
		from += manySizes[size]
	}
	if touched != int64(n) && !c.skip.stateGuard {
		return errSingly
	}
	return nil
}

// left are the states that a row which ends leaves: of the execution, and of the shard in it.
type left struct {
	state job.ExecutionState
	shard job.ShardState
}

// executions writes those that begin and those that end several at a time, the others one by one.
func (c *commit) executions() error {
	if err := c.lay(); err != nil {
		return err
	}
	var begin []store.RowWrite
	end := map[left][]store.RowWrite{}
	for i := range c.rows {
		w := &c.rows[i]
		over := w.ExecutionWrite != nil && w.Row.State.Ended()
		if over && w.Shard == nil {
			c.ended[w.Row.ID] = &ending{total: max(w.Row.ShardTotal, 1)}
			c.order = append(c.order, w.Row.ID)
		}
		switch {
		case c.singly || w.ExecutionWrite == nil || w.From.Ended() || over == (w.From == ""),
			over && w.Shard == nil && w.Row.ShardTotal <= 1: // takes its shard along
			if err := c.row(w); err != nil {
				return err
			}
		case over:
			from := left{w.From, w.ShardFrom()}
			end[from] = append(end[from], *w)
		default:
			begin = append(begin, *w)
		}
	}
	if err := c.put(&qAlikeInsert, &qExecutionsInsert, begin); err != nil {
		return err
	}
	for _, from := range slices.SortedFunc(maps.Keys(end), func(a, b left) int { return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.shard, b.shard)) }) {
		if err := c.endRows(from, end[from]); err != nil {
			return err
		}
	}
	return nil
}

// put inserts rows, those that are alike by one statement and the rest by the other.
func (c *commit) put(alike, other *many, rows []store.RowWrite) error {
	groups, rest := store.GroupCommon(rows, store.Worthwhile)
	for i := range groups {
		g := &groups[i]
		first := []any{int64(g.Partition), g.Namespace, g.Job, g.JobUID[:], g.Revision, g.Pool, g.Handler, string(g.Trigger),
			int64(g.ShardTotal), string(g.State), string(g.Reason), string(g.Cancel), int64(g.Round), string(g.ShardState)}
		if err := c.around(alike, len(g.Rows), first, func(args []any, i int) ([]any, error) { return c.differArgs(args, &g.Rows[i]), nil }, nil); err != nil {
			return err
		}
	}
	return c.all(other, len(rest), func(args []any, i int) ([]any, error) { return c.rowArgs(args, &rest[i]), nil })
}

// differArgs are the values that alikeValues takes from each row.
func (c *commit) differArgs(args []any, w *store.RowWrite) []any {
	e := &w.Row
	c.text = job.AppendShard(c.text[:0], &w.Shard.Row)
	return append(args, e.ID[:], int64(e.PlannedAt), e.RequestKey, text(e.Params), int64(e.CreatedAt), int64(e.StartedAt), int64(e.EndedAt), string(c.text))
}

func (c *commit) endRows(from left, rows []store.RowWrite) error {
	remove, guards := &qExecutionsDelete, []any{string(from.state)}
	if from.shard != "" {
		remove, guards = &qRowsDelete, append(guards, string(from.shard))
	}
	if err := c.all(remove, len(rows), func(args []any, i int) ([]any, error) { return append(args, rows[i].Row.ID[:]), nil }, guards...); err != nil {
		return err
	}
	return c.put(&qAlikeArchive, &qExecutionsArchive, rows)
}

// shards does the same with those that lie apart; those that end with their execution go straight to history.
func (c *commit) shards() error {
	if err := c.blocks(); err != nil {
		return err
	}
	var begin []*job.Shard
	end := map[job.ShardState][]*job.Shard{}
	for _, w := range c.apart {
		switch gone := c.ended[w.Row.Execution]; {
		case !c.singly && w.From == "":
			begin = append(begin, &w.Row)
		case !c.singly && gone != nil:
			gone.moved++
			end[w.From] = append(end[w.From], &w.Row)
		default:
			if err := c.shard(w); err != nil {
				return err
			}
		}
	}
	for _, w := range c.late {
		if err := c.shard(w); err != nil {
			return err
		}
	}
	if err := c.all(&qShardsInsert, len(begin), func(args []any, i int) ([]any, error) { return shardArgs(args, begin[i]) }); err != nil {
		return err
	}
	for _, from := range slices.Sorted(maps.Keys(end)) {
		rows := end[from]
		if err := c.all(&qShardsEnd, len(rows), func(args []any, i int) ([]any, error) {
			return append(args, rows[i].Execution[:], int64(rows[i].Index)), nil
		}, string(from)); err != nil {
			return err
		}
		if err := c.all(&qShardsKeep, len(rows), func(args []any, i int) ([]any, error) { return shardArgs(args, rows[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// consumeMany deletes the entries that were taken in.
func (c *commit) consumeMany(ids []int64) error {
	return c.all(&qConsumeMany, len(ids), func(args []any, i int) ([]any, error) { return append(args, ids[i]), nil },
		int64(c.fence.Partition))
}
