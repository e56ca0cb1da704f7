package partition

import "github.com/taktsched/takt/internal/job"

// betweenOwners is for how many partition leases (P) a partition may be between two owners before it counts as one that nobody can own: a
// judge watches a dead server for one of them, and a judge that dies meanwhile costs another.
const betweenOwners = 3

// Ready is nil when calls can be served: this server neither stops nor sits out, and every partition is answered for, owned here with a
// loaded engine, or (when this is not the sole server) held by another one that is alive. Once that was so, a partition that goes from one
// owner to the next does not count, or the death of one server would take all others out of a load balancer; one that nobody could own for
// three times Lease.OwnerTTL does, and so does one whose engine failed here. The error has KindUnavailable.
func (n *Node) Ready() error {
	if n.members != nil && !n.members.may() {
		return n.members.why()
	}
	if !n.running.Load() {
		return job.Errorf(job.KindUnavailable, "not_ready", "the server is not running")
	}
	left := n.unsettled()
	whole := n.whole.Load()
	recent := n.members != nil && whole != 0 && int64(n.mono())-whole < int64(betweenOwners*n.cfg.Lease.OwnerTTL)
	for _, s := range left {
		if why := s.why(); why != nil || !recent {
			return job.Errorf(job.KindUnavailable, "not_ready", "partition %d has no owner that is ready", s.partition).WithCause(why)
		}
	}
	return nil
}

// unsettled are the seats whose partition nobody answers for. It takes note when there are none.
func (n *Node) unsettled() (left []*seat) {
	for _, s := range n.seats {
		if !s.settled() {
			left = append(left, s)
		}
	}
	if len(left) == 0 {
		n.whole.Store(max(int64(n.mono()), 1))
	}
	return left
}
