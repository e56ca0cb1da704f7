package takt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ledger is a server's side of logs: lines by token, taken by their numbers.
type ledger struct {
	mu     sync.Mutex
	lines  map[int64][]LogLine
	final  map[int64]bool
	chunks int
	calls  []time.Duration
	s      *stage
}

func newLedger(s *stage) *ledger {
	l := &ledger{lines: map[int64][]LogLine{}, final: map[int64]bool{}, s: s}
	s.on("log", l.take)
	return l
}

func (l *ledger) take(body []byte) (any, *Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, l.s.now())
	var out LogResponse
	for _, c := range parse[LogRequest](l.s.t, body).Chunks {
		l.chunks++
		have := int64(len(l.lines[c.Token]))
		if c.Offset > have {
			out.Chunks = append(out.Chunks, LogFate{Fate: "gap", Next: have})
			continue
		}
		if l.final[c.Token] && c.Offset+int64(len(c.Lines)) > have {
			out.Chunks = append(out.Chunks, LogFate{Fate: "closed", Next: have})
			continue
		}
		if skip := have - c.Offset; skip < int64(len(c.Lines)) {
			l.lines[c.Token] = append(l.lines[c.Token], c.Lines[skip:]...)
		}
		l.final[c.Token] = l.final[c.Token] || c.Final
		out.Chunks = append(out.Chunks, LogFate{Fate: "taken", Next: int64(len(l.lines[c.Token]))})
	}
	return out, nil
}

// text is the log of a token, byte for byte; what was dropped is "[lines/bytes]".
func (l *ledger) text(token int64) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, line := range l.lines[token] {
		if line.Dropped != nil {
			fmt.Fprintf(&b, "[%d/%d]", line.Dropped.Lines, line.Dropped.Bytes)
			continue
		}
		b.WriteString(line.Text)
		b.Write(line.Bytes)
		if !line.Partial {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Whatever bytes a handler writes, in whatever pieces, they arrive as they are, before its end is
// reported, although answers are lost and calls come twice.
func TestLogsArriveByteForByteBeforeTheEnd(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&want, "%d", i)
		switch i % 1000 {
		case 1:
			want.WriteString("\x00\xff\xfe\x1b[31m\u202e\xed\xa0\x80😀")
		case 2:
			want.WriteString(strings.Repeat("é", 20_000)) // a line longer than a piece
		}
		if i < 19_999 {
			want.WriteByte('\n')
		}
	}
	handler := func(_ context.Context, task *Task) error {
		out := task.Output("stdout")
		for b := want.Bytes(); len(b) > 0; {
			n := min(len(b), 7777)
			if _, err := out.Write(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}
	var l *ledger
	s := play(t, WorkerConfig{}, map[string]Handler{"h": handler}, func(s *stage, _ *Worker) {
		l = newLedger(s)
		s.spoil("log", fault{}, fault{mute: true}, fault{deaf: true}, fault{late: 5 * time.Second}, fault{problem: &Problem{Status: 503, Kind: "unavailable"}})
		s.offer(1)
		s.until(40 * time.Second)
	})
	if got := l.text(1); got != want.String() {
		t.Fatalf("%d bytes arrived of %d, or others", len(got), want.Len())
	}
	ends := s.ends()
	if len(ends) != 1 || ends[0].Outcome != "success" || !l.final[1] {
		t.Fatalf("ends %+v, final %v", ends, l.final)
	}
}

func TestLogsAreDeliveredBeforeTheEndIsReported(t *testing.T) {
	t.Parallel()
	handler := func(_ context.Context, task *Task) error {
		task.Log().Info("hello\nworld", "n", 1)
		task.Log().With("a", "b").WithGroup("g").Warn("twice", "c", "d")
		task.Log().Debug("not shipped")
		fmt.Fprint(task.Output("stderr"), "no newline")
		return nil
	}
	var l *ledger
	s := play(t, WorkerConfig{}, map[string]Handler{"h": handler}, func(s *stage, _ *Worker) {
		l = newLedger(s)
		s.offer(1)
		s.until(time.Second)
	})
	if got, want := l.text(1), "level=INFO msg=\"hello\\nworld\" n=1\nlevel=WARN msg=twice a=b g.c=d\nno newline"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	if len(l.calls) != 1 || l.calls[0] > 10*time.Millisecond {
		t.Errorf("calls at %v: the end must not wait for more lines", l.calls)
	}
	if s.items()[1].LogPending {
		t.Error("the log is said to be pending and is not")
	}
	order := ""
	for _, c := range s.calls {
		if c.name == "log" || c.name == "report" && strings.Contains(c.body, `"done"`) {
			order += c.name + " "
		}
	}
	if order != "log report " {
		t.Errorf("order %q", order)
	}
}

// A dead log path holds a result for a few seconds at most, and says that lines are still to come.
func TestDeadLogPathHoldsNoResult(t *testing.T) {
	t.Parallel()
	handler := func(_ context.Context, task *Task) error {
		fmt.Fprintln(task.Output("stdout"), "late but not lost")
		return nil
	}
	var l *ledger
	s := play(t, WorkerConfig{}, map[string]Handler{"h": handler}, func(s *stage, _ *Worker) {
		l = newLedger(s)
		for range 6 {
			s.spoil("log", fault{late: 10 * time.Second})
		}
		s.offer(1)
		s.until(logEndWait + 100*time.Millisecond)
		if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "success" || !ends[0].LogPending {
			t.Errorf("after %v: ends %+v", s.now(), ends)
		}
		s.until(50 * time.Second)
	})
	if got := l.text(1); got != "late but not lost\n" || !l.final[1] {
		t.Errorf("log %q, final %v", got, l.final[1])
	}
	_ = s
}

// The spool is bounded per attempt and in all: the oldest lines are kept, what is dropped is counted at
// its place, and no handler waits for a server that does not answer.
func TestSpoolIsBounded(t *testing.T) {
	t.Parallel()
	const lines = 5000
	handler := func(_ context.Context, task *Task) error {
		time.Sleep(5 * time.Second) // until calls have failed for a while
		for i := range lines {
			fmt.Fprintf(task.Output("stdout"), "%04d\n", i)
		}
		return nil
	}
	var l *ledger
	var used int
	play(t, WorkerConfig{Slots: 4, LogSpool: 10_000, LogSpoolTotal: 25_000}, map[string]Handler{"h": handler, "first": func(_ context.Context, task *Task) error {
		fmt.Fprintln(task.Output("stdout"), "x")
		return nil
	}}, func(s *stage, w *Worker) {
		l = newLedger(s)
		for range 20 {
			s.spoil("log", fault{deaf: true})
		}
		s.mu.Lock()
		s.work = append(s.work, Assignment{Execution: "e", Handler: "first", Shard: 9, Attempt: 1, Token: 9, Key: "k"})
		s.mu.Unlock()
		s.offer(1, 2, 3)
		s.until(5*time.Second + time.Millisecond)
		w.spool.mu.Lock()
		used = w.spool.used
		w.spool.mu.Unlock()
		s.until(time.Minute)
	})
	if used > 25_000+4*logLineCost || used < 20_000 {
		t.Errorf("%d bytes are spooled", used)
	}
	for token := int64(1); token <= 3; token++ {
		text := l.text(token)
		kept := strings.Count(text, "\n")
		want := ""
		for i := range kept {
			want += fmt.Sprintf("%04d\n", i)
		}
		if text != want+fmt.Sprintf("[%d/%d]", lines-kept, 4*(lines-kept)) || kept > 10_000/logLineCost {
			t.Errorf("token %d: %d lines kept, ends with %.60q", token, kept, text[max(0, len(text)-60):])
		}
	}
}

// While the server answers, a handler that is faster than the calls waits: nothing is dropped.
func TestWriterWaitsForRoom(t *testing.T) {
	t.Parallel()
	var l *ledger
	play(t, WorkerConfig{LogSpool: 2000}, map[string]Handler{"h": func(_ context.Context, task *Task) error {
		for i := range 1000 {
			fmt.Fprintln(task.Output("stdout"), i)
		}
		return nil
	}}, func(s *stage, _ *Worker) {
		l = newLedger(s)
		s.offer(1)
		s.until(20 * time.Second)
	})
	if text := l.text(1); strings.Count(text, "\n") != 1000 || strings.Contains(text, "[") {
		t.Errorf("%d lines", strings.Count(text, "\n"))
	}
}

// After its lease is lost an attempt's log still goes out, with its end.
func TestLogsGoOutAfterTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	var l *ledger
	play(t, WorkerConfig{}, map[string]Handler{"h": func(ctx context.Context, task *Task) error {
		fmt.Fprintln(task.Output("stdout"), "before")
		<-ctx.Done()
		fmt.Fprintln(task.Output("stdout"), "after:", context.Cause(ctx))
		return ctx.Err()
	}, "quiet": func(ctx context.Context, _ *Task) error {
		<-ctx.Done()
		return ctx.Err()
	}}, func(s *stage, _ *Worker) {
		l = newLedger(s)
		s.offer(1)
		s.on("heartbeat", func(body []byte) (any, *Problem) {
			return HeartbeatResponse{Epoch: 7, Call: parse[HeartbeatRequest](t, body).Call, Lost: []int64{1}}, nil
		})
		s.until(10 * time.Second)
	})
	if got := l.text(1); got != "before\nafter: takt: lease lost\n" || !l.final[1] {
		t.Errorf("log %q, final %v", got, l.final[1])
	}
}

// A server that does not know the call, as one of an older version, costs a handler nothing.
func TestServerWithoutLogs(t *testing.T) {
	t.Parallel()
	s := play(t, WorkerConfig{}, map[string]Handler{"h": func(_ context.Context, task *Task) error {
		for range 3 {
			fmt.Fprintln(task.Output("stdout"), "x")
			time.Sleep(time.Second)
		}
		return nil
	}}, func(s *stage, _ *Worker) {
		s.on("log", func([]byte) (any, *Problem) {
			return nil, &Problem{Status: 404, Kind: "not_found", Code: "unknown_path"}
		})
		s.offer(1)
		s.until(3*time.Second + 10*time.Millisecond)
		s.offer(2)
		s.until(10 * time.Second)
	})
	if len(s.spoken("log")) != 1 || len(s.ends()) != 2 || s.ends()[0].LogPending {
		t.Errorf("%d calls, ends %+v", len(s.spoken("log")), s.ends())
	}
}

// A server that was restored from a backup wants lines that are gone: it is told what is missing.
func TestGapThatCannotBeFilled(t *testing.T) {
	t.Parallel()
	var l *ledger
	play(t, WorkerConfig{}, map[string]Handler{"h": func(_ context.Context, task *Task) error {
		fmt.Fprintln(task.Output("stdout"), "one")
		time.Sleep(time.Second)
		fmt.Fprintln(task.Output("stdout"), "two")
		return nil
	}}, func(s *stage, _ *Worker) {
		l = newLedger(s)
		s.offer(1)
		s.until(500 * time.Millisecond)
		l.mu.Lock()
		l.lines[1] = nil
		l.mu.Unlock()
		s.until(5 * time.Second)
	})
	if got := l.text(1); got != "[1/0]two\n" || !l.final[1] {
		t.Errorf("log %q, final %v", got, l.final[1])
	}
}

func TestOutputAfterTheEnd(t *testing.T) {
	t.Parallel()
	var out io.Writer
	play(t, WorkerConfig{Logger: slog.New(slog.DiscardHandler)}, map[string]Handler{"h": func(_ context.Context, task *Task) error {
		out = task.Output("log")
		if _, err := task.Output("nonsense").Write([]byte("x")); err == nil {
			t.Error("a stream of another name takes bytes")
		}
		return nil
	}}, func(s *stage, _ *Worker) {
		l := newLedger(s)
		s.offer(1)
		synctest.Wait()
		if _, err := io.WriteString(out, "late\n"); err == nil {
			t.Error("bytes after the handler's end are taken")
		}
		if l.chunks != 0 {
			t.Error("an empty log is spoken of")
		}
	})
}
