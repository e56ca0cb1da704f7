package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// What a log's column full says.
const (
	logRoom = 0 // the limit is not reached
	logSaid = 1 // it is, and a dropped line says so
	logFull = 2 // it is; all lines beyond it are in the tail
)

// The newest lines beyond the limit are a chunk that no reader asks for, until the log ends: a tail that moves on
// would show lines and take them back.
const hiddenAt = -1

var (
	qLogTail = statement(`SELECT id, size, body FROM log_chunks
		WHERE execution = $1 AND shard = $2 AND token = $3 AND at = -1 ORDER BY id DESC LIMIT 1`)
	qLogTailUpdate = statement(`UPDATE log_chunks SET size = $1, body = $2 WHERE execution = $3 AND id = $4`)
	qLogTailDelete = statement(`DELETE FROM log_chunks WHERE execution = $1 AND id = $2`)
	qLogsCut       = statement(`SELECT token FROM logs WHERE execution = $1 AND shard = $2 AND token < $3 AND "full" > 0 AND NOT closed`)
)

// hidden is the tail of a log as it is stored.
type hidden struct {
	id    int64 // 0: there is none
	lines []store.LogLine
}

func readTail(w *link, c *store.LogChunk) (t hidden, err error) {
	var size int
	var body []byte
	found, err := w.one(qLogTail, []any{c.Execution[:], c.Shard, int64(c.Token)}, &t.id, &size, &body)
	if err == nil && found {
		t.lines, err = store.UnpackLines(body, size)
	}
	return t, err
}

// beyond takes lines over the limit. How much is missing is said where that begins and at the log's end, there
// before the tail.
func (h *logHead) beyond(w *link, a *store.AppendLogs, c *store.LogChunk, more []store.LogLine) error {
	old, err := readTail(w, c)
	if err != nil {
		return err
	}
	for i := range more {
		if l := &more[i]; l.Stream != store.LogDropped { // what the others count is in
			h.DroppedLines, h.DroppedBytes = store.AddCount(h.DroppedLines, 1), store.AddCount(h.DroppedBytes, int64(len(l.Bytes)))
		}
	}
	tail, lines, bytes := store.LogTail(append(old.lines, more...), a.Limit)
	h.unsaidLines, h.unsaidBytes = store.AddCount(h.unsaidLines, lines), store.AddCount(h.unsaidBytes, bytes)
	if h.full == logFull && h.unsaidLines > 0 || h.Closed {
		if err := h.say(w, c, h.Next-int64(max(len(tail), len(more))), a.At); err != nil {
			return err
		}
	}
	if h.Closed {
		return h.show(w, c, old.id, tail, a.At)
	}
	return h.hide(w, c, old.id, tail)
}

// say writes how much is missing that was not said before.
func (h *logHead) say(w *link, c *store.LogChunk, number int64, at job.Instant) error {
	if h.unsaidLines == 0 {
		return nil
	}
	notice := store.LogLine{At: at, Stream: store.LogDropped, DroppedLines: h.unsaidLines, DroppedBytes: h.unsaidBytes}
	h.full, h.unsaidLines, h.unsaidBytes = logSaid, 0, 0
	return h.write(w, c, number, int64(at), []store.LogLine{notice})
}

// show makes the tail part of what readers see.
func (h *logHead) show(w *link, c *store.LogChunk, id int64, tail []store.LogLine, at job.Instant) error {
	if _, err := w.exec(qLogTailDelete, c.Execution[:], id); err != nil {
		return err
	}
	for i := range tail {
		l := &tail[i]
		h.Bytes += int64(len(l.Bytes)) + store.LogLineCost
		if l.Stream != store.LogDropped {
			h.DroppedLines, h.DroppedBytes = h.DroppedLines-1, h.DroppedBytes-int64(len(l.Bytes))
		}
	}
	return h.write(w, c, h.Next-int64(len(tail)), int64(at), tail)
}

func (h *logHead) hide(w *link, c *store.LogChunk, id int64, tail []store.LogLine) error {
	if id == 0 {
		return h.write(w, c, h.Next-int64(len(tail)), hiddenAt, tail)
	}
	body, size, err := store.PackLines(tail)
	if err != nil {
		return err
	}
	_, err = w.exec(qLogTailUpdate, size, body, c.Execution[:], id)
	return err
}

// showTails shows those of former attempts on the shard whose worker never said that they had ended.
func showTails(w *link, a *store.AppendLogs, c *store.LogChunk) error {
	var cut []job.Token
	if err := w.each(qLogsCut, []any{c.Execution[:], c.Shard, int64(c.Token)}, func(rows pgx.Rows) error {
		var token job.Token
		err := rows.Scan((*int64)(&token))
		cut = append(cut, token)
		return err
	}); err != nil {
		return err
	}
	for _, token := range cut {
		former := store.LogChunk{Execution: c.Execution, Shard: c.Shard, Token: token}
		h, _, err := readLogHead(w, &former)
		if err != nil {
			return err
		}
		tail, err := readTail(w, &former)
		if err != nil {
			return err
		}
		if err := h.say(w, &former, h.Next-int64(len(tail.lines)), a.At); err != nil {
			return err
		}
		if err := h.show(w, &former, tail.id, tail.lines, a.At); err != nil {
			return err
		}
		if err := h.store(w, &former, a.At); err != nil {
			return err
		}
	}
	return nil
}
