package partition

import "github.com/taktsched/takt/internal/job"

// Executions counts what became of executions. An execution that is rerun ends again.
type Executions struct {
	Created            int64
	Succeeded          int64
	PartiallySucceeded int64
	Failed             int64
	TimedOut           int64
	Cancelled          int64
}

// ended counts an end; other states are none.
func (e *Executions) ended(state string) {
	switch job.ExecutionState(state) {
	case job.ExecutionSucceeded:
		e.Succeeded++
	case job.ExecutionPartiallySucceeded:
		e.PartiallySucceeded++
	case job.ExecutionFailed:
		e.Failed++
	case job.ExecutionTimedOut:
		e.TimedOut++
	case job.ExecutionCancelled:
		e.Cancelled++
	}
}

// Totals adds up what was counted since the process started, over all partitions, also those that others own now: unlike
// the sum of Stats it never falls. Partition, Owned, Epoch, Seq, CommitP99 and PlanBehind say nothing here.
func (n *Node) Totals() Stats {
	var sum Stats
	for _, s := range n.seats {
		st := s.tally.read(0)
		sum.Add(&st)
	}
	return sum
}

// Add adds the counters of o.
func (s *Stats) Add(o *Stats) {
	s.Steps += o.Steps
	s.Events += o.Events
	s.Commits += o.Commits
	s.CommitErr += o.CommitErr
	s.Engines += o.Engines
	s.Poisoned += o.Poisoned

	x, y := &s.Executions, &o.Executions
	x.Created += y.Created
	x.Succeeded += y.Succeeded
	x.PartiallySucceeded += y.PartiallySucceeded
	x.Failed += y.Failed
	x.TimedOut += y.TimedOut
	x.Cancelled += y.Cancelled

	c, d := &s.Counters, &o.Counters
	c.Stale += d.Stale
	c.Granted += d.Granted
	c.Renewed += d.Renewed
	c.Expired += d.Expired
	c.Undelivered += d.Undelivered
	c.TimedOut += d.TimedOut
	c.Poisoned += d.Poisoned
	c.ClockSteps += d.ClockSteps
	c.WorkerClocks += d.WorkerClocks
	c.Unexplained += d.Unexplained
}
