package takt

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheckpointWaitsUntilItIsDurable(t *testing.T) {
	var took time.Duration
	var first, big error
	h := func(ctx context.Context, t *Task) error {
		began := time.Now()
		first = t.Checkpoint(ctx, map[string]int{"line": 7})
		took = time.Since(began)
		big = t.Checkpoint(ctx, strings.Repeat("x", 1<<16))
		return nil
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.spoil("report", fault{lag: time.Second}, fault{lag: 1500 * time.Millisecond})
		s.offer(1)
	})
	if first != nil || took < time.Second {
		t.Errorf("got %v after %v", first, took)
	}
	if !errors.Is(big, ErrTooLarge) {
		t.Errorf("a checkpoint beyond the limit: %v", big)
	}
	for _, it := range s.items() {
		if it.Kind == "checkpoint" && string(it.Checkpoint) != `{"line":7}` {
			t.Errorf("sent %.40s", it.Checkpoint)
		}
	}
}

func TestCheckpointWithoutAnAnswer(t *testing.T) {
	tests := []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		want error
		at   time.Duration
	}{
		{"the lease ends, whatever its context", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithCancel(context.WithoutCancel(ctx))
		}, ErrLeaseLost, 13500 * time.Millisecond},
		{"its own context ends", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 5*time.Second)
		}, context.DeadlineExceeded, 5 * time.Second},
		{"its context has ended", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, context.Canceled, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got error
			var at time.Duration
			var st *stage
			h := func(ctx context.Context, t *Task) error {
				ctx, cancel := tt.ctx(ctx)
				defer cancel()
				got = t.Checkpoint(ctx, 1)
				at = st.now()
				return nil
			}
			play(t, WorkerConfig{Grace: -1}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
				st = s
				s.spoil("report", gone()[:20]...)
				s.spoil("heartbeat", gone()[:20]...)
				s.offer(1)
				s.until(60 * time.Second)
			})
			if !errors.Is(got, tt.want) || at != tt.at {
				t.Errorf("got %v at %v, want %v at %v", got, at, tt.want, tt.at)
			}
		})
	}
}

func TestCheckpointMeetsACancel(t *testing.T) {
	var saved error
	h := func(ctx context.Context, t *Task) error {
		time.Sleep(2 * time.Second)
		saved = t.Checkpoint(context.WithoutCancel(ctx), 1)
		return saved
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.offer(1)
		s.until(time.Second)
		s.mu.Lock()
		s.cancels = []Cancel{{Execution: "e", Shard: 1, Token: 1, Reason: "cancel_requested"}}
		s.mu.Unlock()
		s.on("report", func(body []byte) (any, *Problem) {
			out := ReportResponse{Epoch: 7}
			for range parse[ReportRequest](t, body).Items {
				out.Items = append(out.Items, "stale") // the token was closed before it came
			}
			return out, nil
		})
		s.spoil("report", fault{lag: 1500 * time.Millisecond}) // from 2 s to 3.5 s; the beat at 3 s brings the cancel
		s.until(5 * time.Second)
	})
	if !errors.Is(saved, ErrCancelled) {
		t.Errorf("checkpoint: %v", saved)
	}
	if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "cancelled" {
		t.Errorf("ends %+v", ends)
	}
}

func TestReturnedPastTheDeadlineUnseen(t *testing.T) {
	var z sleeper
	act := make(chan struct{})
	h := func(context.Context, *Task) error { <-act; return nil }
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		act = make(chan struct{})
		s.offer(1)
		s.until(time.Second)
		z.ahead.Store(int64(20 * time.Second))
		close(act)
		synctest.Wait()
	}, z.prepare)
	if ends := s.ends(); len(ends) != 1 || ends[0].Outcome != "lease_lost" {
		t.Errorf("ends %+v", ends)
	}
}

func TestAssignmentPastItsDeadlineIsLeft(t *testing.T) {
	for _, at := range []time.Duration{13 * time.Second, 14 * time.Second, 16 * time.Second} {
		t.Run(at.String(), func(t *testing.T) {
			var runs atomic.Int32
			h := func(context.Context, *Task) error { runs.Add(1); return nil }
			play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
				s.until(at)
				s.offer(1) // the lease counts from the poll, which was sent at 0
				s.until(at + time.Second)
			})
			if ran := runs.Load() == 1; ran != (at < 13500*time.Millisecond) {
				t.Errorf("offered at %v: started is %v", at, ran)
			}
		})
	}
}

func TestAnswerThatMissesItemsIsNone(t *testing.T) {
	var saved error
	short := 2
	h := func(ctx context.Context, t *Task) error { saved = t.Checkpoint(ctx, 1); return saved }
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.on("report", func(body []byte) (any, *Problem) {
			out := ReportResponse{Epoch: 7}
			for range parse[ReportRequest](t, body).Items {
				out.Items = append(out.Items, "accepted")
			}
			if short--; short >= 0 {
				out.Items = out.Items[1:]
			}
			return out, nil
		})
		s.offer(1)
		s.until(2 * time.Second)
	})
	if ends := s.ends(); saved != nil || len(ends) != 1 || ends[0].Outcome != "success" {
		t.Errorf("checkpoint %v, ends %+v", saved, ends)
	}
}

func TestProgressIsToldOnce(t *testing.T) {
	h := func(_ context.Context, t *Task) error {
		if err := t.Progress(1, 2, "once"); err != nil {
			return err
		}
		time.Sleep(10 * time.Second)
		return nil
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.spoil("heartbeat", fault{deaf: true}, fault{mute: true})
		s.offer(1)
		s.until(11 * time.Second)
	})
	told := 0
	for _, b := range s.spoken("heartbeat") {
		for _, held := range parse[HeartbeatRequest](t, []byte(b.body)).Held {
			if held.Progress != nil {
				told++
			}
		}
	}
	if told != 2 { // once in the beat whose answer was lost, once again in the next
		t.Errorf("told %d times", told)
	}
}

func TestForgottenSessionIsLeftBehind(t *testing.T) {
	play(t, WorkerConfig{}, map[string]Handler{"h": func(context.Context, *Task) error { return nil }}, func(s *stage, w *Worker) {
		for range 3 {
			s.spoil("heartbeat", fault{problem: &Problem{Status: 404, Kind: "not_found", Code: "session_unknown"}})
			s.until(s.now() + 4*time.Second)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(s.spoken("open")) != 4 || len(w.sessions) != 1 {
			t.Errorf("%d opens, %d sessions kept", len(s.spoken("open")), len(w.sessions))
		}
	})
}

func TestTaskAfterItsHandlerReturned(t *testing.T) {
	var kept *Task
	h := func(_ context.Context, t *Task) error { kept = t; return nil }
	play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.offer(1)
		for _, err := range []error{kept.Progress(1, 1, ""), kept.Checkpoint(t.Context(), 1), kept.SetResult(1)} {
			if !errors.Is(err, errReturned) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestTaskTells(t *testing.T) {
	seen := make(chan *Task, 1)
	params := struct{ Month string }{}
	var next int
	h := func(_ context.Context, task *Task) error {
		seen <- task
		if err := task.BindParams(&params); err != nil {
			return err
		}
		found, err := task.LastCheckpoint(&next)
		if !found {
			return errors.New("no checkpoint")
		}
		return err
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.mu.Lock()
		s.work = []Assignment{{Namespace: "n", Job: "j", Revision: 3, Execution: "e", Handler: "h", PlannedAt: s.began, Shard: 2,
			ShardTotal: 8, Attempt: 4, Token: 41, Params: []byte(`{"month":"11"}`), Checkpoint: []byte(`100`), Key: "k"}}
		s.mu.Unlock()
		s.offer()
	})
	task := <-seen
	if task.Namespace() != "n" || task.Job() != "j" || task.Revision() != 3 || task.Execution() != "e" || !task.PlannedAt().Equal(s.began) ||
		task.Shard() != 2 || task.ShardTotal() != 8 || task.Attempt() != 4 || task.Token() != 41 || task.Key() != "k" {
		t.Errorf("the task tells something else: %+v", task.a.as)
	}
	if params.Month != "11" || next != 100 || s.ends()[0].Outcome != "success" {
		t.Errorf("params %+v, checkpoint %d, ends %+v", params, next, s.ends())
	}
}
