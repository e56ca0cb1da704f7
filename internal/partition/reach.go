package partition

import (
	"context"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/store"
)

// reachWait bounds one question whether another server answers.
const reachWait = time.Second

// reach asks every live server each P/2 whether it answers at its address, and marks who has not for P. The marks
// travel in this server's row.
func (m *members) reach(ctx context.Context) {
	ask := m.n.cfg.Reach
	if ask == nil {
		return
	}
	for {
		timer := time.NewTimer(m.n.cfg.Lease.OwnerTTL/2 + m.n.cfg.Jitter())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		var wg sync.WaitGroup
		for _, row := range m.others() {
			wg.Go(func() {
				cctx, cancel := context.WithTimeout(ctx, min(reachWait, m.n.cfg.Lease.OwnerTTL/2))
				defer cancel()
				m.reached(row, ask(cctx, row), ctx.Err() != nil)
			})
		}
		wg.Wait()
	}
}

// others lists the live servers that say where they can be reached.
func (m *members) others() []store.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []store.Server
	for _, p := range m.sorted() {
		if p.row.Incarnation != m.n.cfg.Incarnation && p.row.Address != "" && m.lives(p) {
			rows = append(rows, p.row)
		}
	}
	return rows
}

// reached takes in an answer or its failure.
func (m *members) reached(row store.Server, err error, stopped bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[row.Incarnation]
	if p == nil || stopped {
		return
	}
	now := m.n.mono()
	switch {
	case err == nil && p.mark:
		p.fails, p.mark = 0, false
		m.n.cfg.Logger.Info("another server can be reached again", "server", row.Name, "address", row.Address)
	case err == nil:
		p.fails = 0
	case p.fails == 0:
		p.fails = max(now, 1)
	case now-p.fails >= m.n.cfg.Lease.OwnerTTL && !p.mark:
		p.mark = true
		m.n.cfg.Logger.Warn("another server cannot be reached; when nobody else can either, it sits out", "server", row.Name, "address", row.Address, "err", err)
	default:
		return
	}
	m.putNow()
}
