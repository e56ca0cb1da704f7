package takt

import (
	"context"
	"testing"
	"time"
)

// What a handler tells a process about its lease must never be later than what the handler is held to.
func TestLeaseLeft(t *testing.T) {
	const ms = time.Millisecond
	var early, beaten, over, margin time.Duration
	var st *stage
	h := func(ctx context.Context, task *Task) error {
		early, margin = task.LeaseLeft()+st.now(), task.LeaseMargin()
		time.Sleep(7*time.Second - st.now()) // beats at 3 s and 6 s
		beaten = task.LeaseLeft() + st.now()
		<-ctx.Done()
		over = task.LeaseLeft()
		return ctx.Err()
	}
	play(t, WorkerConfig{Grace: -1}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		st = s
		s.offer(1)
		s.until(6500 * ms)
		s.spoil("heartbeat", gone()...)
		s.until(40 * time.Second)
	})
	if early != 13500*ms || beaten != 19500*ms || over != 0 || margin != 1500*ms {
		t.Errorf("ends at %v, then %v; %v left after the end; margin %v", early, beaten, over, margin)
	}
}
