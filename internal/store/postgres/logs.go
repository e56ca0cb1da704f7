package postgres

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// The lines of an execution are numbered by a sequence, which knows nothing of commits: a chunk of a shard could show up
// before one of another shard with a smaller number, and a reader who has passed it would never see that one. So who
// appends to an execution holds a lock of it to the end: one of logStripes, for the locks of all servers share a table
// of limited size.
const (
	logStripes = 256
	logClass   = 0x6c6f67 // of advisory locks
)

var (
	qLogLock = statement(`SELECT pg_advisory_xact_lock($1, stripe) FROM unnest($2::integer[]) AS stripe`)
	qLogHead = statement(`SELECT attempt, next, closed, bytes, dropped_lines, dropped_bytes, "full", unsaid_lines, unsaid_bytes FROM logs
		WHERE execution = $1 AND shard = $2 AND token = $3`)
	qLogInsert = statement(`INSERT INTO logs (execution, shard, token, namespace, attempt, next, closed, bytes, dropped_lines, dropped_bytes,
		"full", unsaid_lines, unsaid_bytes, last_at) VALUES ($1, $2, $3, $4, $5, 0, false, 0, 0, 0, 0, 0, 0, $6)`)
	qLogUpdate = statement(`UPDATE logs SET next = $1, closed = $2, bytes = $3, dropped_lines = $4, dropped_bytes = $5, "full" = $6, unsaid_lines = $7,
		unsaid_bytes = $8, last_at = $9 WHERE execution = $10 AND shard = $11 AND token = $12`)

	// A shard moves between these tables while one looks: one statement sees one moment.
	qLogGranted = statement(`SELECT e.namespace, NULL, s.attempts, s.block FROM shards s JOIN executions e ON e.id = s.execution WHERE s.execution = $1 AND s.idx IN ($2, $3)
		UNION ALL SELECT e.namespace, NULL, s.attempts, s.block FROM history_shards s JOIN history_executions e ON e.id = s.execution
		WHERE s.execution = $1 AND s.idx IN ($2, $3)
		UNION ALL SELECT namespace, shard, NULL, NULL FROM executions WHERE id = $1 AND shard_state IS NOT NULL AND $2 = 0
		UNION ALL ` + memberBy(`namespace, shard, NULL, NULL`, `$1`) + ` AND $2 = 0
		UNION ALL SELECT namespace, shard, NULL, NULL FROM history_executions WHERE id = $1 AND shard_state IS NOT NULL AND $2 = 0`)

	qLogChunkInsert = statement(`INSERT INTO log_chunks (execution, shard, token, attempt, first, at, size, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`)

	// Servers sweep at the same time: one passes over what another has in hand.
	qLogOldest            = logOldest(``)
	qLogOldestOfNamespace = logOldest(` AND namespace = $2`)
	qLogChunkDelete       = statement(`DELETE FROM log_chunks WHERE execution = $1 AND id = ANY(ARRAY
		(SELECT id FROM log_chunks WHERE execution = $1 AND shard = $2 AND token = $3 ORDER BY id LIMIT $4))`)
	qLogDelete = statement(`DELETE FROM logs WHERE execution = $1 AND shard = $2 AND token = $3`)
)

// logOldest: an attempt that has been silent for long still writes its log; what ended is in history.
func logOldest(more string) query {
	return statement(`SELECT execution, shard, token FROM logs WHERE last_at < $1` + more + `
		AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = logs.execution)
		AND NOT EXISTS (` + memberBy(`1`, `logs.execution`) + `) ORDER BY last_at LIMIT 1 FOR UPDATE SKIP LOCKED`)
}

// logHead is a row of logs.
type logHead struct {
	store.LogHead
	full                     int64 // logRoom, logSaid or logFull
	unsaidLines, unsaidBytes int64
}

// AppendLogs implements store.Logs. Months of logs are made for what was granted only: anybody can send any id.
func (s *Store) AppendLogs(ctx context.Context, a store.AppendLogs) ([]store.LogAppended, error) {
	for n := 1; ; n++ {
		out, missing := make([]store.LogAppended, len(a.Chunks)), []job.Instant(nil)
		err := s.write(ctx, "append logs", func(w *link) error {
			missing = nil
			if err := lockLogs(w, a.Chunks); err != nil {
				return err
			}
			for i := range a.Chunks {
				c := &a.Chunks[i]
				log := logAppend{link: w, a: &a, c: c, months: s.hasLogMonth}
				var err error
				if out[i], err = log.run(); err != nil {
					return err
				}
				if log.noMonth {
					missing = append(missing, c.Execution.PlannedAt())
				}
			}
			if missing != nil {
				return undo
			}
			return nil
		})
		switch {
		case err == nil:
			return out, nil
		case n < tries && noMonth(err): // another server dropped it meanwhile
			continue
		case missing == nil || n == tries || !errors.Is(err, undo):
			return nil, err
		}
		if err := s.ensureMonths(ctx, monthsOfLogs, missing...); err != nil {
			return nil, err
		}
	}
}

func noMonth(err error) bool {
	e, ok := errors.AsType[*job.Error](err)
	return ok && e.Code == codeNoMonth
}

func (s *Store) hasLogMonth(at job.Instant) bool {
	for _, table := range monthsOfLogs {
		if !s.months.has(table + "_" + monthOf(at).name) {
			return false
		}
	}
	return true
}

// lockLogs takes the locks of all executions in one order.
func lockLogs(w *link, chunks []store.LogChunk) error {
	var stripes []int32
	for i := range chunks {
		h := fnv.New32a()
		_, _ = h.Write(chunks[i].Execution[:])                 // cannot fail
		stripes = append(stripes, int32(h.Sum32()%logStripes)) //nolint:gosec // small
	}
	slices.Sort(stripes)
	_, err := w.exec(qLogLock, int32(logClass), slices.Compact(stripes))
	return err
}

// logAppend takes one chunk in.
type logAppend struct {
	*link
	a       *store.AppendLogs
	c       *store.LogChunk
	months  func(job.Instant) bool
	noMonth bool // nothing was written: the month has to be made first
}

func (w *logAppend) run() (store.LogAppended, error) {
	a, c := w.a, w.c
	h, known, err := readLogHead(w.link, c)
	if err != nil {
		return store.LogAppended{}, err
	}
	fate := func(f store.LogFate) (store.LogAppended, error) {
		return store.LogAppended{Fate: f, Next: h.Next}, nil
	}
	end := c.Offset + int64(len(c.Lines))
	if known && (end < h.Next || end == h.Next && (h.Closed || !c.Final)) && c.Offset >= 0 {
		return fate(store.LogTaken) // all of it was there before
	}
	attempt, namespace, err := granted(w.link, c)
	switch {
	case err != nil:
		return store.LogAppended{}, err
	case attempt == nil && known, h.Closed, attempt != nil && late(attempt, a.At):
		return fate(store.LogClosed)
	case attempt == nil:
		return fate(store.LogUnknown)
	case c.Offset < 0 || c.Offset > h.Next:
		return fate(store.LogGap)
	}
	if !known {
		if w.noMonth = !w.months(c.Execution.PlannedAt()); w.noMonth {
			return store.LogAppended{}, nil
		}
		h.Attempt = attempt.Number
		if _, err := w.exec(qLogInsert, c.Execution[:], c.Shard, int64(c.Token), namespace, h.Attempt, int64(a.At)); err != nil {
			return store.LogAppended{}, err
		}
		if err := showTails(w.link, a, c); err != nil {
			return store.LogAppended{}, err
		}
	}
	if err := h.take(w.link, a, c); err != nil {
		return store.LogAppended{}, err
	}
	if err := h.store(w.link, c, a.At); err != nil {
		return store.LogAppended{}, err
	}
	return fate(store.LogTaken)
}

func (h *logHead) store(w *link, c *store.LogChunk, at job.Instant) error {
	_, err := w.exec(qLogUpdate, h.Next, h.Closed, h.Bytes, h.DroppedLines, h.DroppedBytes, h.full, h.unsaidLines, h.unsaidBytes,
		int64(at), c.Execution[:], c.Shard, int64(c.Token))
	return err
}

func readLogHead(w *link, c *store.LogChunk) (h logHead, known bool, err error) {
	h.Shard, h.Token = c.Shard, c.Token
	known, err = w.one(qLogHead, []any{c.Execution[:], c.Shard, int64(c.Token)}, &h.Attempt, &h.Next, &h.Closed, &h.Bytes,
		&h.DroppedLines, &h.DroppedBytes, &h.full, &h.unsaidLines, &h.unsaidBytes)
	return h, known, err
}

// late tells whether an attempt ended too long ago.
func late(a *job.Attempt, at job.Instant) bool {
	return a.EndedAt > 0 && at > a.EndedAt+job.Instant(store.LogKept.Milliseconds())
}

// granted finds the attempt that a token was granted for; nil when there is none, or it is not kept any more.
func granted(w *link, c *store.LogChunk) (*job.Attempt, string, error) {
	var namespace string
	var attempts []job.Attempt
	if err := w.each(qLogGranted, []any{c.Execution[:], c.Shard, blockKey(c.Shard)}, func(rows pgx.Rows) error {
		var inRow, stored, block []byte
		if err := rows.Scan(&namespace, &inRow, &stored, &block); err != nil {
			return err
		}
		packed, is := store.PackedShard(c.Execution, c.Shard, block)
		switch {
		case is:
			attempts = packed.Attempts
		case inRow != nil:
			attempts = store.ReadShardInRow(c.Execution, "", inRow).Attempts
		case block == nil:
			return decode("attempts of a shard", stored, &attempts)
		}
		return nil
	}); err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(attempts, func(a job.Attempt) bool { return a.Token == c.Token })
	if i < 0 {
		return nil, "", nil
	}
	return &attempts[i], namespace, nil
}

// take writes the lines of c that are new: as far as the limit allows for readers, the rest to the tail.
func (h *logHead) take(w *link, a *store.AppendLogs, c *store.LogChunk) error {
	first := h.Next
	fresh := c.Lines[h.Next-c.Offset:]
	kept := 0
	for i := range fresh {
		l := &fresh[i]
		h.DroppedLines = store.AddCount(h.DroppedLines, l.DroppedLines)
		h.DroppedBytes = store.AddCount(h.DroppedBytes, l.DroppedBytes)
		if h.full != logRoom {
			continue
		}
		if cost := int64(len(l.Bytes)) + store.LogLineCost; h.Bytes+cost <= a.Limit {
			h.Bytes += cost
			kept++
		} else {
			h.full = logFull
		}
	}
	h.Next += int64(len(fresh))
	h.Closed = h.Closed || c.Final
	if err := h.write(w, c, first, int64(a.At), fresh[:kept]); err != nil || h.full == logRoom {
		return err
	}
	return h.beyond(w, a, c, fresh[kept:])
}

// write adds a chunk that begins with the line of that number.
func (h *logHead) write(w *link, c *store.LogChunk, first, at int64, lines []store.LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	body, size, err := store.PackLines(lines)
	if err != nil {
		return err
	}
	_, err = w.exec(qLogChunkInsert, c.Execution[:], c.Shard, int64(c.Token), h.Attempt, first, at, size, body)
	return err
}

// SweepLogs implements store.Logs. Chunks go before the row that says that they are there.
func (s *Store) SweepLogs(ctx context.Context, o store.SweepLogs) (int, error) {
	oldest, args := qLogOldest, []any{int64(o.Before)}
	if o.Namespace != "" {
		oldest, args = qLogOldestOfNamespace, append(args, o.Namespace)
	}
	deleted := int64(0)
	err := s.write(ctx, "delete old logs", func(w *link) error {
		deleted = 0
		for deleted < int64(o.Limit) {
			var id [16]byte
			var shard, token int64
			found, err := w.one(oldest, args, &id, &shard, &token)
			if err != nil || !found {
				return err
			}
			n, err := w.exec(qLogChunkDelete, id[:], shard, token, int64(o.Limit)-deleted)
			if err != nil {
				return err
			}
			if deleted += n; deleted >= int64(o.Limit) {
				return nil
			}
			if n, err = w.exec(qLogDelete, id[:], shard, token); err != nil {
				return err
			}
			deleted += n
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int(deleted), nil
}
