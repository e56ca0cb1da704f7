package takt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// TestChaos spoils calls of every kind at random and checks, at every effect of every handler, the rule
// that all else rests on: the holder stops the margin before the judge.
func TestChaos(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func chaos(t *testing.T, r *rand.Rand) {
	t.Helper()
	var st *stage
	var starts [30]atomic.Int32
	var effects atomic.Int32
	lengths := make([]time.Duration, len(starts))
	for i := range lengths {
		lengths[i] = time.Duration(1 + r.Int64N(int64(40*time.Second)))
	}
	h := func(ctx context.Context, task *Task) error {
		token := task.Token()
		starts[token].Add(1)
		for end := st.now() + lengths[token]; st.now() < end; time.Sleep(777 * time.Millisecond) {
			if err := task.Progress(int64(st.now()), 0, ""); err != nil {
				return err
			}
			effects.Add(1)
			st.mu.Lock()
			judged := st.judged[token]
			st.mu.Unlock()
			if at := st.now(); at >= judged-1500*time.Millisecond {
				t.Errorf("token %d works at %v, the judge ends its lease at %v", token, at, judged)
			}
			if token%3 == 0 {
				if err := task.Checkpoint(ctx, token); err != nil {
					return err
				}
			}
		}
		return nil
	}
	s := play(t, WorkerConfig{Slots: 5}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		st = s
		for i := range 100 {
			name := []string{"poll", "report", "heartbeat"}[r.IntN(3)]
			s.spoil(name, randomFault(r))
			if i%10 == 0 {
				for token := i/10*3 + 1; token < min(i/10*3+4, len(starts)); token++ {
					s.offer(int64(token))
				}
			}
			s.until(s.now() + time.Duration(1+r.Int64N(int64(2*time.Second))))
		}
		s.mu.Lock()
		clear(s.faults)
		s.mu.Unlock()
		s.until(s.now() + 3*time.Minute)
	})
	ended := map[int64]int64{}
	for _, it := range s.items() {
		if done := ended[it.Token]; done > 0 && it.Seq > done {
			t.Errorf("item %d of token %d follows its end", it.Seq, it.Token)
		}
		if it.Kind == "done" {
			ended[it.Token] = it.Seq
		}
	}
	for token := range starts {
		n := starts[token].Load()
		if n > 1 || n == 1 && ended[int64(token)] == 0 {
			t.Errorf("token %d was started %d times and its end reported as item %d", token, n, ended[int64(token)])
		}
	}
	if effects.Load() < 50 || len(ended) < 10 {
		t.Errorf("only %d effects and %d ends: the story is too tame or too wild", effects.Load(), len(ended))
	}
}

func randomFault(r *rand.Rand) fault {
	d := time.Duration(r.Int64N(int64(5 * time.Second)))
	switch r.IntN(6) {
	case 0:
		return fault{deaf: true}
	case 1:
		return fault{mute: true}
	case 2:
		return fault{late: d}
	case 3:
		return fault{lag: d}
	case 4:
		return fault{problem: &Problem{Status: 503, Kind: "no_owner", Code: "no_owner"}}
	default:
		return fault{}
	}
}
