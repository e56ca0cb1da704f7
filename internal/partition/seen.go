package partition

import (
	"time"

	"github.com/taktsched/takt/internal/store"
)

// Member is a server as this one sees it.
type Member struct {
	store.Server
	Still time.Duration // since its beat was first seen as it is
	Lives bool
}

// Members lists the servers that have a row, by incarnation, this one included; none where there is one server alone.
func (n *Node) Members() []Member {
	if n.members == nil {
		return nil
	}
	m, now := n.members, n.mono()
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Member
	for _, p := range m.sorted() {
		all = append(all, Member{Server: p.row, Still: max(0, now-p.since), Lives: m.lives(p)})
	}
	return all
}
