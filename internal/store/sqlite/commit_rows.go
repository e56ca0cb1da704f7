package sqlite

import (
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// What an execution is (job, planned instant, trigger …) is written once; what becomes of it changes.
// Leaving the first out of the update also leaves its indexes alone.
var (
	qExecutionInsert = statement(`INSERT INTO executions (` + executionColumns + `) SELECT ` + executionMarks + `
		WHERE NOT EXISTS (SELECT 1 FROM history_executions WHERE id = ?) ON CONFLICT DO NOTHING`)
	qExecutionUpdate = statement(`UPDATE executions SET revision = ?, pool = ?, handler = ?, params = ?, shard_total = ?, state = ?,
		reason = ?, cancel = ?, round = ?, started_at = ?, ended_at = ? WHERE id = ? AND state = ?`)
	qExecutionDelete  = statement(`DELETE FROM executions WHERE id = ? AND state = ?`)
	qExecutionExists  = statement(`SELECT 1 FROM executions WHERE id = ?`)
	qExecutionArchive = statement(`INSERT INTO history_executions (` + executionColumns + `) VALUES (` + executionMarks + `) ON CONFLICT DO NOTHING`)
	qExecutionRevive  = statement(`DELETE FROM history_executions WHERE id = ? AND state = ?`)

	qShardInsert = statement(`INSERT INTO shards (` + shardColumns + `) VALUES (` + shardMarks + `) ON CONFLICT DO NOTHING`)
	qShardUpdate = statement(`UPDATE shards SET state = ?, reason = ?, token = ?, session = ?, worker = ?, closed = ?, confirmed = ?,
		attempt = ?, faults = ?, losses = ?, leased_at = ?, started_at = ?, ended_at = ?, timeout_at = ?, retry_at = ?,
		stop_by = ?, report_seq = ?, checkpoint = ?, checkpoint_seq = ?, done = ?, total = ?, note = ?, result = ?,
		error = ?, attempts = ? WHERE execution = ? AND idx = ? AND state = ?`)
	qShardDelete  = statement(`DELETE FROM shards WHERE execution = ? AND idx = ? AND state = ?`)
	qShardArchive = statement(`INSERT INTO history_shards (` + shardColumns + `) VALUES (` + shardMarks + `)`)

	qShardsArchive = statement(`INSERT INTO history_shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM shards WHERE execution = ?`)
	qShardsDelete  = statement(`DELETE FROM shards WHERE execution = ?`)
	qShardsRevive  = statement(`INSERT INTO shards (` + shardColumns + `) SELECT ` + shardColumns + ` FROM history_shards WHERE execution = ?`)
	qShardsForget  = statement(`DELETE FROM history_shards WHERE execution = ?`)
)

// guarded fails unless exactly one row was touched.
func (c *commit) guarded(n int64, err error, what string, from string) error {
	if err == nil && n != 1 && !c.skip.stateGuard {
		return job.Errorf(job.KindFenced, "state_guard", "%s is not in state %q", what, from).
			WithField(what[strings.LastIndexByte(what, ' ')+1:]) // the id of the execution
	}
	return err
}

func (c *commit) execution(w *engine.ExecutionWrite) error {
	e, what := &w.Row, "execution "+w.Row.ID.String()
	switch {
	case w.From.Ended():
		n, err := c.exec(qExecutionRevive, e.ID[:], string(w.From))
		if err := c.guarded(n, err, what, string(w.From)); err != nil {
			return err
		}
		if err := c.both(e.ID, qShardsRevive, qShardsForget); err != nil {
			return err
		}
	case w.From == "" && e.State.Ended():
		var one int64
		found, err := c.one(qExecutionExists, []any{e.ID[:]}, &one)
		if found {
			one = 0
		} else {
			one = 1
		}
		if err := c.guarded(one, err, what, ""); err != nil {
			return err
		}
	case w.From == "":
	case e.State.Ended():
		n, err := c.exec(qExecutionDelete, e.ID[:], string(w.From))
		if err := c.guarded(n, err, what, string(w.From)); err != nil {
			return err
		}
	default:
		n, err := c.exec(qExecutionUpdate, e.Revision, e.Pool, e.Handler, text(e.Params), int64(e.ShardTotal), string(e.State),
			string(e.Reason), string(e.Cancel), int64(e.Round), int64(e.StartedAt), int64(e.EndedAt), e.ID[:], string(w.From))
		return c.guarded(n, err, what, string(w.From))
	}
	c.args = executionArgs(c.args[:0], e)
	into := qExecutionArchive
	if !e.State.Ended() {
		into = qExecutionInsert
		c.args = append(c.args, e.ID[:]) // to look for it in history
	}
	n, err := c.exec(into, c.args...)
	return c.guarded(n, err, what, string(w.From))
}

// shard writes one. A shard that ends with its execution goes straight to history.
func (c *commit) shard(w *engine.ShardWrite) error {
	var err error
	if c.args, err = shardArgs(c.args[:0], &w.Row); err != nil {
		return err
	}
	var n int64
	gone := c.ended[w.Row.Execution]
	switch {
	case w.From == "":
		n, err = c.exec(qShardInsert, c.args...)
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
	if err == nil && n == 1 { // the usual case, without the text
		return nil
	}
	return c.guarded(n, err, "shard of "+w.Row.Execution.String(), string(w.From))
}

// moveEnded takes along the shards that had no write of their own.
func (c *commit) moveEnded() error {
	for _, id := range c.order {
		if gone := c.ended[id]; gone.moved == gone.total {
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
