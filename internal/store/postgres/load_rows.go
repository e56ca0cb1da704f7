package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Pages read by keys are read in sets, for each query is a round trip; SQLite reads one row at a time. An id leads to one
// month: the join over unnest looks into that one alone, id = ANY would look into all.
var (
	qShardsLive    = statement(`SELECT s.* FROM unnest($1::uuid[]) u (id)` + eachOf("s", `SELECT `+allShardColumns+` FROM shards WHERE execution = u.id`) + ` ORDER BY s.execution, s.idx`)
	qShardsHistory = statement(`SELECT s.* FROM unnest($1::uuid[]) u (id)` + eachOf("s", `SELECT `+allShardColumns+` FROM history_shards WHERE execution = u.id`) + ` ORDER BY s.execution, s.idx`)
	qExecLive      = statement(`SELECT e.* FROM unnest($1::uuid[]) u (key)` + eachOf("e", `SELECT `+rowColumns+` FROM executions WHERE id = u.key UNION ALL `+memberBy(rowColumns, `u.key`)))
	qExecHistory   = statement(`SELECT e.* FROM unnest($1::uuid[]) u (key)` + eachOf("e", `SELECT `+rowColumns+` FROM history_executions WHERE id = u.key`))
	qSettledLive   = settled(`shards`, `executions`, ` UNION ALL `+memberBy(`partition, shard_state, shard`, `u.key`))
	qSettledEnded  = settled(`history_shards`, `history_executions`, ``)
)

func settled(shards, executions, lots string) query {
	return statement(`SELECT u.n, s.* FROM unnest($1::uuid[], $2::integer[], $4::integer[]) WITH ORDINALITY u (key, at, block, n)` +
		eachOf("e", `SELECT partition, shard_state, shard FROM `+executions+` WHERE id = u.key`+lots) +
		eachOf("s", `SELECT NULL::text AS shard, token, report_seq, closed, NULL::bytea FROM `+shards+` WHERE execution = u.key AND idx = u.at
			UNION ALL SELECT NULL, 0, 0, false, block FROM `+shards+` WHERE execution = u.key AND idx = u.block
			UNION ALL SELECT e.shard, 0, 0, false, NULL WHERE e.shard_state IS NOT NULL AND u.at = 0`) + ` WHERE e.partition = $3`)
}

// setShards bounds the shards that one query of fill reads; an execution with more is read alone.
const setShards = 256

// fill reads what belongs to executions into a page, as many as it holds.
func fill(r *link, page *store.Pageful[engine.Row], all []engine.Row, shards query) error {
	known := noDefinitions()
	for len(all) > 0 {
		n, sum := 0, 0
		for n < len(all) && (n == 0 || sum+all[n].Execution.ShardTotal <= setShards) {
			sum += max(all[n].Execution.ShardTotal, 1)
			n++
		}
		fits, err := fillSet(r, page, known, all[:n], shards)
		if err != nil || !fits {
			return err
		}
		all = all[n:]
	}
	return nil
}

func fillSet(r *link, page *store.Pageful[engine.Row], known definitions, set []engine.Row, shards query) (fits bool, err error) {
	of := map[job.ExecutionID][]job.Shard{}
	var ids [][16]byte
	for i := range set {
		id := set[i].Execution.ID
		if _, twice := of[id]; !twice {
			if of[id] = set[i].Shards; len(set[i].Shards) == 0 {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) > 0 {
		if err := eachShard(r, shards, []any{ids}, func(sh *job.Shard) error {
			of[sh.Execution] = append(of[sh.Execution], *sh)
			return nil
		}); err != nil {
			return false, err
		}
		for _, shards := range of {
			store.SortShards(shards)
		}
	}
	counted := map[version]bool{}
	for v := range known.of {
		counted[v] = true
	}
	if err := known.fetch(r, column(set, func(row *engine.Row) version { return version{row.Execution.JobUID, row.Execution.Revision} })); err != nil {
		return false, err
	}
	for i := range set {
		e := set[i].Execution
		v := version{e.JobUID, e.Revision}
		row := engine.Row{Execution: e, Shards: slices.Clone(of[e.ID]), Definition: known.of[v]}
		share(&row)
		size := store.SizeOfRow(&row)
		if !counted[v] {
			counted[v] = true
			size += store.SizeOfDefinition(row.Definition)
		}
		if !page.Take(row, size) {
			return false, nil
		}
	}
	return true, nil
}

// ExecutionPage implements store.Engine.
func (s *Store) ExecutionPage(ctx context.Context, partition int, ids []job.ExecutionID) (engine.ExecutionPage, error) {
	out := engine.ExecutionPage{Asked: slices.Clone(ids)}
	page := store.Pageful[engine.Row]{Limit: len(ids)}
	err := s.read(ctx, "read executions", func(r *link) error {
		var err error
		if out.Seq, err = seqOf(r, partition); err != nil {
			return err
		}
		for done := 0; done < len(ids) && !page.More; {
			n := min(setShards, len(ids)-done)
			asked, err := fillFound(r, &page, partition, ids[done:done+n], &out)
			if err != nil {
				return err
			}
			if done += asked; asked < n {
				out.Asked = out.Asked[:done]
				break
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

// fillFound looks for ids in live rows, then in history, and reads them into the page in their order. asked is how many
// of them it came to.
func fillFound(r *link, page *store.Pageful[engine.Row], partition int, ids []job.ExecutionID, out *engine.ExecutionPage) (asked int, err error) {
	live, err := rowsOf(r, qExecLive, ids)
	if err != nil {
		return 0, err
	}
	rest := slices.DeleteFunc(slices.Clone(ids), func(id job.ExecutionID) bool { _, ok := live[id]; return ok })
	ended, err := rowsOf(r, qExecHistory, rest)
	if err != nil {
		return 0, err
	}
	for asked < len(ids) { // runs of one kind, so that the rows keep the order asked
		from, of, other, shards := asked, live, ended, qShardsLive
		if _, ok := live[ids[asked]]; !ok {
			of, other, shards = ended, live, qShardsHistory
		}
		var run []engine.Row
		for ; asked < len(ids); asked++ {
			if _, ends := other[ids[asked]]; ends {
				break
			}
			switch e, ok := of[ids[asked]]; {
			case ok && e.Execution.Partition == partition:
				run = append(run, e)
			case ok:
				engine.PutElsewhere(out, &e.Execution)
			}
		}
		had := len(page.Rows)
		if err := fill(r, page, run, shards); err != nil {
			return 0, err
		}
		if page.More {
			next := run[len(page.Rows)-had].Execution.ID
			return from + slices.Index(ids[from:], next), nil
		}
	}
	return asked, nil
}

// rowsOf reads rows by their ids. Shards are those that lie in the row.
func rowsOf(r *link, q query, ids []job.ExecutionID) (map[job.ExecutionID]engine.Row, error) {
	found := map[job.ExecutionID]engine.Row{}
	if len(ids) == 0 {
		return found, nil
	}
	err := r.each(q, []any{column(ids, func(id *job.ExecutionID) [16]byte { return *id })}, func(rows pgx.Rows) error {
		row, err := scanRow(rows)
		found[row.Execution.ID] = row
		return err
	})
	return found, err
}

// findRow looks into live rows, then into history; nil when it is in neither. Shards are those that lie in the row.
func findRow(r *link, id job.ExecutionID) (found *engine.Row, live bool, err error) {
	for _, q := range []query{qExecLive, qExecHistory} {
		all, err := rowsOf(r, q, []job.ExecutionID{id})
		if err != nil {
			return nil, false, err
		}
		if row, ok := all[id]; ok {
			return &row, q == qExecLive, nil
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

// ShardPage implements store.Engine.
func (s *Store) ShardPage(ctx context.Context, partition int, refs []engine.ShardRef) (engine.ShardPage, error) {
	out := engine.ShardPage{Asked: slices.Clone(refs)}
	err := s.read(ctx, "read shards", func(r *link) error {
		var err error
		if out.Seq, err = seqOf(r, partition); err != nil {
			return err
		}
		found := make([]*engine.Settled, len(refs))
		for _, q := range []query{qSettledEnded, qSettledLive} { // what is live counts
			args := []any{column(refs, func(ref *engine.ShardRef) [16]byte { return ref.Execution }),
				column(refs, func(ref *engine.ShardRef) int32 { return int32(ref.Index) }), partition, //nolint:gosec // bounded by the API
				column(refs, func(ref *engine.ShardRef) int32 { return blockKey(ref.Index) })}
			if err := r.each(q, args, func(rows pgx.Rows) error {
				var n int64
				var row engine.Settled
				var inRow, block []byte
				if err := rows.Scan(&n, &inRow, (*int64)(&row.Token), &row.ReportSeq, &row.Closed, &block); err != nil {
					return err
				}
				row.ShardRef = refs[n-1]
				sh, packed := store.PackedShard(row.Execution, row.Index, block)
				if inRow != nil {
					sh = store.ReadShardInRow(row.Execution, "", inRow)
				}
				if block != nil && !packed {
					return nil // it has a row of its own, or is not there
				}
				if block != nil || inRow != nil {
					row.Token, row.ReportSeq, row.Closed = sh.Token, sh.ReportSeq, sh.Closed
				}
				found[n-1] = &row
				return nil
			}); err != nil {
				return err
			}
		}
		for _, row := range found {
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
