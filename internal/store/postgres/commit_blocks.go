package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
)

// A block is a row of the table of shards that says nothing but its value: the first three arrays.
const blockArrays = ` SELECT u.execution, u.idx, 'block', '', 0, '', '', false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', NULL, NULL, NULL, u.block
		FROM unnest($1::uuid[], $2::integer[], $3::bytea[]) u (execution, idx, block)`

var (
	qBlocksLive  = blocksIn(`shards`)
	qBlocksEnded = blocksIn(`history_shards`)

	qBlockInsert = statement(`WITH done AS (INSERT INTO shards (` + allShardColumns + `)` + blockArrays + `
		ON CONFLICT DO NOTHING RETURNING execution, idx)` + guardShards)
	qBlockUpdate = statement(`WITH written AS (INSERT INTO shards AS s (` + allShardColumns + `)` + blockArrays + `
		ON CONFLICT (execution, idx) DO UPDATE SET block = excluded.block RETURNING execution, idx, xmax::text <> '0' AS was),
		done AS (SELECT execution, idx FROM written WHERE was)` + guardShards)
	qBlockDelete = statement(`WITH done AS (DELETE FROM shards WHERE ` +
		keyed(`unnest($1::uuid[], $2::integer[]) u (execution, idx)`, `shards`, `t.execution = u.execution AND t.idx = u.idx`) +
		` RETURNING execution, idx)` + guardShards)
	qBlockRefuse  = statement(`SELECT takt_guard(false, '` + guardShard + `', $1)`) // behind the fence, which comes first
	qBlockArchive = statement(`INSERT INTO history_shards (` + allShardColumns + `)` + blockArrays)
)

func blocksIn(table string) query {
	return statement(`SELECT u.n, s.block FROM unnest($1::uuid[], $2::integer[]) WITH ORDINALITY u (key, at, n)` +
		eachOf("s", `SELECT block FROM `+table+` WHERE execution = u.key AND idx = u.at AND block IS NOT NULL`))
}

// blockKey is the index of the row of the block that a shard may lie in.
func blockKey(index int) int32 { return int32(store.BlockKey(store.InBlock(index))) } //nolint:gosec // bounded by the API

// block is one that the commit writes.
type block struct {
	*store.BlockWrite
	store.Block
	found  bool
	stored []byte
}

type blockRows []*block

func (w blockRows) ids() [][16]byte {
	return column(w, func(w **block) [16]byte { return (*w).Execution })
}

func (w blockRows) keys() []int32 {
	return column(w, func(w **block) int32 { return int32((*w).Key()) }) //nolint:gosec // bounded by the API
}

func (w blockRows) values() [][]byte { return column(w, func(w **block) []byte { return (*w).stored }) }

// findBlocks reads the blocks that the commit changes, which go in one write with the rest. Only the owner writes them, and
// none of its commits is in flight: if another has come, the fence refuses this one.
func (c *commit) findBlocks(ctx context.Context) error {
	var asked blockRows
	for _, w := range store.BlockWrites(c.batch, append(c.apart, c.late...)) {
		b := &block{BlockWrite: w, found: w.Fresh}
		if c.blocked = append(c.blocked, b); !w.New {
			asked = append(asked, b)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	take := func(rows pgx.Rows) error {
		var n int
		var stored []byte
		err := rows.Scan(&n, &stored)
		if err == nil && !asked[n-1].found {
			asked[n-1].found = true
			asked[n-1].Block, err = store.ReadBlock(stored)
		}
		return err
	}
	questions := []question{{qBlocksLive, []any{asked.ids(), asked.keys()}, take}}
	if c.revives() { // what is run again comes back from history
		questions = append(questions, question{qBlocksEnded, questions[0].args, take})
	}
	return c.store.askOf(ctx, c.store.commits, "read blocks of shards", questions...)
}

// revives tells that the commit brings an execution back from history.
func (c *commit) revives() bool {
	for i := range c.batch.Executions {
		if c.batch.Executions[i].From.Ended() {
			return true
		}
	}
	return false
}

// blocks writes the shards that lie in blocks, and leaves in apart and late those that have rows of their own. A block that
// ends with its execution goes straight to history.
func (c *commit) blocks() error {
	c.apart, c.late = nil, nil
	var begin, changed, end blockRows
	for _, b := range c.blocked {
		if !b.found {
			c.own(b.Apart(), b.New)
			continue
		}
		own, refused := b.Apply(&b.Block, false)
		if refused != nil {
			c.add(qBlockRefuse, refused.Row.Execution.UUID())
			continue
		}
		c.own(own, b.New)
		b.stored = b.Append(nil)
		switch gone := c.ended[b.Execution]; {
		case b.Fresh:
			begin = append(begin, b)
		case gone != nil:
			gone.moved += b.Held()
			end = append(end, b)
		default:
			changed = append(changed, b)
		}
	}
	if len(begin) > 0 {
		c.add(qBlockInsert, begin.ids(), begin.keys(), begin.values())
	}
	if len(changed) > 0 {
		c.add(qBlockUpdate, changed.ids(), changed.keys(), changed.values())
	}
	if len(end) > 0 {
		c.add(qBlockDelete, end.ids(), end.keys())
		c.add(qBlockArchive, end.ids(), end.keys(), end.values())
	}
	c.dead += int64(len(end) + len(changed))
	return nil
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
