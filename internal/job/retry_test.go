package job_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		retry  job.Retry
		fault  int
		jitter float64
		want   time.Duration
	}{
		{"defaults, none", job.Retry{Jitter: job.JitterNone}, 1, 0.3, 10 * time.Second},
		{"doubles", job.Retry{Jitter: job.JitterNone}, 2, 0.3, 20 * time.Second},
		{"again", job.Retry{Jitter: job.JitterNone}, 3, 0.3, 40 * time.Second},
		{"capped", job.Retry{Jitter: job.JitterNone}, 7, 0.3, 10 * time.Minute},
		{"capped for ever", job.Retry{Jitter: job.JitterNone}, math.MaxInt, 0, 10 * time.Minute},
		{"full is the default", job.Retry{}, 1, 0.5, 5 * time.Second},
		{"full, named", job.Retry{Jitter: job.JitterFull}, 2, 0.25, 5 * time.Second},
		{"full, low end", job.Retry{}, 5, 0, 0},
		{"fixed", job.Retry{Initial: 30 * time.Second, Factor: 1, Jitter: job.JitterNone}, 50, 0, 30 * time.Second},
		{"initial above max", job.Retry{Initial: time.Hour, Max: time.Minute, Jitter: job.JitterNone}, 1, 0, time.Minute},
		{"fault 0 counts as 1", job.Retry{Jitter: job.JitterNone}, 0, 0, 10 * time.Second},
	} {
		if got := c.retry.Delay(c.fault, c.jitter); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Whatever the policy and the numbers say, a delay is in [0, max], grows with faults, and full jitter
// never exceeds none.
func TestRetryDelayProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := job.Retry{
			Initial: time.Duration(rapid.Int64Range(0, int64(job.MaxDuration)).Draw(t, "initial")),
			Factor:  rapid.OneOf(rapid.Float64Range(0, 10), rapid.Float64()).Draw(t, "factor"),
			Max:     time.Duration(rapid.Int64Range(0, int64(job.MaxDuration)).Draw(t, "max")),
		}
		fault := rapid.OneOf(rapid.IntRange(0, 30), rapid.Int()).Draw(t, "fault")
		jitter := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64()).Draw(t, "jitter")
		limit := r.Max
		if limit == 0 {
			limit = 10 * time.Minute
		}
		full := r.Delay(fault, jitter)
		r.Jitter = job.JitterNone
		none := r.Delay(fault, jitter)
		if full < 0 || full > none || none > limit {
			t.Fatalf("%+v, fault %d, jitter %v: full %v, none %v, limit %v", r, fault, jitter, full, none, limit)
		}
		if fault < math.MaxInt && r.Delay(fault+1, 0) < none {
			t.Fatalf("%+v: shrinks from fault %d to the next", r, fault)
		}
	})
}

func TestRetryAttempts(t *testing.T) {
	t.Parallel()
	for given, want := range map[int]int{0: 1, 1: 1, 7: 7, -3: 1} {
		if got := (job.Retry{MaxAttempts: given}).Attempts(); got != want {
			t.Errorf("%d: %d, want %d", given, got, want)
		}
	}
}

func TestLossDelay(t *testing.T) {
	t.Parallel()
	for loss, want := range map[int]time.Duration{-1: 0, 0: 0, 1: 0, 2: time.Second, 3: 2 * time.Second, 4: 4 * time.Second,
		7: 32 * time.Second, 8: time.Minute, 9: time.Minute, 64: time.Minute, math.MaxInt: time.Minute} {
		if got := job.LossDelay(loss); got != want {
			t.Errorf("loss %d: %v, want %v", loss, got, want)
		}
	}
}

// Jitter is in [0, 1), the same for the same attempt, and spreads shards and attempts evenly.
func TestJitter(t *testing.T) {
	t.Parallel()
	id := job.RequestedID(1_700_000_000_000, [10]byte{1})
	var slots [10]int
	const shards, attempts = 100, 50
	for shard := range shards {
		for attempt := range attempts {
			j := job.Jitter(id, shard, attempt)
			if j < 0 || j >= 1 || j != job.Jitter(id, shard, attempt) {
				t.Fatalf("shard %d attempt %d: %v", shard, attempt, j)
			}
			slots[int(j*10)]++
		}
	}
	for i, n := range slots {
		if n < shards*attempts/10*7/10 || n > shards*attempts/10*13/10 {
			t.Errorf("slot %d holds %d of %d", i, n, shards*attempts)
		}
	}
	if job.Jitter(id, 1, 2) == job.Jitter(id, 2, 1) || job.Jitter(id, 0, 1) == job.Jitter(job.ExecutionID{}, 0, 1) {
		t.Error("execution, shard and attempt must all count")
	}
}
