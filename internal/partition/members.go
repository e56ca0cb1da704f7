package partition

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// forgetAfter is how many P a row stands still before it is removed. It has been dead since the first; the
// rest spares a server that hangs the way back as a stranger.
const forgetAfter = 10

// members is what a server knows of all servers on the database: it writes its own row, reads the others, and judges
// by itself who lives (R8). Nothing durable hangs on it: it only says who should try for a partition, and
// where its owner can be reached.
type members struct {
	n    *Node
	put  chan struct{} // asks for the own row to be written at once
	said chan struct{} // closed when the stop was announced, or that failed

	mu    sync.Mutex
	peers map[string]*peer // of every row that was seen, the own one too
	out   time.Duration    // mono until which this server sits out; 0: it does not
	blame time.Duration    // mono since when all others have marked this server; 0: they have not
	gone  bool             // it stops, and takes nothing any more
	old   error            // it is below the floor, and takes nothing any more; nil: as far as it knows it is not
	cut   func()           // ends the writing of the own row that is under way
}

// peer is a server as it was seen.
type peer struct {
	row   store.Server
	first time.Duration // end of the first read that showed it
	since time.Duration // end of the first read that showed this beat
	still time.Duration // how long the beat had stood still by the newest read
	moved int           // reads that showed a beat that had moved

	twin  bool          // it was told of that it has this server's name
	old   bool          // it was told of that it is below the floor
	fails time.Duration // mono of the first of the failures in a row to reach it; 0: none
	mark  bool          // it could not be reached for P
}

func newMembers(n *Node) *members {
	return &members{n: n, put: make(chan struct{}, 1), said: make(chan struct{}), peers: map[string]*peer{}}
}

// steadyAfter is how many reads must have shown that a server beats before anything is given up for it.
const steadyAfter = 2

// see takes in a read that lasted from asked to got, as a watch does with partition rows.
func (m *members) see(rows []store.Server, asked, got time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[string]bool{}
	for _, row := range rows {
		there[row.Incarnation] = true
		p := m.peers[row.Incarnation]
		switch {
		case p == nil:
			p = &peer{first: got, since: got}
			m.peers[row.Incarnation] = p
		case p.row.Beat != row.Beat:
			p.since = got
			p.moved++
		}
		p.row, p.still = row, max(0, asked-p.since)
		if p.still >= m.n.cfg.Lease.OwnerTTL {
			p.moved = 0
		}
	}
	for incarnation := range m.peers {
		if !there[incarnation] {
			delete(m.peers, incarnation)
		}
	}
}

// lives tells whether a server beats.
func (m *members) lives(p *peer) bool { return p.still < m.n.cfg.Lease.OwnerTTL }

// overdueAfter is how many Lease.Renew the beat of a living server may stand still before it looks like one that has died.
const overdueAfter = 2

// overdue tells that a server, whether it counts as live or not, looks like one that has died.
func (m *members) overdue(p *peer) bool {
	return !m.lives(p) || p.still >= overdueAfter*m.n.cfg.Lease.Renew
}

// sorted lists the peers by incarnation, so that nothing depends on the order of a map. mu is held.
func (m *members) sorted() []*peer {
	all := make([]*peer, 0, len(m.peers))
	for _, p := range m.peers {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *peer) int { return cmp.Compare(a.row.Incarnation, b.row.Incarnation) })
	return all
}

// live names the servers that may take partitions: those that beat and do not sit out. This one is
// among them by its own word, whatever its row says.
func (m *members) live() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	as := m.ranked()
	if m.holds() {
		names = append(names, as[m.n.cfg.Incarnation])
	}
	for _, p := range m.sorted() {
		if p.row.Incarnation != m.n.cfg.Incarnation && m.lives(p) && !p.row.SitsOut && !m.below(p) {
			names = append(names, as[p.row.Incarnation])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// steady names the servers for which a partition may be given up: seen beating more than once, reachable
// from here, not sitting out, in the place that they keep. The own name is always among them.
func (m *members) steady() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	as := m.ranked()
	names := []string{as[m.n.cfg.Incarnation]}
	for _, p := range m.sorted() {
		if p.row.Incarnation != m.n.cfg.Incarnation && !m.overdue(p) && !p.row.SitsOut && !m.below(p) && !p.mark && p.moved >= steadyAfter && !m.interim(p, as) {
			names = append(names, as[p.row.Incarnation])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// find gives the row of an incarnation.
func (m *members) find(incarnation string) (store.Server, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[incarnation]
	if p == nil {
		return store.Server{}, false
	}
	return p.row, true
}

// may tells whether this server may hold partitions at the moment.
func (m *members) may() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holds()
}

// holds is may. mu is held.
func (m *members) holds() bool { return !m.gone && m.out == 0 && m.old == nil }

// why is what keeps this server from holding partitions.
func (m *members) why() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.old != nil {
		return job.Errorf(job.KindUnavailable, "not_ready", "this server is too old for this database").WithCause(m.old)
	}
	return job.Errorf(job.KindUnavailable, "not_ready", "this server stops, or sits out because no other can reach it")
}

// own is the row of this server as it is to be written.
func (m *members) own() store.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	row := m.n.cfg.Self
	row.Incarnation, row.Name = m.n.cfg.Incarnation, m.n.cfg.Server
	row.SitsOut = !m.holds()
	row.Unreachable = nil
	for _, p := range m.sorted() {
		if p.mark && m.lives(p) {
			row.Unreachable = append(row.Unreachable, p.row.Incarnation)
		}
	}
	return row
}

// putNow asks for the own row to be written at once.
func (m *members) putNow() {
	select {
	case m.put <- struct{}{}:
	default:
	}
}

// beat writes the own row each Lease.Renew, on a goroutine of its own, until ctx ends. A server whose row was removed
// because it hung comes back with the next one.
func (m *members) beat(ctx context.Context) {
	l, failing := &m.n.cfg.Lease, false
	said := sync.OnceFunc(func() { close(m.said) })
	for {
		last, err := m.write(ctx)
		if last {
			said()
		}
		if err != nil && ctx.Err() == nil && !failing {
			m.n.cfg.Logger.Warn("this server's row could not be written; others will take it for dead until it can, trying again at each renewal", "err", err)
		}
		failing = err != nil
		timer := time.NewTimer(l.Renew + m.n.cfg.Jitter())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-m.put:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// write writes the own row as it is now; last tells that it announced the stop.
func (m *members) write(ctx context.Context) (last bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.n.cfg.Lease.OwnerTTL/2)
	defer cancel()
	m.mu.Lock()
	m.cut, last = cancel, m.gone
	m.mu.Unlock()
	_, err = m.n.cfg.Store.PutServer(ctx, m.own())
	return last, err
}

// look reads all rows and judges them.
func (m *members) look(ctx context.Context) error {
	asked := m.n.mono()
	rows, err := m.n.cfg.Store.Servers(ctx)
	if err != nil {
		return err
	}
	m.see(rows, asked, m.n.mono())
	m.n.raiseFloor(ctx, rows)
	m.warnOfTwins()
	m.warnOfOld()
	m.forget(ctx)
	return nil
}

// forget removes the rows of the dead.
func (m *members) forget(ctx context.Context) {
	var dead []store.Server
	m.mu.Lock()
	for _, p := range m.sorted() {
		if p.row.Incarnation != m.n.cfg.Incarnation && p.still >= forgetAfter*m.n.cfg.Lease.OwnerTTL {
			dead = append(dead, p.row)
		}
	}
	m.mu.Unlock()
	for _, row := range dead {
		if err := m.n.cfg.Store.RemoveServer(ctx, row.Incarnation, row.Beat); err != nil {
			m.n.cfg.Logger.Warn("the row of a dead server could not be removed; trying again at the next look", "server", row.Name, "err", err)
			return
		}
		m.n.cfg.Logger.Info("the row of a server that has not beaten for long was removed", "server", row.Name, "incarnation", row.Incarnation)
	}
}

// leaveWait bounds what a stopping server says about itself: the rest of the stop must fit into five seconds.
const leaveWait = 500 * time.Millisecond

// announce says that this server stops, before it releases anything: whoever sees a released partition
// then knows, too, that it need not wait for this server's rank.
func (m *members) announce() {
	m.mu.Lock()
	m.gone = true
	if m.cut != nil {
		m.cut()
	}
	m.mu.Unlock()
	m.putNow()
	timer := time.NewTimer(leaveWait)
	defer timer.Stop()
	select {
	case <-m.said:
	case <-timer.C:
		m.n.cfg.Logger.Warn("the stop could not be announced in time; others wait a little longer before they take what is released")
	}
}

// leave removes the own row, when everything is released.
func (m *members) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWait)
	defer cancel()
	if err := m.n.cfg.Store.RemoveServer(ctx, m.n.cfg.Incarnation, 0); err != nil {
		m.n.cfg.Logger.Warn("this server's row could not be removed; others remove it when it has stood still for long", "err", err)
	}
}
