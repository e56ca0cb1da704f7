package takt

import (
	"bytes"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	logFlushEach = 250 * time.Millisecond // how long a line may wait for others
	logFlushSize = 64 << 10               // bytes that do not wait
	logCallSize  = 256 << 10              // bytes of one log call
	logCallLines = 4000
	logPiece     = 16 << 10         // bytes of a line; a longer one is cut into pieces
	logLineCost  = 96               // what a line costs in memory beside its bytes
	logEndWait   = 3 * time.Second  // for room, and for the end of a log
	logLeaveWait = time.Second      // for the same while the worker stops: a person waits
	logPatience  = 2 * time.Second  // with calls that are not answered
	logKept      = 60 * time.Second // after the end; the server takes nothing later
)

// spool keeps the log lines of all attempts of a worker until the server has them. It has a lock of its own, so
// that a handler that writes much is in nobody's way. Both bounds count memory: of one attempt, and of all.
type spool struct {
	perAttempt, total int

	mu      sync.Mutex
	used    int
	logs    []*attemptLog // that have something to send, in turn
	failing bool          // calls have not been answered for a while: writers do not wait for room
	since   time.Time     // of the first of the calls that were not answered; zero: the newest one was
	off     bool          // the server does not know the call
	urgent  bool          // somebody waits for the end of a log
	wake    chan struct{} // 1-buffered
	room    chan struct{} // closed and made anew when lines left, or calls began to fail
}

func newSpool(perAttempt, total int) *spool {
	return &spool{perAttempt: perAttempt, total: total, wake: make(chan struct{}, 1), room: make(chan struct{})}
}

// attemptLog is what one attempt has written and the server does not have yet. Guarded by the spool's
// lock, but for its identity.
type attemptLog struct {
	s         *spool
	execution string
	shard     int
	token     int64

	lines   []LogLine // raw bytes are in Bytes until they are sent
	base    int64     // number of lines[0]
	used    int
	dropped Dropped // since the newest line: becomes a line of its own when there is room
	queued  bool    // in s.logs
	begun   bool    // something was written
	ended   bool    // nothing follows
	endedAt time.Time
	settled chan struct{} // closed when the server has all of it, or nothing more goes out
	gone    bool          // settled is closed
}

func (s *spool) open(as *Assignment) *attemptLog {
	return &attemptLog{s: s, execution: as.Execution, shard: as.Shard, token: as.Token, settled: make(chan struct{})}
}

// lineCost is what a line takes of the bounds.
func lineCost(l *LogLine) int { return len(l.Bytes) + logLineCost }

// add keeps a line, which it copies. While the server answers, a writer that is faster than the calls
// waits for room, for wait at most; else what does not fit is dropped and counted. false: the log has
// been ended.
func (l *attemptLog) add(stream string, text []byte, partial bool, wait time.Duration) (taken bool) {
	s := l.s
	line := LogLine{AtMs: time.Now().UnixMilli(), Stream: stream, Bytes: bytes.Clone(text), Partial: partial}
	var limit <-chan time.Time
	for {
		s.mu.Lock()
		if l.ended || l.gone {
			defer s.mu.Unlock()
			return !l.ended
		}
		l.begun = true
		switch fits := l.fits(lineCost(&line)); {
		case fits && !s.off:
			l.keep(line)
			s.mu.Unlock()
			return true
		case s.failing || s.off || wait <= 0:
			l.drop(&line)
			s.mu.Unlock()
			return true
		}
		room := s.room
		s.urgent = true
		s.poke()
		s.mu.Unlock()
		if limit == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			limit = t.C
		}
		select {
		case <-room:
		case <-limit:
			wait = 0
		}
	}
}

// fits tells whether the bounds leave room for a line, and for the mark of dropped ones before it.
func (l *attemptLog) fits(cost int) bool {
	if l.dropped.Lines > 0 {
		cost += logLineCost
	}
	return l.used+cost <= l.s.perAttempt && l.s.used+cost <= l.s.total
}

func (l *attemptLog) keep(line LogLine) {
	l.mark()
	l.push(line)
	if l.used >= logFlushSize && l.used-lineCost(&line) < logFlushSize {
		l.s.poke()
	}
}

// mark turns what was dropped into a line at its place.
func (l *attemptLog) mark() {
	if d := l.dropped; d.Lines > 0 {
		l.dropped = Dropped{}
		l.push(LogLine{AtMs: time.Now().UnixMilli(), Stream: "dropped", Dropped: &d})
	}
}

func (l *attemptLog) push(line LogLine) {
	l.lines = append(l.lines, line)
	l.used += lineCost(&line)
	l.s.used += lineCost(&line)
	l.queue()
}

func (l *attemptLog) drop(line *LogLine) {
	if !line.Partial {
		l.dropped.Lines++
	}
	l.dropped.Bytes += int64(len(line.Bytes))
	l.dropped.Lines = max(l.dropped.Lines, 1)
}

func (l *attemptLog) queue() {
	if !l.queued {
		l.queued = true
		l.s.logs = append(l.s.logs, l)
		if len(l.s.logs) == 1 {
			l.s.poke()
		}
	}
}

// end says that nothing follows. A log that was never begun is spoken of only if told. wait is how long
// it is worth to wait for it.
func (l *attemptLog) end(told bool) (wait time.Duration) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.ended || l.gone {
		return 0
	}
	l.ended, l.endedAt = true, time.Now()
	if s.off || !l.begun && !told {
		l.settle()
		return 0
	}
	l.mark() // beyond the bounds by one line
	l.queue()
	s.urgent = s.urgent || l.begun
	s.poke()
	switch {
	case !l.begun:
		return 0
	case s.failing:
		return logEndWait / 6
	}
	return logEndWait
}

// pending tells whether the server lacks some of the log.
func (l *attemptLog) pending() bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.begun && !l.gone
}

// settle ends the log: what is left is forgotten.
func (l *attemptLog) settle() {
	if l.gone {
		return
	}
	l.gone = true
	l.s.used -= l.used
	l.lines, l.used = nil, 0
	close(l.settled)
	l.s.roomy()
}

func (s *spool) poke() {
	select {
	case s.wake <- struct{}{}:
	default: // it will wake
	}
}

func (s *spool) roomy() {
	close(s.room)
	s.room = make(chan struct{})
}

// state tells how many logs have something to send, whether that should not wait for more, and what is
// closed when that changes.
func (s *spool) state() (logs int, due bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.logs), s.urgent || s.used >= logFlushSize, s.room
}

// sent is a chunk of a call and the log that it came from.
type sent struct {
	log   *attemptLog
	lines int
	last  bool // nothing of the log is behind it
}

// take makes a call of what waits, each log in turn; most bounds its chunks.
func (s *spool) take(most int) (req LogRequest, parts []sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urgent = false
	size, lines := 0, 0
	share := max(logCallSize/max(len(s.logs), 1), 4<<10)
	for _, l := range s.logs {
		if len(parts) == most || size >= logCallSize || lines >= logCallLines {
			break
		}
		chunk := LogChunk{Execution: l.execution, Shard: l.shard, Token: l.token, Offset: l.base}
		room := share
		for _, line := range l.lines {
			if len(chunk.Lines) > 0 && room < 0 || lines == logCallLines {
				break
			}
			room -= lineCost(&line)
			size += lineCost(&line)
			lines++
			chunk.Lines = append(chunk.Lines, wireLine(line))
		}
		all := len(chunk.Lines) == len(l.lines)
		chunk.Final = l.ended && all
		req.Chunks = append(req.Chunks, chunk)
		parts = append(parts, sent{log: l, lines: len(chunk.Lines), last: chunk.Final})
	}
	return req, parts
}

// wireLine is a line as it travels.
func wireLine(l LogLine) LogLine {
	if utf8.Valid(l.Bytes) && bytes.IndexByte(l.Bytes, 0) < 0 {
		l.Text, l.Bytes = string(l.Bytes), nil
	}
	return l
}

// answered takes in the fates of a call; lost says how many lines will never be kept.
func (s *spool) answered(parts []sent, fates []LogFate) (lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing, s.since = false, time.Time{}
	for i, p := range parts {
		l := p.log
		if l.gone {
			continue
		}
		switch f := fates[i]; f.Fate {
		case "taken":
			l.cut(int(min(max(f.Next-l.base, 0), int64(p.lines))))
			if p.last && len(l.lines) == 0 {
				l.settle()
			}
		case "gap":
			if f.Next < l.base { // a server that was restored from a backup: what it lacks is gone
				mark := LogLine{AtMs: time.Now().UnixMilli(), Stream: "dropped", Dropped: &Dropped{Lines: l.base - f.Next}}
				l.lines = append([]LogLine{mark}, l.lines...)
				l.used += lineCost(&mark)
				s.used += lineCost(&mark)
				l.base = f.Next
			} else {
				l.cut(int(min(f.Next-l.base, int64(len(l.lines)))))
			}
		default: // closed, unknown, or a word of a later version
			lost += len(l.lines)
			l.settle()
		}
	}
	s.turn(len(parts))
	s.roomy()
	return lost
}

// cut forgets the first n lines.
func (l *attemptLog) cut(n int) {
	freed := 0
	for i := range l.lines[:n] {
		freed += lineCost(&l.lines[i])
	}
	l.lines = append([]LogLine(nil), l.lines[n:]...)
	l.base += int64(n)
	l.used -= freed
	l.s.used -= freed
}

// turn puts the logs of a call behind the others and drops those with nothing left.
func (s *spool) turn(n int) {
	s.logs = append(s.logs[n:len(s.logs):len(s.logs)], s.logs[:n]...)
	kept := s.logs[:0]
	for _, l := range s.logs {
		if l.gone || len(l.lines) == 0 && !l.ended {
			l.queued = false
			continue
		}
		kept = append(kept, l)
	}
	clear(s.logs[len(kept):])
	s.logs = kept
}

// failed notes that a call was not answered. After a while nobody waits for room any more, and logs whose
// time is over are given up; lost says how many lines that are.
func (s *spool) failed() (lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
	s.failing = time.Since(s.since) >= logPatience
	for _, l := range s.logs {
		if l.ended && time.Since(l.endedAt) > logKept {
			lost += len(l.lines)
			l.settle()
		}
	}
	s.turn(0)
	s.roomy()
	return lost
}

// giveUp forgets the logs of a call that the server refuses, or all.
func (s *spool) giveUp(parts []sent, off bool) (lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = s.off || off
	for _, p := range parts {
		lost += len(p.log.lines)
		p.log.settle()
	}
	s.turn(0)
	s.roomy()
	return lost
}

// on lets a new server be asked again.
func (s *spool) on() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = false
}
