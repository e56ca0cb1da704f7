package agent

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const maxTail = 512 // bytes of the last line that go into an error's text

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
