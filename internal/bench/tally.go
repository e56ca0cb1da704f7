package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const chunkSize = 4096

// record is what is known of one execution. Instants are of the run's clock.
type record struct {
	asked   time.Duration // when it was due to be asked for
	started atomic.Int64  // when the first handler began
	ended   atomic.Int64  // when the last shard's end was acknowledged
	runs    atomic.Int32  // of handlers
	acks    atomic.Int32  // of ends
}

// tally counts all executions of a run, by number.
type tally struct {
	clock  func() time.Duration
	shards int32

	chunks [maxExecutions/chunkSize + 1]atomic.Pointer[[chunkSize]record]
	asked  atomic.Int64 // numbers given
	over   atomic.Int64 // executions that have ended
	alien  atomic.Int64 // runs and ends of executions that were not asked for here
	names  sync.Map     // id of an execution that runs: its number

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when executions have ended
}

func newTally(shards int) *tally {
	began := time.Now()
	return &tally{clock: func() time.Duration { return time.Since(began) }, shards: int32(shards), changed: make(chan struct{})}
}

// at is the record of number n; nil when it was not given.
func (t *tally) at(n int64) *record {
	if n < 0 || n >= t.asked.Load() {
		return nil
	}
	return &t.chunks[n/chunkSize].Load()[n%chunkSize]
}

// ask gives the next number to an execution that was due at the instant given. One goroutine at a time.
func (t *tally) ask(due time.Duration) int64 {
	n := t.asked.Load()
	c := &t.chunks[n/chunkSize]
	if c.Load() == nil {
		c.Store(new([chunkSize]record))
	}
	c.Load()[n%chunkSize].asked = due
	t.asked.Store(n + 1)
	return n
}

// begun notes that a handler runs.
func (t *tally) begun(n int64, execution string) {
	r := t.at(n)
	if r == nil {
		t.alien.Add(1)
		return
	}
	r.runs.Add(1)
	if r.started.CompareAndSwap(0, max(int64(t.clock()), 1)) {
		t.names.Store(execution, n)
	}
}

// acknowledged notes that the server has taken in the ends of these executions' shards.
func (t *tally) acknowledged(executions []string) {
	now, over := max(int64(t.clock()), 1), int64(0)
	for _, id := range executions {
		n, known := t.names.Load(id)
		if !known {
			t.alien.Add(1)
			continue
		}
		if r := t.at(n.(int64)); r.acks.Add(1) == t.shards { //nolint:forcetypeassert // begun stores nothing else
			r.ended.Store(now)
			t.names.Delete(id)
			over++
		}
	}
	if over == 0 {
		return
	}
	t.over.Add(over)
	t.mu.Lock()
	close(t.changed)
	t.changed = make(chan struct{})
	t.mu.Unlock()
}

// waiting is how many executions have not ended, and what tells that it has changed.
func (t *tally) waiting() (int64, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked.Load() - t.over.Load(), t.changed
}

// Quantiles are of the times that all executions took.
type Quantiles struct {
	P50 float64 `json:"p50Ms"`
	P90 float64 `json:"p90Ms"`
	P99 float64 `json:"p99Ms"`
	Max float64 `json:"maxMs"`
}

// quantiles sorts what it is given.
func quantiles(all []time.Duration) Quantiles {
	if len(all) == 0 {
		return Quantiles{}
	}
	slices.Sort(all)
	at := func(q float64) float64 {
		return float64(all[int(q*float64(len(all)-1))].Microseconds()) / 1000
	}
	return Quantiles{P50: at(.5), P90: at(.9), P99: at(.99), Max: at(1)}
}

// times are from each execution's request to its first handler and to its acknowledged end.
func (t *tally) times() (start, end []time.Duration) {
	for n := range t.asked.Load() {
		r := t.at(n)
		if at := time.Duration(r.started.Load()); at > 0 {
			start = append(start, at-r.asked)
		}
		if at := time.Duration(r.ended.Load()); at > 0 {
			end = append(end, at-r.asked)
		}
	}
	return start, end
}
