package takt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutcomesOnTheWire(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name    string
		handler Handler
		outcome string
		class   string
		message string
		afterMs int64
		result  string
	}{
		{"nil", func(_ context.Context, t *Task) error { return t.SetResult(map[string]int{"n": 3}) }, "success", "", "", 0, `{"n":3}`},
		{"error", func(context.Context, *Task) error { return boom }, "error", "error", "boom", 0, ""},
		{"wrapped fatal", func(context.Context, *Task) error { return fmt.Errorf("load: %w", Fatal(boom)) }, "fatal", "fatal", "load: boom", 0, ""},
		{"snooze", func(context.Context, *Task) error { return Snooze(90 * time.Second) }, "snooze", "", "", 90_000, ""},
		{"snooze rounds up", func(context.Context, *Task) error { return Snooze(-1) }, "snooze", "", "", 1, ""},
		{"retry after", func(context.Context, *Task) error { return RetryAfter(time.Minute, boom) }, "error", "error", "boom", 60_000, ""},
		{"own class", func(context.Context, *Task) error { return &noHandlerError{"x"} }, "error", "no_handler", "no handler x", 0, ""},
		{"panic", func(context.Context, *Task) error { panic("ouch") }, "error", "panic", "panic: ouch", 0, ""},
		{"bad text", func(context.Context, *Task) error { return errors.New("a\x00b\xff") }, "error", "error", "a\uFFFDb\uFFFD", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, WorkerConfig{}, map[string]Handler{"h": tt.handler}, func(s *stage, _ *Worker) { s.offer(1) })
			ends := s.ends()
			if len(ends) != 1 {
				t.Fatalf("%d ends were reported, want 1", len(ends))
			}
			d := ends[0]
			if d.Outcome != tt.outcome || d.RetryAfterMs != tt.afterMs || string(d.Result) != tt.result || d.Seq != 2 {
				t.Errorf("reported %+v", d)
			}
			if (d.Error == nil) != (tt.class == "") || d.Error != nil && (d.Error.Class != tt.class || !strings.Contains(d.Error.Message, tt.message)) {
				t.Errorf("failure is %+v, want class %q with %q", d.Error, tt.class, tt.message)
			}
			if tt.name == "panic" && !strings.Contains(d.Error.Message, "worker_test.go") {
				t.Errorf("the stack does not tell where: %s", d.Error.Message)
			}
		})
	}
}

func TestAnswersLostAreAskedAgain(t *testing.T) {
	saved := errors.New("not called")
	h := func(ctx context.Context, t *Task) error {
		saved = t.Checkpoint(ctx, 42)
		return saved
	}
	for _, call := range []string{"poll", "report", "heartbeat", "close"} {
		for _, f := range []struct {
			name string
			fault
		}{
			{"request", fault{deaf: true}}, {"answer", fault{mute: true}}, {"late", fault{lag: 30 * time.Second}},
			{"no_owner", fault{problem: &Problem{Status: 503, Kind: "no_owner", Code: "no_owner"}}},
			{"lower epoch", fault{problem: &Problem{Status: 404, Kind: "not_found", Code: "session_unknown"}, epoch: 1}},
		} {
			t.Run(call+" "+f.name, func(t *testing.T) {
				var runs atomic.Int32
				handlers := map[string]Handler{"h": func(ctx context.Context, t *Task) error { runs.Add(1); return h(ctx, t) }}
				s := play(t, WorkerConfig{}, handlers, func(s *stage, w *Worker) {
					s.spoil(call, f.fault)
					s.offer(1)
					s.until(9 * time.Second)
				})
				ends := s.ends()
				if runs.Load() != 1 || saved != nil || len(ends) == 0 || ends[len(ends)-1].Outcome != "success" {
					t.Errorf("ran %d times, checkpoint %v, ends %+v", runs.Load(), saved, ends)
				}
				next := int64(1) // of the items as a server that ignores repeats meets them
				for _, it := range s.items() {
					if it.Seq > next {
						t.Errorf("item %d came before item %d", it.Seq, next)
					}
					next = max(next, it.Seq+1)
				}
			})
		}
	}
}

func TestOpenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.spoil("open", fault{deaf: true}, fault{mute: true}, fault{lag: time.Minute},
			fault{problem: &Problem{Status: 503, Kind: "no_owner", Code: "no_owner"}})
		client, closeNet := s.listen()
		defer closeNet()
		w, err := NewWorker(WorkerConfig{Server: "http://stage", Pool: "p", HTTPClient: client, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w.Handle("h", func(context.Context, *Task) error { return nil })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		s.until(30 * time.Second)
		opens := s.spoken("open")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(opens) != 4 || len(s.spoken("poll")) == 0 {
			t.Fatalf("%d opens arrived and %d polls", len(opens), len(s.spoken("poll")))
		}
		first, last := parse[OpenRequest](t, []byte(opens[0].body)), parse[OpenRequest](t, []byte(opens[3].body))
		if first.Incarnation != last.Incarnation || last.Call <= first.Call {
			t.Errorf("the session changed while it opened: %+v, %+v", first, last)
		}
	})
}

func TestDuplicateAssignmentStartsOnce(t *testing.T) {
	var runs atomic.Int32
	h := func(context.Context, *Task) error { runs.Add(1); return nil }
	s := play(t, WorkerConfig{Slots: 4}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.on("poll", func(body []byte) (any, *Problem) { // a server that never hears what is held
			req := parse[PollRequest](t, body)
			as := Assignment{Execution: "e", Handler: "h", Shard: 1, Attempt: 1, Token: 5, LeaseCall: req.Call}
			return PollResponse{Epoch: 7, Assignments: []Assignment{as, as}}, nil
		})
		s.offer() // ends the poll that hangs
		s.until(40 * time.Second)
	})
	if n := runs.Load(); n != 1 {
		t.Errorf("the same token was started %d times", n)
	}
	if polls := len(s.spoken("poll")); polls > 500 {
		t.Errorf("%d polls in 40 s: the same offer makes it ask without a pause", polls)
	}
}

// The start of a short handler is told together with its end; that of a long one goes out by itself, soon.
func TestStartsWaitForShortEnds(t *testing.T) {
	for _, c := range []struct {
		runs time.Duration
		want []string // kinds of items by report
	}{{0, []string{"started done"}}, {time.Millisecond, []string{"started done"}}, {time.Second, []string{"started", "done"}}} {
		h := func(context.Context, *Task) error { time.Sleep(c.runs); return nil }
		var began time.Duration
		s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
			began = s.now()
			s.offer(5)
			s.until(began + 2*time.Second)
		})
		var got []string
		for _, call := range s.spoken("report") {
			var kinds []string
			for _, it := range parse[ReportRequest](t, []byte(call.body)).Items {
				kinds = append(kinds, it.Kind)
			}
			got = append(got, strings.Join(kinds, " "))
			if len(got) == 1 && call.at-began > 10*time.Millisecond {
				t.Errorf("a handler of %v: the first report came after %v", c.runs, call.at-began)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("a handler of %v is reported as %q, want %q", c.runs, got, c.want)
		}
	}
}

func TestStaleCheckpoint(t *testing.T) {
	for _, fate := range []string{"stale", "unknown"} {
		t.Run(fate, func(t *testing.T) {
			var got, cause, later error
			h := func(ctx context.Context, t *Task) error {
				got = t.Checkpoint(ctx, "x")
				cause = context.Cause(ctx)
				later = t.Progress(1, 2, "")
				return nil
			}
			s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
				s.on("report", func(body []byte) (any, *Problem) {
					out := ReportResponse{Epoch: 7}
					for _, it := range parse[ReportRequest](t, body).Items {
						out.Items = append(out.Items, map[bool]string{true: fate, false: "accepted"}[it.Kind == "checkpoint"])
					}
					return out, nil
				})
				s.offer(1)
			})
			for _, err := range []error{got, cause, later} {
				if !errors.Is(err, ErrLeaseLost) {
					t.Errorf("got %v, want ErrLeaseLost", err)
				}
			}
			if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "lease_lost" {
				t.Errorf("ends %+v", ends)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	tests := []struct {
		reason  string
		ret     error
		cause   error
		outcome string
	}{
		{"cancel_requested", errors.New("stopped half way"), ErrCancelled, "cancelled"},
		{"attempt_timeout", context.Canceled, ErrTimedOut, "cancelled"},
		{"stalled", ErrTimedOut, ErrTimedOut, "cancelled"},
		{"cancel_requested", nil, ErrCancelled, "success"},
	}
	for _, tt := range tests {
		t.Run(tt.reason+" "+tt.outcome, func(t *testing.T) {
			var cause, saved error
			h := func(ctx context.Context, t *Task) error {
				<-ctx.Done()
				cause, saved = context.Cause(ctx), t.Checkpoint(context.WithoutCancel(ctx), 1)
				return tt.ret
			}
			s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
				s.offer(1)
				s.mu.Lock()
				s.cancels = []Cancel{{Execution: "e", Shard: 1, Token: 1, Reason: tt.reason, GraceMs: 10_000}}
				s.mu.Unlock()
				s.until(4 * time.Second)
			})
			if !errors.Is(cause, tt.cause) || !errors.Is(saved, tt.cause) {
				t.Errorf("cause %v, checkpoint %v, want %v", cause, saved, tt.cause)
			}
			if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != tt.outcome {
				t.Errorf("ends %+v", ends)
			}
		})
	}
}

func TestRefusedReport(t *testing.T) {
	refuse := &Problem{Status: 422, Kind: "invalid", Code: "bad_value"}
	var saved error
	h := func(ctx context.Context, t *Task) error {
		if t.Shard() == 1 {
			saved = t.Checkpoint(ctx, "poison")
			return t.SetResult("poison")
		}
		return t.Checkpoint(ctx, "good")
	}
	s := play(t, WorkerConfig{Slots: 2}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.on("report", func(body []byte) (any, *Problem) {
			out := ReportResponse{Epoch: 7}
			for _, it := range parse[ReportRequest](t, body).Items {
				if strings.Contains(string(it.Checkpoint)+string(it.Result), "poison") {
					return nil, refuse
				}
				out.Items = append(out.Items, "accepted")
			}
			return out, nil
		})
		s.offer(1, 2)
		s.until(time.Second)
	})
	if !errors.Is(saved, ErrInvalid) {
		t.Errorf("checkpoint: %v", saved)
	}
	last := map[int]ReportItem{}
	for _, it := range s.ends() {
		last[it.Shard] = it
	}
	if last[2].Outcome != "success" || last[1].Outcome != "error" || last[1].Error.Class != "report_refused" {
		t.Errorf("ends %+v", last)
	}
}

func TestRunRefuses(t *testing.T) {
	ok := func(context.Context, *Task) error { return nil }
	tests := []struct {
		name  string
		setup func(*Worker)
	}{
		{"no handler", func(*Worker) {}},
		{"bad name", func(w *Worker) { w.Handle("no spaces", ok) }},
		{"nil handler", func(w *Worker) { w.Handle("h", nil) }},
		{"twice the same", func(w *Worker) { w.Handle("h", ok); w.Handle("h", ok) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, err := NewWorker(WorkerConfig{Server: "localhost:1", Pool: "p"})
			if err != nil {
				t.Fatal(err)
			}
			tt.setup(w)
			if err := w.Run(t.Context()); err == nil {
				t.Error("Run took it")
			}
		})
	}
	t.Run("second run", func(t *testing.T) {
		play(t, WorkerConfig{}, map[string]Handler{"h": ok}, func(_ *stage, w *Worker) {
			if err := w.Run(context.Background()); err == nil {
				t.Error("a second Run was taken")
			}
		})
	})
	t.Run("wrong token", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			s.spoil("open", fault{problem: &Problem{Status: http.StatusUnauthorized, Kind: "unauthorized", Code: "bad_token"}})
			client, closeNet := s.listen()
			defer closeNet()
			w, err := NewWorker(WorkerConfig{Server: "stage", Pool: "p", HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			w.Handle("h", ok)
			if err := w.Run(t.Context()); !errors.Is(err, ErrUnauthorized) {
				t.Errorf("Run ended with %v", err)
			}
		})
	})
	for _, cfg := range []WorkerConfig{{Pool: "p"}, {Server: "localhost:1"}, {Server: "ftp://x", Pool: "p"}, {Server: "x", Pool: "p", Slots: -1}} {
		if _, err := NewWorker(cfg); err == nil {
			t.Errorf("NewWorker took %+v", cfg)
		}
	}
}
