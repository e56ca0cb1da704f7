package sqlite

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// What an execution is (job, trigger …) is written once; what becomes of it changes, and the instant that it waits for.
// Leaving the first out of the update also leaves its indexes alone.
const changes = `partition = ?, revision = ?, pool = ?, handler = ?, params = ?, shard_total = ?, state = ?, reason = ?, cancel = ?, round = ?, started_at = ?, ended_at = ?, planned_at = ?`

var (
	qExecutionInsert = statement(`INSERT INTO executions (` + rowColumns + `) SELECT ` + rowMarks + `
		WHERE NOT EXISTS (SELECT 1 FROM history_executions WHERE id = ?) ON CONFLICT DO NOTHING`)
	qExecutionUpdate  = statement(`UPDATE executions SET ` + changes + ` WHERE id = ? AND +state = ?`)
	qExecutionDelete  = statement(`DELETE FROM executions WHERE id = ? AND +state = ?`)
	qExecutionExists  = statement(`SELECT 1 FROM executions WHERE id = ?`)
	qExecutionArchive = statement(`INSERT INTO history_executions (` + rowColumns + `) VALUES (` + rowMarks + `) ON CONFLICT DO NOTHING`)
	qExecutionRevive  = statement(`INSERT INTO executions (` + rowColumns + `) SELECT ` + rowColumns + ` FROM history_executions
		WHERE id = ? AND +state = ? ON CONFLICT DO NOTHING`)
	qExecutionForget = statement(`DELETE FROM history_executions WHERE id = ?`)

	qRowUpdate   = statement(`UPDATE executions SET ` + changes + `, shard_state = ?, shard = ? WHERE id = ? AND +state = ? AND +shard_state = ?`)
	qRowDelete   = statement(`DELETE FROM executions WHERE id = ? AND +state = ? AND +shard_state = ?`)
	qShardInRow  = statement(`SELECT shard_state, shard FROM executions WHERE id = ? AND shard_state IS NOT NULL`)
	qInRowUpdate = statement(`UPDATE executions SET shard_state = ?, shard = ? WHERE id = ? AND +shard_state = ?`)
	qLiesApart   = statement(`SELECT 1 FROM executions WHERE id = ?1 AND shard_state IS NULL
		UNION ALL SELECT 1 FROM history_executions WHERE id = ?1 AND shard_state IS NULL`)

	qShardInsert = statement(`INSERT INTO shards (` + shardColumns + `) SELECT ` + shardMarks + `
		WHERE NOT EXISTS (SELECT 1 FROM executions WHERE id = ? AND shard_state IS NOT NULL)
		AND NOT EXISTS (SELECT 1 FROM history_executions WHERE id = ? AND shard_state IS NOT NULL) ON CONFLICT DO NOTHING`)
	qShardUpdate = statement(`UPDATE shards SET state = ?, reason = ?, token = ?, session = ?, worker = ?, closed = ?, confirmed = ?,
		attempt = ?, faults = ?, losses = ?, leased_at = ?, started_at = ?, ended_at = ?, timeout_at = ?, retry_at = ?,
		stop_by = ?, report_seq = ?, checkpoint = ?, checkpoint_seq = ?, done = ?, total = ?, note = ?, result = ?,
		error = ?, attempts = ? WHERE execution = ? AND idx = ? AND +state = ?`)
	qShardDelete  = statement(`DELETE FROM shards WHERE execution = ? AND idx = ? AND +state = ?`)
	qShardArchive = statement(`INSERT INTO history_shards (` + shardColumns + `) VALUES (` + shardMarks + `)`)

	qShardsArchive = statement(`INSERT INTO history_shards (` + allShardColumns + `) SELECT ` + allShardColumns + ` FROM shards WHERE execution = ?`)
	qShardsDelete  = statement(`DELETE FROM shards WHERE execution = ?`)
	qShardsRevive  = statement(`INSERT INTO shards (` + allShardColumns + `) SELECT ` + allShardColumns + ` FROM history_shards WHERE execution = ?`)
	qShardsForget  = statement(`DELETE FROM history_shards WHERE execution = ?`)
)

// lay tells which shards lie in the rows of their executions: row by row it looks, else guards find out.
func (c *commit) lay() error {
	var apart map[job.ExecutionID]bool
	if c.singly {
		apart = map[job.ExecutionID]bool{}
		for _, id := range store.MayLieApart(c.batch) {
			var one int64
			found, err := c.one(qLiesApart, []any{id[:]}, &one)
			if err != nil {
				return err
			}
			apart[id] = found
		}
	}
	c.rows, c.apart, c.late = store.RowWrites(c.batch, apart)
	return nil
}

// guarded fails unless exactly one row was touched: at first with errSingly, see lay.
func (c *commit) guarded(n int64, err error, what string, id job.ExecutionID, from string) error {
	if err == nil && n != 1 && !c.singly {
		return errSingly
	}
	if err == nil && n != 1 && !c.skip.stateGuard {
		return job.Errorf(job.KindFenced, "state_guard", "%s %s is not in state %q", what, id, from).WithField(id.String())
	}
	return err
}

// row writes what becomes of the row of one execution.
func (c *commit) row(w *store.RowWrite) error {
	if w.ExecutionWrite == nil {
		return c.shardInRow(w.Shard)
	}
	e := &w.Row
	refused := func(n int64, err error) error { return c.guarded(n, err, "execution", e.ID, string(w.From)) }
	switch {
	case w.From.Ended():
		if err := c.revive(w); err != nil {
			return err
		}
	case w.From == "" && e.State.Ended():
		var one int64
		found, err := c.one(qExecutionExists, []any{e.ID[:]}, &one)
		if found {
			return refused(0, err)
		}
		if err != nil {
			return err
		}
	case w.From == "":
		n, err := c.exec(qExecutionInsert, append(c.rowArgs(c.args[:0], w), e.ID[:])...) // to look for it in history
		return refused(n, err)
	}
	if !e.State.Ended() {
		n, err := c.update(w)
		return refused(n, err)
	}
	kept := c.rowArgs(nil, w)
	if w.From != "" {
		if err := c.remove(w, kept); err != nil {
			return err
		}
	}
	n, err := c.exec(qExecutionArchive, kept...)
	return refused(n, err)
}

// revive brings an execution back from history, as it was.
func (c *commit) revive(w *store.RowWrite) error {
	id := w.Row.ID
	n, err := c.exec(qExecutionRevive, id[:], string(w.From))
	if err == nil && n == 1 {
		_, err = c.exec(qExecutionForget, id[:])
	}
	if err := c.guarded(n, err, "execution", id, string(w.From)); err != nil {
		return err
	}
	return c.both(id, qShardsRevive, qShardsForget)
}

// remove deletes the row of an execution that ends; a shard in it that is not written goes along into kept.
func (c *commit) remove(w *store.RowWrite, kept []any) error {
	q, guards := qExecutionDelete, []any{w.Row.ID[:], string(w.From)}
	if w.Shard != nil {
		q, guards = qRowDelete, append(guards, string(w.Shard.From))
	} else {
		var state, text string
		switch found, err := c.one(qShardInRow, guards[:1], &state, &text); {
		case err != nil:
			return err
		case found:
			kept[len(kept)-2], kept[len(kept)-1] = state, text
			delete(c.ended, w.Row.ID)
		}
	}
	n, err := c.exec(q, guards...)
	return c.guarded(n, err, "execution", w.Row.ID, string(w.From))
}

func (c *commit) update(w *store.RowWrite) (int64, error) {
	args := append(c.changeArgs(c.args[:0], w), w.Row.ID[:], string(w.From))
	if w.Shard == nil {
		return c.exec(qExecutionUpdate, args...)
	}
	return c.exec(qRowUpdate, append(args, string(w.Shard.From))...)
}

// changeArgs are the values of changes, and of the shard in the row if that is written.
func (c *commit) changeArgs(args []any, w *store.RowWrite) []any {
	e := &w.Row
	args = append(args, int64(e.Partition), e.Revision, e.Pool, e.Handler, text(e.Params), int64(e.ShardTotal), string(e.State),
		string(e.Reason), string(e.Cancel), int64(e.Round), int64(e.StartedAt), int64(e.EndedAt), int64(e.PlannedAt))
	if w.Shard == nil {
		return args
	}
	return c.inRowArgs(args, &w.Shard.Row)
}

// shardInRow writes a shard alone.
func (c *commit) shardInRow(w *engine.ShardWrite) error {
	n, err := c.exec(qInRowUpdate, append(c.inRowArgs(c.args[:0], &w.Row), w.Row.Execution[:], string(w.From))...)
	return c.guarded(n, err, "shard of execution", w.Row.Execution, string(w.From))
}

// shard writes one that lies apart. One that ends with its execution goes straight to history.
func (c *commit) shard(w *engine.ShardWrite) error {
	var err error
	if c.args, err = shardArgs(c.args[:0], &w.Row); err != nil {
		return err
	}
	var n int64
	gone := c.ended[w.Row.Execution]
	switch {
	case w.From == "":
		n, err = c.exec(qShardInsert, append(c.args, w.Row.Execution[:], w.Row.Execution[:])...)
	case gone != nil:
		n, err = c.exec(qShardDelete, w.Row.Execution[:], int64(w.Row.Index), string(w.From))
		if n == 1 && err == nil {
			gone.moved++
			_, err = c.exec(qShardArchive, c.args...)
		}
	default:
		key, values := c.args[:2:2], c.args[2:]
		n, err = c.exec(qShardUpdate, append(append(values, key...), string(w.From))...)
	}
	return c.guarded(n, err, "shard of execution", w.Row.Execution, string(w.From))
}

// moveEnded takes along the shards that had no write of their own.
func (c *commit) moveEnded() error {
	for _, id := range c.order {
		if gone := c.ended[id]; gone == nil || gone.moved == gone.total {
			continue
		}
		if err := c.both(id, qShardsArchive, qShardsDelete); err != nil {
			return err
		}
	}
	return nil
}

// both copies the shards of an execution to the other table and deletes them here.
func (c *commit) both(id job.ExecutionID, copyTo, remove query) error {
	if _, err := c.exec(copyTo, id[:]); err != nil {
		return err
	}
	_, err := c.exec(remove, id[:])
	return err
}

// rowArgs are the values of rowColumns.
func (c *commit) rowArgs(args []any, w *store.RowWrite) []any {
	args = executionArgs(args, &w.Row)
	if w.Shard == nil {
		return append(args, nil, nil)
	}
	return c.inRowArgs(args, &w.Shard.Row)
}

func (c *commit) inRowArgs(args []any, s *job.Shard) []any {
	c.text = job.AppendShard(c.text[:0], s)
	return append(args, string(s.State), string(c.text))
}
