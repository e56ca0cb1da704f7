package takt

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gone are faults for every beat of a test.
func gone() []fault { return slices.Repeat([]fault{{deaf: true}}, 200) }

// fenceTest is a story about one handler that works until its context ends.
type fenceTest struct {
	stopsIn time.Duration // what the handler needs to stop
	script  func(*stage, *Worker)
}

// witness is what the handler saw.
type witness struct {
	cause    error
	ended    time.Duration // when its context ended
	last     time.Duration // its last effect
	progress error         // what Progress said at its last effect
}

// run plays the story for token 1 and tells what the handler saw and the judge decided.
func (f fenceTest) run(t *testing.T, sw switches) (saw witness, judged time.Duration, s *stage) {
	t.Helper()
	var st *stage
	h := func(ctx context.Context, task *Task) error {
		<-ctx.Done()
		saw.cause, saw.ended = context.Cause(ctx), st.now()
		time.Sleep(f.stopsIn)
		saw.last, saw.progress = st.now(), task.Progress(1, 1, "")
		return ctx.Err()
	}
	s = play(t, WorkerConfig{Grace: -1}, map[string]Handler{"h": h}, func(s *stage, w *Worker) {
		st = s
		f.script(s, w)
	}, func(w *Worker) { w.switches = sw })
	return saw, s.judged[1], s
}

func TestSelfFencing(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name   string
		script func(*stage, *Worker)
		want   time.Duration // when the handler's context must end
	}{
		{"the first lease counts from the poll that it names", func(s *stage, _ *Worker) {
			s.spoil("heartbeat", gone()...)
			s.offer(1)
			s.until(30 * time.Second)
		}, 13500 * ms},
		{"the last beat that got through", func(s *stage, _ *Worker) {
			s.offer(1)
			s.until(6500 * ms) // beats at 3 s and 6 s
			s.spoil("heartbeat", gone()...)
			s.until(40 * time.Second)
		}, 19500 * ms},
		{"a slow way there and back counts from the start", func(s *stage, _ *Worker) {
			s.offer(1)
			s.spoil("heartbeat", fault{late: time.Second, lag: 900 * ms})
			s.spoil("heartbeat", gone()...)
			s.until(40 * time.Second)
		}, 16500 * ms},
		{"a beat whose answer is lost renews nothing here", func(s *stage, _ *Worker) {
			s.offer(1)
			s.spoil("heartbeat", slices.Repeat([]fault{{mute: true}}, 200)...)
			s.until(40 * time.Second)
		}, 13500 * ms},
		{"the server says lost", func(s *stage, _ *Worker) {
			s.offer(1)
			s.on("heartbeat", func(body []byte) (any, *Problem) {
				return HeartbeatResponse{Epoch: 7, Call: parse[HeartbeatRequest](s.t, body).Call, Lost: []int64{1}}, nil
			})
			s.until(5 * time.Second)
		}, 3000 * ms},
		{"a beat that does not name it renews nothing", func(s *stage, _ *Worker) {
			s.offer(1)
			s.on("heartbeat", func(body []byte) (any, *Problem) {
				return HeartbeatResponse{Epoch: 7, Call: parse[HeartbeatRequest](s.t, body).Call}, nil
			})
			s.until(30 * time.Second)
		}, 13500 * ms},
		{"an answer that names an old call does not move it", func(s *stage, _ *Worker) {
			s.offer(1)
			s.on("heartbeat", func([]byte) (any, *Problem) {
				return HeartbeatResponse{Epoch: 7, Call: 1, Renewed: []int64{1}}, nil
			})
			s.until(30 * time.Second)
		}, 13500 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			saw, _, s := fenceTest{script: tt.script}.run(t, switches{})
			if !errors.Is(saw.cause, ErrLeaseLost) || !errors.Is(saw.progress, ErrLeaseLost) {
				t.Errorf("cause %v, progress %v", saw.cause, saw.progress)
			}
			if saw.ended != tt.want {
				t.Errorf("the context ended at %v, want exactly %v", saw.ended, tt.want)
			}
			if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "lease_lost" || ends[0].Token != 1 {
				t.Errorf("ends %+v", ends)
			}
			for _, b := range s.spoken("heartbeat") {
				if b.at > tt.want && len(parse[HeartbeatRequest](t, []byte(b.body)).Held) > 0 {
					t.Errorf("the beat at %v still names it", b.at)
				}
			}
		})
	}
}

// sleeper is a worker whose machine is suspended for a while: its clock jumps, its timers do not.
type sleeper struct{ ahead atomic.Int64 }

func (z *sleeper) prepare(w *Worker) {
	began := time.Now()
	w.now = func() time.Duration { return time.Since(began) + time.Duration(z.ahead.Load()) }
}

func TestWokenPastTheDeadline(t *testing.T) {
	var z sleeper
	var saved, told, cause error
	act := make(chan struct{})
	h := func(ctx context.Context, t *Task) error {
		<-act // runs before any timer
		told = t.Progress(1, 2, "")
		saved = t.Checkpoint(context.WithoutCancel(ctx), 1)
		cause = context.Cause(ctx)
		return nil
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		act = make(chan struct{})
		s.offer(1)
		s.until(time.Second)
		z.ahead.Store(int64(20 * time.Second))
		close(act)
		synctest.Wait()
	}, z.prepare)
	for _, err := range []error{told, saved, cause} {
		if !errors.Is(err, ErrLeaseLost) {
			t.Errorf("got %v, want ErrLeaseLost", err)
		}
	}
	if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "lease_lost" {
		t.Errorf("ends %+v", ends)
	}
	for _, it := range s.items() {
		if it.Kind == "checkpoint" {
			t.Error("the checkpoint was sent")
		}
	}
}

func TestBeatAfterWakingNamesNothing(t *testing.T) {
	var z sleeper
	h := func(ctx context.Context, _ *Task) error { <-ctx.Done(); time.Sleep(time.Minute); return nil }
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.offer(1)
		s.until(3500 * time.Millisecond)
		z.ahead.Store(int64(20 * time.Second))
		s.until(30 * time.Second)
	}, z.prepare)
	for _, p := range s.spoken("poll") {
		if held := len(parse[PollRequest](t, []byte(p.body)).Held); p.at > 4*time.Second && held > 0 {
			t.Errorf("the poll at %v names %d", p.at, held)
		}
	}
	for _, b := range s.spoken("heartbeat") {
		held := len(parse[HeartbeatRequest](t, []byte(b.body)).Held)
		if (b.at < 4*time.Second) != (held == 1) {
			t.Errorf("the beat at %v names %d", b.at, held)
		}
	}
}

func TestAnswerAfterTheDeadlineRevivesNothing(t *testing.T) {
	var z sleeper
	saw := make(chan error, 1)
	h := func(ctx context.Context, _ *Task) error { <-ctx.Done(); saw <- context.Cause(ctx); return nil }
	play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.offer(1)
		s.until(2900 * time.Millisecond)
		s.spoil("heartbeat", fault{lag: time.Second}) // leaves at 3 s, is back at 4 s; meanwhile 12 s pass unseen
		s.until(3500 * time.Millisecond)
		z.ahead.Store(int64(12 * time.Second)) // 15.5 s: past 13.5 s, before 16.5 s
		s.until(4200 * time.Millisecond)
		select {
		case cause := <-saw:
			if !errors.Is(cause, ErrLeaseLost) {
				t.Errorf("cause %v", cause)
			}
		default:
			t.Error("the late answer revived the lease")
		}
	}, z.prepare)
}

func TestEndBeforeTheDeadlineIsReportedAfterIt(t *testing.T) {
	h := func(context.Context, *Task) error { return nil }
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.spoil("report", gone()[:15]...)
		s.spoil("heartbeat", gone()[:15]...)
		s.offer(1)
		s.until(60 * time.Second)
	})
	if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "success" || s.spoken("report")[0].at < 15*time.Second {
		t.Errorf("ends %+v", ends)
	}
}

// TestMutants removes one part of the holder's rules at a time and shows that a handler then works past
// the judge's deadline, or twice: nothing else in the worker makes up for the part.
func TestMutants(t *testing.T) {
	mutants := []struct {
		name string
		sw   switches
		bad  func(t *testing.T, sw switches) bool // the rule of the lease was broken
	}{
		{"margin", switches{noMargin: true}, func(t *testing.T, sw switches) bool {
			t.Helper()
			saw, judged, _ := fenceTest{stopsIn: time.Second, script: func(s *stage, _ *Worker) {
				s.spoil("heartbeat", gone()...)
				s.offer(1)
				s.until(30 * time.Second)
			}}.run(t, sw)
			return saw.last >= judged
		}},
		{"deadline from the named call, first lease", switches{deadlineFromReceipt: true}, func(t *testing.T, sw switches) bool {
			t.Helper()
			saw, judged, _ := fenceTest{script: func(s *stage, _ *Worker) {
				s.spoil("heartbeat", gone()[:5]...)
				s.until(2 * time.Second)
				s.spoil("heartbeat", gone()...)
				s.offer(1)
				s.until(30 * time.Second)
			}}.run(t, sw)
			return saw.last >= judged
		}},
		{"deadline from the named call, renewal", switches{deadlineFromReceipt: true}, func(t *testing.T, sw switches) bool {
			t.Helper()
			saw, judged, _ := fenceTest{script: func(s *stage, _ *Worker) {
				s.offer(1)
				s.spoil("heartbeat", fault{lag: 1900 * time.Millisecond})
				s.spoil("heartbeat", gone()...)
				s.until(40 * time.Second)
			}}.run(t, sw)
			return saw.last >= judged
		}},
		{"look at the own deadline", switches{timerOnly: true}, lookMutant},
		{"epochs in answers", switches{anyEpoch: true}, epochMutant},
		{"a token starts once", switches{startsTwice: true}, twiceMutant},
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if m.bad(t, switches{}) {
				t.Fatal("the rule is broken with all parts in place")
			}
			if !m.bad(t, m.sw) {
				t.Fatal("survived: nothing goes wrong without this part")
			}
			t.Logf("killed: without %q the rule of the lease is broken", m.name)
		})
	}
}

// lookMutant: the machine slept past the judge's deadline; does a write still leave?
func lookMutant(t *testing.T, sw switches) bool {
	t.Helper()
	var z sleeper
	act := make(chan struct{})
	h := func(ctx context.Context, t *Task) error { <-act; return t.Checkpoint(ctx, "late") }
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		act = make(chan struct{})
		s.offer(1)
		s.until(time.Second)
		z.ahead.Store(int64(20 * time.Second))
		close(act)
		synctest.Wait()
	}, z.prepare, func(w *Worker) { w.switches = sw })
	return slices.ContainsFunc(s.items(), func(it ReportItem) bool { return it.Kind == "checkpoint" })
}

// epochMutant: an owner that was replaced still renews; does the worker believe it?
func epochMutant(t *testing.T, sw switches) bool {
	t.Helper()
	saw, judged, _ := fenceTest{script: func(s *stage, _ *Worker) {
		s.offer(1)
		s.on("heartbeat", func(body []byte) (any, *Problem) {
			req := parse[HeartbeatRequest](t, body)
			s.mu.Lock()
			defer s.mu.Unlock()
			out := HeartbeatResponse{Epoch: 7, Call: req.Call, Renewed: []int64{1}}
			if s.now() < 5*time.Second { // the beat at 3 s reaches the new owner, later ones the old one
				s.epoch, out.Epoch = 9, 9
				s.judged[1] = s.now() + 15*time.Second
			}
			return out, nil
		})
		s.until(40 * time.Second)
	}}.run(t, sw)
	return saw.last >= judged
}

// twiceMutant: an assignment whose acknowledgement was lost is offered again; does it run twice?
func twiceMutant(t *testing.T, sw switches) bool {
	t.Helper()
	var runs atomic.Int32
	h := func(ctx context.Context, _ *Task) error { runs.Add(1); <-ctx.Done(); return nil }
	play(t, WorkerConfig{Slots: 2, Grace: -1}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.on("poll", func(body []byte) (any, *Problem) {
			as := Assignment{Execution: "e", Handler: "h", Attempt: 1, Token: 5, LeaseCall: parse[PollRequest](t, body).Call}
			return PollResponse{Epoch: 7, Assignments: []Assignment{as}}, nil
		})
		s.offer()
		s.until(21 * time.Second)
	}, func(w *Worker) { w.switches = sw })
	return runs.Load() > 1
}

// TestEndedTokenIsNeverBegunAgain: a database that forgot its tail offers a lease that has long ended here.
func TestEndedTokenIsNeverBegunAgain(t *testing.T) {
	t.Parallel()
	var old, fresh atomic.Int32
	h := func(_ context.Context, task *Task) error {
		if task.Token() == 6 {
			fresh.Add(1)
		} else {
			old.Add(1)
		}
		return nil
	}
	play(t, WorkerConfig{Slots: 2, Grace: -1}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.on("poll", func(body []byte) (any, *Problem) {
			as := Assignment{Execution: "e", Handler: "h", Attempt: 1, Token: 5, LeaseCall: parse[PollRequest](t, body).Call}
			if s.now() > 2*time.Minute {
				as.Token, as.Attempt = 6, 2
			}
			return PollResponse{Epoch: 7, Assignments: []Assignment{as}}, nil
		})
		s.offer()
		s.until(3 * time.Minute)
	})
	if old.Load() != 1 || fresh.Load() != 1 {
		t.Errorf("begun %d times under the old token and %d times under the next, want once each", old.Load(), fresh.Load())
	}
}
