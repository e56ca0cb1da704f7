package takt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"
)

// output cuts a stream of bytes into lines for an attempt's log.
type output struct {
	log    *attemptLog
	stream string

	mu   sync.Mutex
	rest []byte // of a line whose newline has not come
}

// Write takes all of p; the error says that the handler has returned.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, taken := len(p), true
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		line := p[:i]
		if len(o.rest) > 0 {
			o.rest = append(o.rest, line...)
			line = o.rest
		}
		taken = o.line(line) && taken
		o.rest, p = o.rest[:0], p[i+1:]
	}
	for o.rest = append(o.rest, p...); len(o.rest) > logPiece; {
		n := piece(o.rest)
		taken = o.add(o.rest[:n], true) && taken
		o.rest = append(o.rest[:0], o.rest[n:]...)
	}
	if !taken {
		return 0, errReturned
	}
	return size, nil
}

// line adds a whole line, in pieces when it is long.
func (o *output) line(b []byte) bool {
	for len(b) > logPiece {
		n := piece(b)
		if !o.add(b[:n], true) {
			return false
		}
		b = b[n:]
	}
	return o.add(b, false)
}

func (o *output) add(b []byte, partial bool) bool {
	return o.log.add(o.stream, b, partial, logEndWait)
}

// piece is where to cut b, which is longer than a piece: between characters if it has any.
func piece(b []byte) int {
	for n := logPiece; n > logPiece-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n]) {
			return n
		}
	}
	return logPiece
}

// flush adds the line that has no newline.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) > 0 {
		o.add(o.rest, true)
		o.rest = nil
	}
}

// badOutput is what [Task.Output] gives for a name that is no stream.
type badOutput string

// Write fails.
func (b badOutput) Write([]byte) (int, error) {
	return 0, fmt.Errorf("takt: %.32q is no stream: write stdout, stderr or log", string(b))
}

func newTask(a *attempt) *Task {
	t := &Task{a: a}
	for i, stream := range streams {
		t.outputs[i].log, t.outputs[i].stream = a.log, stream
	}
	return t
}

// streams are those of an attempt's log.
var streams = [...]string{"stdout", "stderr", streamLog}

const streamLog = "log"

func (t *Task) output(stream string) *output {
	for i := range t.outputs {
		if t.outputs[i].stream == stream {
			return &t.outputs[i]
		}
	}
	return nil
}

// logger is made when a handler asks for it; many never do.
func (t *Task) logger() *slog.Logger {
	as := &t.a.as
	own := t.a.s.w.log.With("job", as.Job, "execution", as.Execution, "shard", as.Shard, "attempt", as.Attempt)
	text := slog.NewTextHandler(t.output(streamLog), &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime})
	return slog.New(&taskLog{own: own.Handler(), shipped: text})
}

// withoutTime leaves the time out: each line carries its own.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// flush hands over the lines without a newline.
func (t *Task) flush() {
	for i := range t.outputs {
		t.outputs[i].flush()
	}
}

// taskLog writes each record to the worker's logger and to the execution's log.
type taskLog struct{ own, shipped slog.Handler }

// Enabled, Handle, WithAttrs and WithGroup make taskLog a slog.Handler.
func (h *taskLog) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || h.own.Enabled(ctx, l)
}

func (h *taskLog) Handle(ctx context.Context, r slog.Record) error {
	var own error
	if h.own.Enabled(ctx, r.Level) {
		own = h.own.Handle(ctx, r.Clone())
	}
	return errors.Join(own, h.shipped.Handle(ctx, r))
}

func (h *taskLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &taskLog{own: h.own.WithAttrs(attrs), shipped: h.shipped.WithAttrs(attrs)}
}

func (h *taskLog) WithGroup(name string) slog.Handler {
	return &taskLog{own: h.own.WithGroup(name), shipped: h.shipped.WithGroup(name)}
}

// endLog says that nothing follows and waits until the server has the log, for a while: a log that
// cannot be shipped must not hold the result back. Of a lost attempt there is no result to hold.
func (a *attempt) endLog() {
	w := a.s.w
	w.mu.Lock()
	lost, told, leaving := a.lost, a.lost || a.stop != nil, w.stopping
	w.mu.Unlock()
	wait := a.log.end(told)
	if leaving {
		wait = min(wait, logLeaveWait)
	}
	if wait == 0 || lost {
		return
	}
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-a.log.settled:
	case <-limit.C:
		w.log.Warn("the log of an attempt could not be shipped yet; its end is reported without waiting longer",
			"job", a.as.Job, "execution", a.as.Execution, "shard", a.as.Shard, "attempt", a.as.Attempt)
	}
}

// shipLogs sends what the spool has, one call at a time, until ctx ends.
func (w *Worker) shipLogs(ctx context.Context) {
	b := backoff{max: 2 * time.Second, jitter: w.cfg.Jitter}
	most := logChunks
	for w.awaitLines(ctx) {
		parts, err := w.shipOnce(ctx, most)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			b.reset()
			most = logChunks
			continue
		case errors.Is(err, ErrNotFound) || codeOf(err) == "method_not_allowed":
			w.log.Warn("this server takes no logs; they are dropped until another session is opened", "error", err)
			w.spool.giveUp(parts, true)
			continue
		case refusesItems(err) && len(parts) > 1:
			most = 1
			continue
		case refusesItems(err):
			lost := w.spool.giveUp(parts, false)
			w.log.Error("the server refuses the log of an attempt; it is dropped", "error", err,
				"execution", parts[0].log.execution, "shard", parts[0].log.shard, "lines", lost)
			continue
		}
		lost := w.spool.failed()
		level, wait := b.level(), b.after(err)
		w.log.Log(ctx, level, "a log call was not answered; sending its lines again", "error", err, "after", wait, "dropped", lost)
		pause(ctx, wait)
	}
}

const (
	logChunks      = 200 // of one call
	logCallTimeout = 4 * time.Second
)

// awaitLines waits until there is something to send, and then a moment for more; false: ctx has ended.
func (w *Worker) awaitLines(ctx context.Context) bool {
	var over <-chan time.Time
	for {
		logs, due, _ := w.spool.state()
		if logs > 0 && due {
			return true
		}
		if logs > 0 && over == nil {
			t := time.NewTimer(logFlushEach)
			defer t.Stop()
			over = t.C
		}
		select {
		case <-w.spool.wake:
		case <-over:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// shipOnce makes one log call.
func (w *Worker) shipOnce(ctx context.Context, most int) ([]sent, error) {
	req, parts := w.spool.take(most)
	if len(parts) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, logCallTimeout, errCallTimeout)
	defer cancel()
	const op = "worker call log"
	var answer LogResponse
	err := w.x.do(ctx, w.calls, request{op: op, method: http.MethodPost, path: "/api/v1/worker/log", body: req}, &answer)
	if err == nil && len(answer.Chunks) != len(parts) {
		err = unreachable(op, fmt.Errorf("%d chunks were answered of %d", len(answer.Chunks), len(parts)))
	}
	if err != nil {
		return parts, err
	}
	if lost := w.spool.answered(parts, answer.Chunks); lost > 0 {
		w.log.Warn("log lines came too late for the server; they are dropped", "lines", lost)
	}
	return parts, nil
}

// drainLogs waits for what the spool still has, for a while.
func (w *Worker) drainLogs() {
	limit := time.NewTimer(logLeaveWait)
	defer limit.Stop()
	for {
		logs, _, changed := w.spool.state()
		if logs == 0 {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			w.log.Warn("stopped with logs that could not be shipped; their last lines are lost", "attempts", logs)
			return
		}
	}
}
