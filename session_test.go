package takt

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGracefulStop(t *testing.T) {
	done := make(chan string, 8)
	h := func(ctx context.Context, t *Task) error {
		switch t.Shard() {
		case 1: // ends within the grace
			time.Sleep(3 * time.Second)
			return nil
		case 2: // stops when told, and saves what it has
			<-ctx.Done()
			if err := t.Checkpoint(context.WithoutCancel(ctx), "half"); err != nil {
				done <- err.Error()
			}
			return ctx.Err()
		case 3: // fails for good at that moment
			<-ctx.Done()
			return Fatal(errors.New("broken"))
		default: // ignores its context for a while
			time.Sleep(25 * time.Second)
			return context.Cause(ctx)
		}
	}
	s := play(t, WorkerConfig{Slots: 4, Grace: 10 * time.Second}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.offer(1, 2, 3, 4)
		s.until(time.Second)
	})
	if len(done) > 0 {
		t.Error(<-done)
	}
	want := map[int]string{1: "success", 2: "released", 3: "fatal", 4: "released"}
	for _, it := range s.ends() {
		if want[it.Shard] != it.Outcome {
			t.Errorf("shard %d ended %s, want %s", it.Shard, it.Outcome, want[it.Shard])
		}
		delete(want, it.Shard)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
	s.mu.Lock()
	last := s.calls[len(s.calls)-1]
	s.mu.Unlock()
	if last.name != "close" {
		t.Errorf("the last call is %s, want close", last.name)
	}
	for _, p := range s.spoken("poll") {
		if p.at > time.Second {
			t.Errorf("a poll at %v, after the stop", p.at)
		}
	}
	if beats := s.spoken("heartbeat"); beats[len(beats)-1].at < 24*time.Second {
		t.Errorf("the beats ended at %v, before the last handler", beats[len(beats)-1].at)
	}
}

func TestSessionUnknown(t *testing.T) {
	for _, tt := range []struct {
		name  string
		epoch int64
		ends  time.Duration // when the handler's context ends
	}{
		{"said by the newest owner", 7, 3 * time.Second},
		{"said by nobody knows whom", 0, 13500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var at time.Duration
			var st *stage
			h := func(ctx context.Context, t *Task) error {
				if t.Token() != 1 {
					return nil
				}
				<-ctx.Done()
				at = st.now()
				time.Sleep(10 * time.Second) // keeps its slot
				return context.Cause(ctx)
			}
			s := play(t, WorkerConfig{Slots: 3}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
				st = s
				s.offer(1)
				s.spoil("heartbeat", fault{problem: &Problem{Status: 404, Kind: "not_found", Code: "session_unknown"}, epoch: tt.epoch})
				s.until(5 * time.Second)
				s.offer(2)
				s.until(40 * time.Second)
			})
			if at < tt.ends || at > tt.ends+time.Millisecond {
				t.Errorf("the handler was stopped at %v, want %v", at, tt.ends)
			}
			opens := s.spoken("open")
			if len(opens) != 2 {
				t.Fatalf("%d opens, want 2", len(opens))
			}
			if again := parse[OpenRequest](t, []byte(opens[1].body)); again.Incarnation == parse[OpenRequest](t, []byte(opens[0].body)).Incarnation || again.Call != 1 {
				t.Errorf("the second session is not a new one: %+v", again)
			}
			free := map[int]bool{}
			for _, p := range s.spoken("poll") {
				if p.at >= 3*time.Second && p.at < 12*time.Second {
					free[parse[PollRequest](t, []byte(p.body)).Free] = true
				}
			}
			if free[3] || !free[2] {
				t.Errorf("free slots told while the old handler runs: %v", free)
			}
			if ends := s.ends(); len(ends) != 2 || ends[0].Token != 2 || ends[0].Outcome != "success" ||
				ends[1].Token != 1 || ends[1].Outcome != "lease_lost" {
				t.Errorf("ends %+v", ends)
			}
		})
	}
}

func TestEndIsReportedAfterTheSessionWasForgotten(t *testing.T) {
	h := func(context.Context, *Task) error { return nil }
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.spoil("report", fault{deaf: true}, fault{deaf: true}, fault{deaf: true}, fault{deaf: true}, fault{deaf: true}, fault{deaf: true})
		s.spoil("heartbeat", fault{problem: &Problem{Status: 404, Kind: "not_found", Code: "session_unknown"}, epoch: 7})
		s.offer(1)
		s.until(time.Minute)
	})
	if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "success" || s.spoken("report")[0].at < 3*time.Second || len(s.spoken("open")) != 2 {
		t.Errorf("ends %+v, first report at %v, %d opens", ends, s.spoken("report")[0].at, len(s.spoken("open")))
	}
}

func TestUndeliveredReportsAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
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
		synctest.Wait()
		s.spoil("report", gone()...)
		s.offer(1)
		stop()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "2 reports") {
			t.Errorf("Run ended with %v", err)
		}
		if took := s.now(); took > 16*time.Second {
			t.Errorf("it took %v to give up", took)
		}
	})
}

func TestPollIsAskedAgain(t *testing.T) {
	t.Run("when a beat fails", func(t *testing.T) {
		s := play(t, WorkerConfig{}, map[string]Handler{"h": func(context.Context, *Task) error { return nil }}, func(s *stage, _ *Worker) {
			s.spoil("heartbeat", fault{mute: true})
			s.until(3500 * time.Millisecond)
		})
		if n := len(s.spoken("poll")); n < 2 {
			t.Errorf("%d polls", n)
		}
	})
	for what, spoilt := range map[string]fault{"is lost": {mute: true}, "hangs": {lag: 5 * time.Second}} {
		t.Run("when a report "+what+", so that the next server is asked", func(t *testing.T) {
			s := play(t, WorkerConfig{}, map[string]Handler{"h": func(context.Context, *Task) error { return nil }}, func(s *stage, _ *Worker) {
				s.spoil("report", spoilt)
				s.offer(1)
				s.until(2900 * time.Millisecond) // before the first beat
			})
			if n := len(s.spoken("poll")); n < 3 { // the first one brought the work, the second one hung
				t.Errorf("%d polls", n)
			}
		})
	}
	t.Run("when a beat shows another epoch", func(t *testing.T) {
		s := play(t, WorkerConfig{}, map[string]Handler{"h": func(context.Context, *Task) error { return nil }}, func(s *stage, _ *Worker) {
			s.mu.Lock()
			s.epoch = 9
			s.mu.Unlock()
			s.until(3500 * time.Millisecond)
		})
		polls := s.spoken("poll")
		if len(polls) != 2 || parse[PollRequest](t, []byte(polls[1].body)).Epoch != 9 {
			t.Errorf("polls %+v", polls)
		}
	})
	t.Run("when a handler ends that had lost its lease", func(t *testing.T) {
		var second time.Duration
		var st *stage
		h := func(ctx context.Context, t *Task) error {
			if t.Token() == 2 {
				second = st.now()
				return nil
			}
			<-ctx.Done()
			time.Sleep(7 * time.Second)
			return nil
		}
		play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
			st = s
			s.offer(1)
			s.on("heartbeat", func(body []byte) (any, *Problem) {
				return HeartbeatResponse{Epoch: 7, Call: parse[HeartbeatRequest](t, body).Call, Lost: []int64{1}}, nil
			})
			s.until(4 * time.Second)
			s.ended(1)                              // the judge let it run out
			s.spoil("heartbeat", fault{mute: true}) // makes the worker ask again, without room
			s.until(7 * time.Second)
			s.offer(2)
			s.until(18 * time.Second)
		})
		if second != 10*time.Second {
			t.Errorf("the next shard began at %v, want 10s", second)
		}
	})
	t.Run("when there is room again", func(t *testing.T) {
		h := func(context.Context, *Task) error { time.Sleep(time.Second); return nil }
		s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
			s.offer(1, 2, 3)
			s.until(4 * time.Second)
		})
		if n := len(s.ends()); n != 3 {
			t.Errorf("%d of 3 ended", n)
		}
	})
}

// A poll that a report overtook is answered at once, and empty: no slot may idle for it. A server that goes on like that is not
// asked in a tight loop either.
func TestEmptyPolls(t *testing.T) {
	s := play(t, WorkerConfig{}, map[string]Handler{"h": func(context.Context, *Task) error { return nil }}, func(s *stage, _ *Worker) {
		s.on("poll", func([]byte) (any, *Problem) { return PollResponse{Epoch: 7}, nil })
		s.until(22 * time.Second)
	})
	all := s.spoken("poll")[1:] // the first hung for its 20 s
	if len(all) < 3 || all[1].at != all[0].at {
		t.Fatalf("polls %+v: the second must come at once behind the first", all)
	}
	for i, p := range all[2:] {
		if pause, least := p.at-all[i+1].at, min(5*time.Millisecond<<i, pollPause); pause < least || pause > 2*least {
			t.Errorf("poll %d came %v behind the one before, want %v to %v", i+3, pause, least, 2*least)
		}
	}
	if len(all) < 10 || len(all) > 24 {
		t.Errorf("%d polls in 2 s", len(all))
	}
}

func TestProgressGoesOut(t *testing.T) {
	h := func(_ context.Context, t *Task) error {
		for i := range int64(5) {
			if err := t.Progress(i, 5, "going"); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
		return nil
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.offer(1)
		s.until(10 * time.Second)
	})
	beats := s.spoken("heartbeat")
	if last := parse[HeartbeatRequest](t, []byte(beats[len(beats)-1].body)); len(last.Held) > 0 {
		t.Errorf("a beat names what has ended: %+v", last)
	}
	beat := parse[HeartbeatRequest](t, []byte(beats[0].body))
	if len(beat.Held) != 1 || beat.Held[0].Progress == nil || beat.Held[0].Progress.Done < 2 {
		t.Errorf("first beat %+v", beat)
	}
	var last *Progress
	for _, it := range s.items() {
		if it.Kind == "progress" {
			last = it.Progress
		}
	}
	if last == nil || last.Done != 4 {
		t.Errorf("last progress before the end: %+v", last)
	}
}
