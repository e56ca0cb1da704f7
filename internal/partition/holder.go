package partition

import (
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Holder is who answers for a partition.
type Holder struct {
	Server store.Server // its row: where it can be reached, and its key. Of a local one what Config.Self says
	Epoch  job.Epoch
	Local  bool // here: Call answers
}

// Owner tells who answers for a partition, as far as this server has seen: its newest look at the rows is at most a Look
// old, or the database is away. False when nobody is known who lives: the callers' answer is no_owner.
// A Holder may have lost the partition since; it then answers no_owner itself.
func (n *Node) Owner(partition int) (Holder, bool) {
	if partition < 0 || partition >= len(n.seats) {
		return Holder{}, false
	}
	s := n.seats[partition]
	if t := s.serving(); t != nil {
		self := n.cfg.Self
		self.Incarnation, self.Name = n.cfg.Incarnation, n.cfg.Server
		return Holder{Server: self, Epoch: t.epoch, Local: true}, true
	}
	if n.members == nil {
		return Holder{}, false
	}
	row, held := s.heldElsewhere()
	if !held {
		return Holder{}, false
	}
	server, known := n.members.find(row.Owner)
	return Holder{Server: server, Epoch: row.Epoch}, known
}

// Coming tells of a partition that has no Owner whether one is about to answer: here, because its engine is being loaded, or
// anywhere, because it changes hands. What is known must be fresh for that, and this server one that may own: who is cut off
// from the database, stops or sits out keeps no caller from asking another server.
func (n *Node) Coming(partition int) (here, anywhere bool) {
	if partition < 0 || partition >= len(n.seats) || n.members == nil || !n.running.Load() {
		return false, false
	}
	s := n.seats[partition]
	here = s.loading.Load()
	looked := time.Duration(n.looked.Load())
	fresh := looked != 0 && n.mono()-looked <= 2*n.cfg.Lease.Look
	_, elsewhere := s.heldElsewhere()
	return here, here || fresh && !elsewhere && s.serving() == nil && n.members.may()
}

// Look asks for a look at the partition rows at once: for callers who were told that a Holder holds no more.
func (n *Node) Look() { n.lookNow() }
