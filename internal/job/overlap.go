package job

// Overlap says what becomes of an execution that comes while another one of its job has not ended.
type Overlap struct {
	Policy    OverlapPolicy `json:"policy,omitempty"`    // "" means queue
	MaxQueued *int          `json:"maxQueued,omitempty"` // 0..MaxWaiting, of queue; nil: see Spec.MayWait
}

// OverlapPolicy is what happens to the one that comes.
type OverlapPolicy string

// The policies.
const (
	OverlapQueue   OverlapPolicy = "queue"   // it waits, when not too many do already
	OverlapSkip    OverlapPolicy = "skip"    // it is dropped
	OverlapReplace OverlapPolicy = "replace" // the other one is stopped, then it starts
	OverlapAllow   OverlapPolicy = "allow"   // it starts beside the other one
)

// MaxWaiting bounds Overlap.MaxQueued.
const MaxWaiting = 1000

// OverlapOf is the policy of a spec with its default.
func (s *Spec) OverlapOf() OverlapPolicy {
	if s.Overlap == nil || s.Overlap.Policy == "" {
		return OverlapQueue
	}
	return s.Overlap.Policy
}

// MayWait is how many executions may wait for the one that runs: 1 unless the document says so, but MaxWaiting of a job that runs
// after others. The ends of its parents come together after an outage and of a backfill, and one that is dropped has no schedule
// by which it could be run again.
func (s *Spec) MayWait() int {
	switch {
	case s.Overlap != nil && s.Overlap.MaxQueued != nil:
		return *s.Overlap.MaxQueued
	case len(s.After) > 0:
		return MaxWaiting
	default:
		return 1
	}
}

// Obeys tells whether executions that t makes obey the overlap policy: what a person asks for does only when the
// document declares one.
func (s *Spec) Obeys(t Trigger) bool {
	return s.OverlapOf() != OverlapAllow && (s.Overlap != nil || t != TriggerRequest)
}

// WaitsItsTurn tells that an execution waits for another one of its job to end.
func (e *Execution) WaitsItsTurn() bool {
	return e.State == ExecutionScheduled && (e.Reason == WaitOverlap || e.Reason == WaitReplace)
}

// Moves tells that an execution is on its way to the partition that its job has moved to.
func (e *Execution) Moves() bool { return e.State == ExecutionScheduled && e.Reason == WaitMove }

func (o *Overlap) validate() (all Faults) {
	if o == nil {
		return nil
	}
	known := true
	switch o.Policy {
	case "", OverlapQueue, OverlapSkip, OverlapReplace, OverlapAllow:
	default:
		known = false
		all = append(all, invalid("bad_overlap", "spec.overlap.policy", "%.64q is no policy", string(o.Policy)).
			WithHint("one of queue, skip, replace, allow"))
	}
	if o.MaxQueued == nil {
		return all
	}
	if n := *o.MaxQueued; n < 0 || n > MaxWaiting {
		all = append(all, invalid("out_of_range", "spec.overlap.maxQueued", "%d is out of range 0-%d", n, MaxWaiting).WithHint("write a number from 0 (none waits) to %d", MaxWaiting))
	} else if known && o.Policy != "" && o.Policy != OverlapQueue {
		all = append(all, invalid("bad_overlap", "spec.overlap.maxQueued", "nothing is queued under the policy %s", o.Policy).
			WithHint("leave maxQueued out, or choose the policy queue"))
	}
	return all
}
