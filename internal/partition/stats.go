package partition

import (
	"slices"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// timesKept bounds the commit durations from which CommitP99 is taken.
const timesKept = 1000

// tally is what a seat counts over all its tenures. Written by the runner, read by Stats.
type tally struct {
	mu    sync.Mutex
	stats Stats
	times []time.Duration // ring of the newest commits
	next  int
	open  job.Instant // all that was due before it has been decided; 0: not known yet
}

// stepped counts a step.
func (y *tally) stepped(res engine.Result, events int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.stats.Steps++
	y.stats.Events += int64(events)
	for _, f := range res.Batch.Facts {
		y.fact(f)
	}
	for _, f := range res.Trace {
		y.fact(f)
	}
}

// fact derives the engine's counters from what it says, because an engine's own end with it.
func (y *tally) fact(f engine.Fact) {
	c := &y.stats.Counters
	switch f.Kind {
	case engine.FactRejected:
		if f.Note != kindOf(engine.Heartbeat{}) { // the items of reports count
			c.Stale++
		}
	case engine.FactExecutionCreated:
		y.stats.Executions.Created++
	case engine.FactExecutionState:
		y.stats.Executions.ended(f.To)
	case engine.FactWorkerClock:
		c.WorkerClocks++
	case engine.FactClockStepped:
		c.ClockSteps++
	case engine.FactLeaseGranted:
		c.Granted++
	case engine.FactLeaseRenewed:
		c.Renewed++
	case engine.FactLeaseExpired:
		c.Expired++
	case engine.FactShardState:
		if f.Reason == job.ReasonUndelivered {
			c.Undelivered++
		}
	case engine.FactTimedOut:
		c.TimedOut++
	case engine.FactUnexplained:
		c.Unexplained += f.Count
	}
}

// committed counts a commit and how long it took.
func (y *tally) committed(d time.Duration, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err != nil {
		y.stats.CommitErr++
		return
	}
	y.stats.Commits++
	if len(y.times) < timesKept {
		y.times = append(y.times, d)
		return
	}
	y.times[y.next] = d
	y.next = (y.next + 1) % timesKept
}

func (y *tally) engineMade() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.stats.Engines++
	y.open = 0
}

// planned notes the first instant that may not be decided.
func (y *tally) planned(open job.Instant) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.open = open
}

func (y *tally) eventSetAside() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.stats.Poisoned++
	y.stats.Counters.Poisoned++
}

// read gives the counters with the 99th percentile of the commit times, and how far planning is behind now.
func (y *tally) read(now job.Instant) Stats {
	y.mu.Lock()
	st := y.stats
	if y.open != 0 {
		st.PlanBehind = max(now.Sub(y.open), 0)
	}
	times := slices.Clone(y.times)
	y.mu.Unlock()
	if len(times) > 0 {
		slices.Sort(times)
		st.CommitP99 = times[(len(times)*99-1)/100]
	}
	return st
}

func (s *seat) stats() Stats {
	st := s.tally.read(job.InstantOf(s.n.Now()))
	st.Partition = s.partition
	if t := s.serving(); t != nil {
		st.Owned, st.Epoch, st.Seq = true, t.epoch, t.seq.Load()
	}
	return st
}
