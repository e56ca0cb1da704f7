package postgres

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qLogChunks      = logChunks(``)
	qLogChunksShard = logChunks(` AND shard = $6`)
	qLogHeads       = statement(`SELECT shard, token, attempt, next, closed, bytes, dropped_lines, dropped_bytes FROM logs
		WHERE execution = $1 AND shard BETWEEN $2 AND $3 ORDER BY shard, token`)
)

// chunkPiece is how many chunks are asked for at a time: what was asked for comes, also when the page is full before.
const chunkPiece = 16

func logChunks(more string) query {
	return statement(`SELECT id, shard, token, attempt, first, size, body FROM log_chunks
		WHERE execution = $1 AND id >= $2 AND ($3::integer = 0 OR attempt = $3) AND at >= greatest($4::bigint, 0)` + more + ` ORDER BY id LIMIT $5`)
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
	for {
		q, args := qLogChunks, []any{r.f.Execution[:], r.place.Chunk, r.f.Attempt, int64(r.f.Since), chunkPiece}
		if r.f.Shard >= 0 {
			q, args = qLogChunksShard, append(args, r.f.Shard)
		}
		n := 0
		err := l.each(q, args, func(rows pgx.Rows) error {
			n++
			return r.chunk(rows)
		})
		switch {
		case errors.Is(err, errPageFull):
			r.page.More = true
			return nil
		case err != nil || n < chunkPiece:
			return err
		}
	}
}

// chunk takes the lines of one row, as far as the page has room.
func (r *logReader) chunk(rows pgx.Rows) error {
	var id, first int64
	var row store.LogRow
	var size int
	var body []byte
	if err := rows.Scan(&id, &row.Shard, (*int64)(&row.Token), &row.Attempt, &first, &size, &body); err != nil {
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
		return 0, math.MaxInt32
	}
	return int64(shard), int64(shard)
}

// LogHeads implements store.Logs.
func (s *Store) LogHeads(ctx context.Context, execution job.ExecutionID, shard int) ([]store.LogHead, error) {
	var all []store.LogHead
	first, last := shardRange(shard)
	err := s.look(ctx, "read the heads of logs", func(r *link) error {
		return r.each(qLogHeads, []any{execution[:], first, last}, func(rows pgx.Rows) error {
			var h store.LogHead
			err := rows.Scan(&h.Shard, (*int64)(&h.Token), &h.Attempt, &h.Next, &h.Closed, &h.Bytes, &h.DroppedLines, &h.DroppedBytes)
			all = append(all, h)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
