package sqlite

import (
	"database/sql"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
)

// A block is a row of the table of shards that says nothing but its value.
const blockMarks = `?, ?, 'block', '', 0, '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', NULL, NULL, NULL, ?`

var (
	qBlock       = statement(`SELECT block FROM shards WHERE execution = ? AND idx = ? AND block IS NOT NULL`)
	qBlockUpdate = statement(`UPDATE shards SET block = ? WHERE execution = ? AND idx = ?`)
	qBlockDelete = statement(`DELETE FROM shards WHERE execution = ? AND idx = ?`)

	qBlocksInsert = statements(blockMarks, func(rows string) string {
		return `INSERT INTO shards (` + allShardColumns + `) VALUES ` + rows + ` ON CONFLICT DO NOTHING`
	})
	qBlocksKeep = statements(blockMarks, func(rows string) string {
		return `INSERT INTO history_shards (` + allShardColumns + `) VALUES ` + rows
	})
)

// blockRow is a row to be made.
type blockRow struct {
	*store.BlockWrite
	stored []byte
}

func blockArgs(args []any, row *blockRow) []any {
	return append(args, row.Execution[:], int64(row.Key()), row.stored)
}

// blocks writes the shards that lie in blocks, and leaves in apart and late those that have rows of their own. A block that
// ends with its execution goes straight to history.
func (c *commit) blocks() error {
	all := store.BlockWrites(c.batch, append(c.apart, c.late...))
	c.apart, c.late = nil, nil
	var begin, end []blockRow
	for _, w := range all {
		block, found, err := c.block(w)
		if err != nil {
			return err
		}
		if !found {
			c.own(w.Apart(), w.New)
			continue
		}
		own, refused := w.Apply(&block, c.skip.stateGuard)
		if refused != nil {
			return c.guarded(0, nil, "shard of execution", w.Execution, string(refused.From))
		}
		c.own(own, w.New)
		row := blockRow{w, block.Append(nil)}
		switch gone := c.ended[w.Execution]; {
		case w.Fresh:
			begin = append(begin, row)
		case gone != nil:
			gone.moved += block.Held()
			end = append(end, row)
			if _, err := c.exec(qBlockDelete, w.Execution[:], int64(w.Key())); err != nil {
				return err
			}
		default:
			if _, err := c.exec(qBlockUpdate, row.stored, w.Execution[:], int64(w.Key())); err != nil {
				return err
			}
		}
	}
	if err := c.all(&qBlocksInsert, len(begin), func(args []any, i int) ([]any, error) { return blockArgs(args, &begin[i]), nil }); err != nil {
		return err
	}
	return c.all(&qBlocksKeep, len(end), func(args []any, i int) ([]any, error) { return blockArgs(args, &end[i]), nil })
}

// block is the block that is written; false when its shards have rows of their own.
func (c *commit) block(w *store.BlockWrite) (block store.Block, found bool, err error) {
	if w.Fresh {
		return block, true, nil
	}
	err = c.each(qBlock, []any{w.Execution[:], int64(w.Key())}, func(rows *sql.Rows) error {
		var stored []byte
		if err := rows.Scan(&stored); err != nil {
			return err
		}
		found = true
		block, err = store.ReadBlock(stored)
		return err
	})
	return block, found, err
}

// own keeps writes of rows of their own. New ones of executions that are there are late.
func (c *commit) own(all []*engine.ShardWrite, fresh bool) {
	for _, w := range all {
		if w.From == "" && !fresh {
			c.late = append(c.late, w)
		} else {
			c.apart = append(c.apart, w)
		}
	}
}
