package partition

import (
	"slices"
	"time"
)

const (
	moveEvery   = time.Minute // a partition moves for balance at most so often (R8)
	movesAtOnce = 4           // partitions on their way from one server to others
	moveLasts   = 2 * time.Second
	sitsOutFor  = 30 * time.Second
)

// better tells whether another of the servers comes before this one for a partition.
func better(partition int, server string, servers []string) bool {
	return Rank(partition, server, servers) > 0
}

// balance gives up, a few at a time, the partitions for which another server comes first. A server that may hold
// nothing for the moment gives up everything.
func (n *Node) balance() {
	m := n.members
	if m == nil {
		return
	}
	if !m.may() {
		for _, s := range n.seats {
			s.give()
		}
		return
	}
	now, moving := n.mono(), 0
	servers := m.steady()
	var ready []*seat
	for _, s := range n.seats {
		switch t := s.current.Load(); {
		case s.moving(now):
			moving++
		case t != nil && s.restful(now) && better(s.partition, n.rankedAs(), servers):
			ready = append(ready, s)
		}
	}
	for _, s := range ready[:min(len(ready), max(0, movesAtOnce-moving))] {
		s.log.Info("another server comes first for this partition; handing it over", "servers", servers)
		s.moves.Store(int64(now))
		s.give()
	}
}

// moving tells that the partition was given up and nobody was seen to take it.
func (s *seat) moving(now time.Duration) bool {
	at := time.Duration(s.moves.Load())
	if at == 0 || now >= at+moveLasts {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held < at
}

// restful tells that the partition has not moved for balance for a while, away from here or to here.
func (s *seat) restful(now time.Duration) bool {
	at := time.Duration(s.moves.Load())
	return at == 0 || now >= at+moveEvery || s.n.cfg.Switches.NeverRests
}

// give asks the runner to hand the partition over.
func (s *seat) give() {
	if t := s.current.Load(); t != nil {
		select {
		case t.given <- struct{}{}:
		default:
		}
	}
}

// sitters are the servers that have to sit out: those that every other one marks as unreachable. Servers that sit out
// already neither judge nor are judged. When every server is one of them (two that cannot reach each other, or a
// network that carries nothing between any) nobody can tell whose fault it is, and somebody has to own: the first
// by name stays. It need not be the healthy one; but all servers, who read the same rows, agree on it, so it does not flap, and
// a server that is truly deaf is found out when there are three.
func sitters(servers []candidate) []string {
	var out []string
	for _, s := range servers {
		judges := 0
		all := true
		for _, o := range servers {
			if o.incarnation != s.incarnation {
				judges++
				all = all && slices.Contains(o.marks, s.incarnation)
			}
		}
		if judges > 0 && all {
			out = append(out, s.incarnation)
		}
	}
	if len(out) == len(servers) && len(out) > 0 {
		first := servers[0]
		for _, s := range servers {
			if s.name < first.name || s.name == first.name && s.incarnation < first.incarnation {
				first = s
			}
		}
		out = slices.DeleteFunc(out, func(i string) bool { return i == first.incarnation })
	}
	return out
}

// candidate is a live server with the marks that it sets.
type candidate struct {
	incarnation, name string
	marks             []string
}

// judged begins and ends this server's sitting out. The judgement must have stood for P: of two servers that lose each
// other one is marked a moment before the other, and must not take that moment for the whole truth.
func (m *members) judged(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	self := m.n.cfg.Incarnation
	if m.gone || m.old != nil || m.out > now {
		return
	}
	was := m.out != 0
	var servers []candidate
	for _, p := range m.sorted() {
		mine := p.row.Incarnation == self
		if mine || m.lives(p) && !p.row.SitsOut && !m.below(p) {
			c := candidate{p.row.Incarnation, p.row.Name, p.row.Unreachable}
			servers = append(servers, c)
		}
	}
	out := slices.Contains(sitters(servers), self)
	switch {
	case !out:
		m.blame = 0
	case m.blame == 0:
		m.blame = max(now, 1)
	}
	switch {
	case out && !was && now-m.blame < m.n.cfg.Lease.OwnerTTL:
		return
	case out && !m.n.cfg.Switches.NeverSitsOut:
		m.out = now + sitsOutFor
		if !was {
			m.n.cfg.Logger.Error("no other server can reach this one: it releases what it owns and sits out", "for", sitsOutFor)
		}
	case was:
		m.out = 0
		m.n.cfg.Logger.Info("this server sits out no more")
	default:
		return
	}
	m.putNow()
}
