package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qLogHead = statement(`SELECT attempt, next, closed, bytes, dropped_lines, dropped_bytes, full, unsaid_lines, unsaid_bytes FROM logs
		WHERE execution = ? AND shard = ? AND token = ?`)
	qLogInsert = statement(`INSERT INTO logs (execution, shard, token, namespace, attempt, next, closed, bytes, dropped_lines, dropped_bytes,
		full, unsaid_lines, unsaid_bytes, last_at) VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, ?)`)
	qLogUpdate = statement(`UPDATE logs SET next = ?, closed = ?, bytes = ?, dropped_lines = ?, dropped_bytes = ?, full = ?, unsaid_lines = ?,
		unsaid_bytes = ?, last_at = ? WHERE execution = ? AND shard = ? AND token = ?`)
	qLogHeads = statement(`SELECT shard, token, attempt, next, closed, bytes, dropped_lines, dropped_bytes FROM logs
		WHERE execution = ?1 AND shard BETWEEN ?2 AND ?3 ORDER BY shard, token`)

	qLogGrantedLive    = logGranted("shards", "executions")
	qLogGrantedHistory = logGranted("history_shards", "history_executions")

	qLogChunkInsert = statement(`INSERT INTO log_chunks (execution, shard, token, attempt, first, at, size, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
	qLogChunks      = logChunks("log_chunks_execution", ``)
	qLogChunksShard = logChunks("log_chunks_shard", ` AND shard = ?5`)

	qLogOldest            = statement(`SELECT execution, shard, token FROM logs WHERE last_at < ?` + logOver + `ORDER BY last_at LIMIT 1`)
	qLogOldestOfNamespace = statement(`SELECT execution, shard, token FROM logs WHERE last_at < ? AND namespace = ?` + logOver + `ORDER BY last_at LIMIT 1`)
	qLogChunkDelete       = statement(`DELETE FROM log_chunks WHERE id IN
		(SELECT id FROM log_chunks WHERE execution = ? AND shard = ? AND token = ? ORDER BY id LIMIT ?)`)
	qLogDelete = statement(`DELETE FROM logs WHERE execution = ? AND shard = ? AND token = ?`)
)

// logOver: an attempt that has been silent for long still writes its log; what ended is in history.
const logOver = ` AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = logs.execution) `

func logChunks(index, more string) query {
	return statement(`SELECT id, shard, token, attempt, first, size, body FROM log_chunks INDEXED BY ` + index + `
		WHERE execution = ?1 AND id >= ?2 AND (?3 = 0 OR attempt = ?3) AND at >= max(?4, 0)` + more + ` ORDER BY id`)
}

// logGranted: a shard lies in the row of its execution, in one of its own, or in a block.
func logGranted(shards, executions string) query {
	return statement(`SELECT e.namespace, e.shard, s.attempts, b.block FROM ` + executions + ` e LEFT JOIN ` + shards + ` s ON s.execution = e.id AND s.idx = ?2
		LEFT JOIN ` + shards + ` b ON b.execution = e.id AND b.idx = ?3
		WHERE e.id = ?1 AND (s.idx IS NOT NULL OR b.idx IS NOT NULL OR e.shard_state IS NOT NULL AND ?2 = 0)`)
}

// logHead is a row of logs.
type logHead struct {
	store.LogHead
	full                     int64 // logRoom, logSaid or logFull
	unsaidLines, unsaidBytes int64
}

// AppendLogs implements store.Logs. Logs come after everybody else at the one writer.
func (s *Store) AppendLogs(ctx context.Context, a store.AppendLogs) ([]store.LogAppended, error) {
	out := make([]store.LogAppended, len(a.Chunks))
	err := s.write(ctx, rankLogs, "append logs", func(w *link) error {
		for i := range a.Chunks {
			var err error
			if out[i], err = appendLog(w, &a, &a.Chunks[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func appendLog(w *link, a *store.AppendLogs, c *store.LogChunk) (store.LogAppended, error) {
	h, known, err := readLogHead(w, c)
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
	attempt, namespace, err := granted(w, c)
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
		h.Attempt = attempt.Number
		if _, err := w.exec(qLogInsert, c.Execution[:], int64(c.Shard), int64(c.Token), namespace, int64(h.Attempt), int64(a.At)); err != nil {
			return store.LogAppended{}, err
		}
		if err := showTails(w, a, c); err != nil {
			return store.LogAppended{}, err
		}
	}
	if err := h.take(w, a, c); err != nil {
		return store.LogAppended{}, err
	}
	if err := h.store(w, c, a.At); err != nil {
		return store.LogAppended{}, err
	}
	return fate(store.LogTaken)
}

func (h *logHead) store(w *link, c *store.LogChunk, at job.Instant) error {
	_, err := w.exec(qLogUpdate, h.Next, flag(h.Closed), h.Bytes, h.DroppedLines, h.DroppedBytes, h.full, h.unsaidLines, h.unsaidBytes,
		int64(at), c.Execution[:], int64(c.Shard), int64(c.Token))
	return err
}

func readLogHead(w *link, c *store.LogChunk) (h logHead, known bool, err error) {
	h.Shard, h.Token = c.Shard, c.Token
	known, err = w.one(qLogHead, []any{c.Execution[:], int64(c.Shard), int64(c.Token)}, &h.Attempt, &h.Next, &h.Closed, &h.Bytes,
		&h.DroppedLines, &h.DroppedBytes, &h.full, &h.unsaidLines, &h.unsaidBytes)
	return h, known, err
}

// late tells whether an attempt ended too long ago.
func late(a *job.Attempt, at job.Instant) bool {
	return a.EndedAt > 0 && at > a.EndedAt+job.Instant(store.LogKept.Milliseconds())
}

// granted finds the attempt that a token was granted for; nil when there is none, or it is not kept any more.
func granted(w *link, c *store.LogChunk) (*job.Attempt, string, error) {
	for _, q := range []query{qLogGrantedLive, qLogGrantedHistory} {
		var namespace string
		var inRow, text sql.NullString
		var block []byte
		found, err := w.one(q, []any{c.Execution[:], int64(c.Shard), int64(store.BlockKey(store.InBlock(c.Shard)))}, &namespace, &inRow, &text, &block)
		if err != nil || !found {
			if err != nil {
				return nil, "", err
			}
			continue
		}
		var attempts []job.Attempt
		if err := decode("attempts of a shard", text, &attempts); err != nil {
			return nil, "", err
		}
		if inRow.Valid {
			attempts = store.ReadShardInRow(c.Execution, "", []byte(inRow.String)).Attempts
		}
		if packed, is := store.PackedShard(c.Execution, c.Shard, block); is {
			attempts = packed.Attempts
		}
		i := slices.IndexFunc(attempts, func(a job.Attempt) bool { return a.Token == c.Token })
		if i < 0 {
			return nil, "", nil
		}
		return &attempts[i], namespace, nil
	}
	return nil, "", nil
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
	_, err = w.exec(qLogChunkInsert, c.Execution[:], int64(c.Shard), int64(c.Token), int64(h.Attempt), first, at, int64(size), body)
	return err
}

// logPlace is where a reader stands: at a line of a chunk.
type logPlace struct {
	Chunk int64 `json:"c"`
	Line  int   `json:"l"`
}

const (
	logPageBytes = 1 << 20
	logsOf       = "logs of "
)

var errPageFull = errors.New("the page is full")

// ReadLogs implements store.Logs.
func (s *Store) ReadLogs(ctx context.Context, f store.LogFilter) (store.LogPage, error) {
	r := logReader{f: f, lines: store.Page{Limit: f.Limit}.Rows(), bytes: f.Bytes}
	if r.bytes <= 0 {
		r.bytes = logPageBytes
	}
	list := logsOf + f.Execution.String()
	if _, err := store.ParseAfter(list, f.After, &r.place); err != nil {
		return store.LogPage{}, err
	}
	err := s.look(ctx, "read logs", r.run)
	if err != nil {
		return store.LogPage{}, err
	}
	r.page.Next = store.After(list, r.place)
	return r.page, nil
}

// logReader fills one page.
type logReader struct {
	f            store.LogFilter
	lines, bytes int // left
	place        logPlace
	page         store.LogPage
}

func (r *logReader) run(l *link) error {
	q, args := qLogChunks, []any{r.f.Execution[:], r.place.Chunk, int64(r.f.Attempt), int64(r.f.Since)}
	if r.f.Shard >= 0 {
		q, args = qLogChunksShard, append(args, int64(r.f.Shard))
	}
	if err := l.each(q, args, r.chunk); !errors.Is(err, errPageFull) {
		return err
	}
	r.page.More = true
	return nil
}

// chunk takes the lines of one row, as far as the page has room.
func (r *logReader) chunk(rows *sql.Rows) error {
	var id, first int64
	var row store.LogRow
	var size int
	var body sql.RawBytes
	if err := rows.Scan(&id, &row.Shard, &row.Token, &row.Attempt, &first, &size, &body); err != nil {
		return err
	}
	if r.lines <= 0 || r.bytes <= 0 {
		return errPageFull
	}
	lines, err := store.UnpackLines(body, size)
	if err != nil {
		return err
	}
	if id != r.place.Chunk {
		r.place = logPlace{Chunk: id}
	}
	for ; r.place.Line < len(lines); r.place.Line++ {
		if r.lines <= 0 || r.bytes <= 0 {
			return errPageFull
		}
		row.Number, row.LogLine = first+int64(r.place.Line), lines[r.place.Line]
		r.page.Rows = append(r.page.Rows, row)
		r.lines--
		r.bytes -= len(row.Bytes) + store.LogLineCost
	}
	r.place = logPlace{Chunk: id + 1}
	return nil
}

func shardRange(shard int) (first, last int64) {
	if shard < 0 {
		return 0, 1 << 31
	}
	return int64(shard), int64(shard)
}

// LogHeads implements store.Logs.
func (s *Store) LogHeads(ctx context.Context, execution job.ExecutionID, shard int) ([]store.LogHead, error) {
	var all []store.LogHead
	first, last := shardRange(shard)
	err := s.look(ctx, "read the heads of logs", func(r *link) error {
		return r.each(qLogHeads, []any{execution[:], first, last}, func(rows *sql.Rows) error {
			var h store.LogHead
			err := rows.Scan(&h.Shard, &h.Token, &h.Attempt, &h.Next, &h.Closed, &h.Bytes, &h.DroppedLines, &h.DroppedBytes)
			all = append(all, h)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// SweepLogs implements store.Logs. Chunks go before the row that says that they are there.
func (s *Store) SweepLogs(ctx context.Context, o store.SweepLogs) (int, error) {
	oldest, args := qLogOldest, []any{int64(o.Before)}
	if o.Namespace != "" {
		oldest, args = qLogOldestOfNamespace, append(args, o.Namespace)
	}
	deleted := int64(0)
	err := s.write(ctx, rankSweep, "delete old logs", func(w *link) error {
		for deleted < int64(o.Limit) {
			var id []byte
			var shard, token int64
			found, err := w.one(oldest, args, &id, &shard, &token)
			if err != nil || !found {
				return err
			}
			n, err := w.exec(qLogChunkDelete, id, shard, token, int64(o.Limit)-deleted)
			if err != nil {
				return err
			}
			if deleted += n; deleted >= int64(o.Limit) {
				return nil
			}
			if n, err = w.exec(qLogDelete, id, shard, token); err != nil {
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
