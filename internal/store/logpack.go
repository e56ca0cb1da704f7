package store

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/taktsched/takt/internal/job"
)

// Lines are stored as compressed runs (flate): per line the stream and flags, the time's distance from
// the line before, the length and the bytes. Adapters share the format and keep size beside the body.

var logStreams = []LogStream{LogStdout, LogStderr, LogTask, LogDropped}

const partialFlag = 0x10

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// PackLines makes a body of lines; size is what it takes unpacked.
func PackLines(lines []LogLine) (body []byte, size int, err error) {
	var raw []byte
	last := job.Instant(0)
	for i := range lines {
		l := &lines[i]
		kind := slices.Index(logStreams, l.Stream)
		if kind < 0 {
			return nil, 0, job.Errorf(job.KindRejected, "bad_stream", "%.32q is no stream", l.Stream)
		}
		if l.Partial {
			kind |= partialFlag
		}
		raw = append(raw, byte(kind))
		raw = binary.AppendVarint(raw, int64(l.At-last))
		last = l.At
		if l.Stream == LogDropped {
			raw = binary.AppendVarint(raw, l.DroppedLines)
			raw = binary.AppendVarint(raw, l.DroppedBytes)
		}
		raw = binary.AppendUvarint(raw, uint64(len(l.Bytes)))
		raw = append(raw, l.Bytes...)
	}
	var out bytes.Buffer
	w, _ := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	if _, err = w.Write(raw); err == nil {
		err = w.Close()
	}
	return out.Bytes(), len(raw), err
}

// UnpackLines reads what PackLines wrote; a body that unpacks to more than size is refused.
func UnpackLines(body []byte, size int) ([]LogLine, error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(body)), int64(size)+1))
	if err == nil && len(raw) != size {
		err = fmt.Errorf("%d bytes, expected %d", len(raw), size)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack log lines: %w", err)
	}
	var lines []LogLine
	r := bytes.NewReader(raw)
	last := job.Instant(0)
	for r.Len() > 0 {
		l, err := unpackLine(r, last)
		if err != nil {
			return nil, fmt.Errorf("unpack log lines: line %d: %w", len(lines), err)
		}
		last = l.At
		lines = append(lines, l)
	}
	return lines, nil
}

func unpackLine(r *bytes.Reader, last job.Instant) (l LogLine, err error) {
	kind, err := r.ReadByte()
	if err != nil {
		return l, err
	}
	l.Partial = kind&partialFlag != 0
	if kind &^= partialFlag; int(kind) >= len(logStreams) {
		return l, fmt.Errorf("stream %d", kind)
	}
	l.Stream = logStreams[kind]
	at, err := binary.ReadVarint(r)
	l.At = last + job.Instant(at)
	if err == nil && l.Stream == LogDropped {
		var e1, e2 error
		l.DroppedLines, e1 = binary.ReadVarint(r)
		l.DroppedBytes, e2 = binary.ReadVarint(r)
		err = errors.Join(e1, e2)
	}
	if err != nil {
		return l, err
	}
	n, err := binary.ReadUvarint(r)
	if err != nil || n > uint64(r.Len()) {
		return l, errors.Join(err, fmt.Errorf("%d bytes of %d", n, r.Len()))
	}
	l.Bytes = make([]byte, n)
	_, err = io.ReadFull(r, l.Bytes)
	return l, err
}
