package partition

// ranked gives every live server, by incarnation, the name under which it takes its place in the order of Rank: its own.
// A second live one of a name (two servers that were told the same, a server that was started anew while its former life is
// not yet known to be over) has its incarnation in it: both share the work, and never come first for the same
// partition. All servers agree, for they read the same rows. mu is held.
func (m *members) ranked() map[string]string {
	self := &m.n.cfg
	names, taken := map[string]string{}, map[string]bool{}
	add := func(incarnation, name string) {
		if taken[name] {
			name += "\x00" + incarnation
		}
		names[incarnation], taken[name] = name, true
	}
	added := false
	for _, p := range m.sorted() {
		if !added && p.row.Incarnation >= self.Incarnation {
			add(self.Incarnation, self.Server)
			added = true
		}
		if p.row.Incarnation != self.Incarnation && m.lives(p) {
			add(p.row.Incarnation, p.row.Name)
		}
	}
	if !added {
		add(self.Incarnation, self.Server)
	}
	return names
}

// interim tells that the place of a server in the order may not be the one that it will have: it has it for another one of its name, and
// one of the two has not beaten since the other came, or beats no more. So it is with a former life that still counts as live. Nothing is
// moved for such a place, for it would move back when it may. as is what ranked gave; mu is held.
func (m *members) interim(p *peer, as map[string]string) bool {
	if as[p.row.Incarnation] == p.row.Name {
		return false
	}
	for _, o := range m.peers {
		if o != p && o.row.Name == p.row.Name && m.lives(o) && (m.overdue(o) || o.since <= p.first || p.since <= o.first) {
			return true
		}
	}
	return false
}

// warnOfTwins tells of live servers with this one's name. The former life of a restarted server is none: it does not beat.
func (m *members) warnOfTwins() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.sorted() {
		if p.row.Incarnation == m.n.cfg.Incarnation || p.row.Name != m.n.cfg.Server || p.twin || p.row.SitsOut || p.moved < steadyAfter {
			continue
		}
		p.twin = true
		m.n.cfg.Logger.Error("another live server has this server's name; both go on, but a partition may move when one of them ends, and logs and lists cannot tell them apart: give each a name of its own (--server-name)",
			"name", p.row.Name, "address", p.row.Address, "incarnation", p.row.Incarnation)
	}
}

// rankedAs is the name under which this server is ranked.
func (n *Node) rankedAs() string {
	if n.members == nil {
		return n.cfg.Server
	}
	n.members.mu.Lock()
	defer n.members.mu.Unlock()
	return n.members.ranked()[n.cfg.Incarnation]
}
