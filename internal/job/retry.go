package job

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"
)

// JitterFull and JitterNone are the values of Retry.Jitter; "" means JitterFull.
const (
	JitterFull = "full"
	JitterNone = "none"
)

const (
	retryInitial = 10 * time.Second
	retryFactor  = 2.0
	retryMax     = 10 * time.Minute
	lossMax      = time.Minute
)

// Attempts is MaxAttempts with its default: how many attempts may end by the handler's fault before the
// shard fails. At least 1.
func (r Retry) Attempts() int { return max(r.MaxAttempts, 1) }

// Delay is the pause after the fault-th attempt (1, 2 …) that ended by the handler's fault:
// d = min(max, initial × factor^(fault−1)); with full jitter jitter × d, else d. jitter is in [0, 1), see
// Jitter. The result lies in [0, max] for every fault and every jitter, also ones out of their range.
func (r Retry) Delay(fault int, jitter float64) time.Duration {
	initial, factor, limit := r.Initial, r.Factor, r.Max
	if initial <= 0 {
		initial = retryInitial
	}
	if !(factor >= 1) { // also NaN
		factor = retryFactor
	}
	if limit <= 0 {
		limit = retryMax
	}
	d := limit
	if f := float64(initial) * math.Pow(factor, float64(max(fault, 1)-1)); f < float64(limit) {
		d = time.Duration(f)
	}
	if r.Jitter == JitterNone {
		return d
	}
	if !(jitter > 0) {
		return 0
	}
	return min(time.Duration(min(jitter, 1)*float64(d)), d) // float64 may round d up
}

// LossDelay is the pause after the loss-th infrastructure loss of a shard (1, 2 …): none after the first,
// then 1 s, 2 s, 4 s and so on, at most a minute. A first loss is the lost worker's fault; when they
// repeat, the shard itself may be what kills workers.
func LossDelay(loss int) time.Duration {
	switch {
	case loss <= 1:
		return 0
	case loss >= 8: // 2^6 s is beyond the limit
		return lossMax
	}
	return min(time.Second<<(loss-2), lossMax)
}

// Jitter is a number in [0, 1) that looks random and is a function of the attempt: Step draws no random
// bits, and a replayed step waits as long as the first one.
func Jitter(execution ExecutionID, shard, attempt int) float64 {
	var in [32]byte
	copy(in[:16], execution[:])
	binary.BigEndian.PutUint64(in[16:], uint64(shard))
	binary.BigEndian.PutUint64(in[24:], uint64(attempt))
	sum := sha256.Sum256(in[:])
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
