package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qSettledLive    = settledIn("shards", "executions")
	qSettledHistory = settledIn("history_shards", "history_executions")
)

// settledIn reads the shard that lies in the row, or else that of the table of shards, and its block.
func settledIn(shards, executions string) query {
	return statement(`SELECT e.shard, s.token, s.report_seq, s.closed, b.block FROM ` + executions + ` e LEFT JOIN ` + shards + ` s ON s.execution = e.id AND s.idx = ?2
		LEFT JOIN ` + shards + ` b ON b.execution = e.id AND b.idx = ?4
		WHERE e.id = ?1 AND e.partition = ?3 AND (s.idx IS NOT NULL OR b.idx IS NOT NULL OR e.shard_state IS NOT NULL AND ?2 = 0)`)
}

// ExecutionPage implements store.Engine.
func (s *Store) ExecutionPage(ctx context.Context, partition int, ids []job.ExecutionID) (engine.ExecutionPage, error) {
	out := engine.ExecutionPage{Asked: slices.Clone(ids)}
	page := store.Pageful[engine.Row]{Limit: len(ids)}
	err := s.read(ctx, "read executions", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		known := noDefinitions()
		for i, id := range ids {
			row, live, err := findRow(r, id)
			if err != nil {
				return err
			}
			if row != nil && row.Execution.Partition != partition {
				engine.PutElsewhere(&out, &row.Execution)
			}
			if row == nil || row.Execution.Partition != partition {
				continue
			}
			shards := qShardsHistory
			if live {
				shards = qShardsLive
			}
			switch err := known.fill(r, &page, *row, shards); {
			case errors.Is(err, store.ErrEnough):
				out.Asked = out.Asked[:i]
				return homes(r, page.Rows)
			case err != nil:
				return err
			}
		}
		return homes(r, page.Rows)
	})
	if err != nil {
		return engine.ExecutionPage{}, err
	}
	out.Rows = page.Rows
	return out, nil
}

// ShardPage implements store.Engine.
func (s *Store) ShardPage(ctx context.Context, partition int, refs []engine.ShardRef) (engine.ShardPage, error) {
	out := engine.ShardPage{Asked: slices.Clone(refs)}
	err := s.read(ctx, "read shards", func(r *link) error {
		var err error
		if out.Seq, _, err = seqOf(r, partition); err != nil {
			return err
		}
		for _, ref := range refs {
			row, err := readSettled(r, qSettledLive, ref, partition)
			if err == nil && row == nil {
				row, err = readSettled(r, qSettledHistory, ref, partition)
			}
			if err != nil {
				return err
			}
			if row != nil {
				out.Rows = append(out.Rows, *row)
			}
		}
		return nil
	})
	if err != nil {
		return engine.ShardPage{}, err
	}
	return out, nil
}

// readSettled is nil when the shard is not there.
func readSettled(r *link, q query, ref engine.ShardRef, partition int) (row *engine.Settled, err error) {
	err = r.each(q, []any{ref.Execution[:], int64(ref.Index), int64(partition), int64(store.BlockKey(store.InBlock(ref.Index)))}, func(rows *sql.Rows) error {
		var inRow sql.NullString
		var token, seq sql.NullInt64
		var closed sql.NullBool
		var block sql.RawBytes
		if err := rows.Scan(&inRow, &token, &seq, &closed, &block); err != nil {
			return err
		}
		if token.Valid {
			row = &engine.Settled{ShardRef: ref, Token: job.Token(token.Int64), ReportSeq: seq.Int64, Closed: closed.Bool}
			return nil
		}
		sh, is := store.PackedShard(ref.Execution, ref.Index, block)
		if block == nil {
			sh, is = store.ReadShardInRow(ref.Execution, "", []byte(inRow.String)), true
		}
		if is {
			row = &engine.Settled{ShardRef: ref, Token: sh.Token, ReportSeq: sh.ReportSeq, Closed: sh.Closed}
		}
		return nil
	})
	return row, err
}

// findRow looks into live rows, then into history; nil when it is in neither. Shards are those that lie in the row.
func findRow(r *link, id job.ExecutionID) (found *engine.Row, live bool, err error) {
	for _, q := range []query{qExecLive, qExecHistory} {
		err := r.each(q, []any{id[:]}, func(rows *sql.Rows) error {
			row, err := scanRow(rows)
			found = &row
			return err
		})
		if err != nil || found != nil {
			return found, q == qExecLive, err
		}
	}
	return nil, false, nil
}

// findExecution is findRow without the shard.
func findExecution(r *link, id job.ExecutionID) (found *job.Execution, err error) {
	row, _, err := findRow(r, id)
	if err != nil || row == nil {
		return nil, err
	}
	return &row.Execution, nil
}
