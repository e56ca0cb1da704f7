package agent

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/taktsched/takt"
)

// Output takes what commands write.
type Output interface {
	// Stream opens the sink of one stream ("stdout" or "stderr") of an attempt. It is written to by one
	// goroutine, byte for byte as the command wrote, and closed when the stream has ended, before the
	// handler returns. A Write that waits makes the command wait; an error drops what follows.
	Stream(t *takt.Task, stream string) io.WriteCloser
}

const (
	maxLogLine = 4 << 10 // of output in the agent's own log; the rest of a line is cut
	maxTail    = 512     // of the last line in an error's text
)

// lines hands on what is written line by line, cut to max bytes.
type lines struct {
	max  int
	line func(text []byte, cut bool)
	buf  []byte
	cut  bool
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if room := l.max - len(l.buf); len(part) > room {
			part, l.cut = part[:room], true
		}
		l.buf = append(l.buf, part...)
		if end < 0 {
			break
		}
		l.flush()
		p = p[end+1:]
	}
	return n, nil
}

func (l *lines) flush() {
	l.line(l.buf, l.cut)
	l.buf, l.cut = l.buf[:0], false
}

func (l *lines) Close() error {
	if len(l.buf) > 0 || l.cut {
		l.flush()
	}
	return nil
}

// logOutput writes output to the task's logger, line by line.
type logOutput struct{}

func (logOutput) Stream(t *takt.Task, stream string) io.WriteCloser {
	return &lines{max: maxLogLine, line: func(text []byte, cut bool) {
		attrs := []any{slog.String("stream", stream), slog.String("text", printable(text))}
		if cut {
			attrs = append(attrs, slog.Bool("cut", true))
		}
		t.Log().Info("output", attrs...)
	}}
}

// tail keeps the last line that is not empty.
type tail struct {
	lines
	last string
}

func newTail() *tail {
	t := &tail{}
	t.lines = lines{max: maxTail, line: func(text []byte, _ bool) {
		if line := strings.TrimSpace(printable(text)); line != "" {
			t.last = line
		}
	}}
	return t
}

// printable is text without control characters and broken UTF-8.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\t' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, string(text))
}
