package api

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Bounds of log calls.
const (
	logBody   = 8 << 20  // bytes of a worker's call
	logChunks = 1000     // of one call
	logLines  = 20_000   // of one call
	logLine   = 64 << 10 // bytes of a line
	logPause  = 250 * time.Millisecond
	lastYear  = 253_402_300_799_999 // the end of year 9999 in Unix ms
)

type listLogsInput struct {
	ExecutionPath
	Shard   int       `query:"shard" minimum:"-1" maximum:"1048575" default:"-1" doc:"Of this shard only; -1: all."`
	Attempt int       `query:"attempt" minimum:"0" maximum:"1000000" default:"0" doc:"Of this attempt only; 0: all."`
	Since   time.Time `query:"since" doc:"Lines that reached the server then or later."`
	After   string    `query:"after" maxLength:"512" doc:"The next of the page before."`
	Limit   int       `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"Lines of the page; it may end sooner when they are long."`
	WaitMs  int64     `query:"waitMs" minimum:"0" maximum:"3600000" doc:"How long to wait, at most 20 s, while there is nothing new and the end has not come."`
}

func (s *server) logs() {
	register(s, huma.Operation{OperationID: "listLogs", Method: http.MethodGet, Path: pathPeople + "/executions/{id}/logs", Tags: []string{"executions"},
		Summary:     "Read the log of an execution, or wait for more of it",
		Description: "Lines come in the order in which the server took them in; those of one attempt keep their order. Ask again with after=next until end is true."},
		intake{limit: s.limits.Body}, s.listLogs)
	register(s, huma.Operation{OperationID: "workerLog", Method: http.MethodPost, Path: pathWorker + "log", Tags: []string{"worker"},
		Summary: "Ship lines of attempts' logs; send again until answered"}, intake{lenient: true, limit: logBody}, s.appendLogs)
}

// appendLogs goes past the owner: log lines belong to (shard, token) and change no state (R6).
func (s *server) appendLogs(ctx context.Context, in *body[takt.LogRequest]) (*answer[takt.LogResponse], error) {
	chunks, err := s.toChunks(in.Body.Chunks)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fates, err := s.control.AppendLogs(ctx, chunks)
	if err != nil {
		return nil, err
	}
	out := takt.LogResponse{Chunks: make([]takt.LogFate, len(fates))}
	for i, f := range fates {
		out.Chunks[i] = takt.LogFate{Fate: string(f.Fate), Next: f.Next}
	}
	return &answer[takt.LogResponse]{out}, nil
}

func (s *server) toChunks(in []takt.LogChunk) ([]store.LogChunk, error) {
	c := checks{}
	c.that(len(in) <= logChunks, "chunks", "expected at most %d", logChunks)
	c.list = "chunks"
	out := make([]store.LogChunk, len(in))
	left, now := logLines, s.now()
	for i := range in {
		c.item = i
		k := &in[i]
		id, err := job.ParseExecutionID(k.Execution)
		c.that(err == nil, "execution", "expected an execution id")
		c.that(k.Shard >= 0 && k.Shard < maxShards, "shard", "expected a shard's index")
		c.token(k.Token, "token")
		c.number(k.Offset, "offset")
		left -= len(k.Lines)
		c.that(left >= 0, "lines", "expected at most %d lines in one call", logLines)
		if c.err != nil {
			return nil, c.done()
		}
		out[i] = store.LogChunk{Execution: id, Shard: k.Shard, Token: job.Token(k.Token), Offset: k.Offset, Final: k.Final,
			Lines: make([]store.LogLine, len(k.Lines))}
		for n := range k.Lines {
			out[i].Lines[n] = toLine(&c, &k.Lines[n], now)
		}
	}
	return out, c.done()
}

func toLine(c *checks, l *takt.LogLine, now time.Time) store.LogLine {
	out := store.LogLine{At: job.Instant(l.AtMs), Stream: store.LogStream(l.Stream), Bytes: l.Bytes, Partial: l.Partial}
	if len(out.Bytes) == 0 {
		out.Bytes = []byte(l.Text)
	}
	if l.AtMs < 0 || l.AtMs > lastYear { // it informs only
		out.At = job.InstantOf(now)
	}
	c.that(len(out.Bytes) <= logLine, "lines", "a line has more than %d bytes: send it in partial pieces", logLine)
	switch out.Stream {
	case store.LogStdout, store.LogStderr, store.LogTask:
	case store.LogDropped:
		ok := l.Dropped != nil && l.Dropped.Lines >= 0 && l.Dropped.Lines <= maxNumber && l.Dropped.Bytes >= 0 && l.Dropped.Bytes <= maxNumber
		c.that(ok, "lines", "a line of stream dropped needs counts of at least 0")
		if ok {
			out.DroppedLines, out.DroppedBytes, out.Bytes = l.Dropped.Lines, l.Dropped.Bytes, []byte{}
		}
	default:
		c.that(false, "lines", "expected a stream: stdout, stderr, log or dropped")
	}
	return out
}

// announceLogs makes the logs known that are still to come when an attempt's end is reported, so that
// readers wait for them. It holds no report back.
func (s *server) announceLogs(ctx context.Context, items []takt.ReportItem) {
	var chunks []store.LogChunk
	for i := range items {
		if it := &items[i]; it.Kind == "done" && it.LogPending {
			id, err := job.ParseExecutionID(it.Execution)
			if err == nil {
				chunks = append(chunks, store.LogChunk{Execution: id, Shard: it.Shard, Token: job.Token(it.Token)})
			}
		}
	}
	if len(chunks) == 0 {
		return
	}
	// Logs are slow just then, and the last to write: the end of an attempt must not wait for them.
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
		defer cancel()
		if _, err := s.control.AppendLogs(ctx, chunks); err != nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "logs that are still to come could not be noted; a reader may stop before them",
				slog.Int("attempts", len(chunks)), slog.Any("cause", err))
		}
	}()
	patience := time.NewTimer(announceWait)
	defer patience.Stop()
	select {
	case <-noted:
	case <-patience.C:
	case <-ctx.Done():
	}
}

const (
	announceWait    = 200 * time.Millisecond // of a report for the note that its logs are still to come
	announceTimeout = 2 * time.Second        // of the note itself
)

func (s *server) listLogs(ctx context.Context, in *listLogsInput) (*answer[takt.LogList], error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	f := store.LogFilter{Execution: id, Shard: in.Shard, Attempt: in.Attempt, After: in.After, Limit: in.Limit}
	if !in.Since.IsZero() {
		f.Since = job.InstantOf(in.Since)
	}
	wait := min(time.Duration(in.WaitMs)*time.Millisecond, s.limits.PollMax)
	for began := s.now(); ; {
		asked := s.now()
		view, err := s.control.Logs(ctx, in.NS, f)
		if err != nil {
			return nil, err
		}
		now := s.now()
		pause := min(max(logPause, 4*now.Sub(asked)), wait-now.Sub(began))
		if len(view.Rows) > 0 || view.End || pause <= 0 || s.stopping() {
			return s.logList(ctx, f, &view.LogPage, view.End)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		f.After = view.Next
	}
}

func (s *server) logList(ctx context.Context, f store.LogFilter, p *store.LogPage, end bool) (*answer[takt.LogList], error) {
	list := takt.LogList{Items: make([]takt.LogEntry, len(p.Rows)), Next: p.Next, More: p.More, End: end}
	for i := range p.Rows {
		list.Items[i] = fromLogRow(&p.Rows[i])
	}
	if !p.More {
		lines, bytes, err := s.control.LogsDropped(ctx, f)
		if err != nil {
			return nil, err
		}
		if lines > 0 || bytes > 0 {
			list.Dropped = &takt.Dropped{Lines: lines, Bytes: bytes}
		}
	}
	return &answer[takt.LogList]{list}, nil
}

func fromLogRow(r *store.LogRow) takt.LogEntry {
	e := takt.LogEntry{Shard: r.Shard, Attempt: r.Attempt, Line: r.Number, Time: r.At.Time().UTC(), Stream: string(r.Stream), Partial: r.Partial}
	if r.Stream == store.LogDropped {
		e.Dropped = &takt.Dropped{Lines: r.DroppedLines, Bytes: r.DroppedBytes}
		return e
	}
	if e.Text = string(r.Bytes); !utf8.Valid(r.Bytes) {
		e.Text, e.Replaced, e.Raw = strings.ToValidUTF8(e.Text, "�"), true, bytes.Clone(r.Bytes)
	}
	return e
}
