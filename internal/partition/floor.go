package partition

import (
	"context"
	"errors"
	"log/slog"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// LevelOfAll is the newest level (engine.Level) that may be written: every server on the database has stated it in its row, and
// the database remembers that, so that no older server is let in behind it (the floor).
func (n *Node) LevelOfAll() int { return min(n.cfg.Self.Level, int(n.floor.Load())) }

// behind is by how many levels what may be written is behind what this server's engines know.
func (n *Node) behind() int { return max(0, engine.Level-n.LevelOfAll()) }

// readFloor asks for the floor as it is, and raises it at once where no other server can be.
func (n *Node) readFloor(ctx context.Context) error {
	floor, err := n.cfg.Store.RaiseFloor(ctx, 0)
	if err != nil {
		return err
	}
	n.floor.Store(int64(floor))
	var rows []store.Server
	if n.members != nil {
		if rows, err = n.cfg.Store.Servers(ctx); err != nil {
			return err
		}
	}
	n.raiseFloor(ctx, rows)
	return nil
}

// raiseFloor raises the floor to what the rows of all servers state. A row counts until it is removed: a server that hangs may
// come back. Nothing newer is written before the database has it; that it could not be told only means to go on as before.
func (n *Node) raiseFloor(ctx context.Context, rows []store.Server) {
	level := n.cfg.Self.Level
	for i := range rows {
		if rows[i].Incarnation != n.cfg.Incarnation {
			level = min(level, rows[i].Level)
		}
	}
	if level <= int(n.floor.Load()) {
		return
	}
	floor, err := n.cfg.Store.RaiseFloor(ctx, level)
	if err != nil {
		n.trouble(n.cfg.Logger, slog.LevelWarn, "the database could not be told which level all servers know; what came with it is not written yet, trying again at the next look", err, "level", level)
		return
	}
	n.floor.Store(int64(floor))
	n.cfg.Logger.Info("every server knows what this level brought; servers of earlier versions are let in no more", "level", floor)
}

// below tells that a server is too old to take partitions.
func (m *members) below(p *peer) bool {
	floor := int(m.n.floor.Load())
	return floor > 0 && p.row.Level < floor
}

// warnOfOld tells of live servers below the floor: they take calls, and take nothing else. mu is not held.
func (m *members) warnOfOld() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.sorted() {
		if p.row.Incarnation == m.n.cfg.Incarnation || p.old || p.moved < steadyAfter || !m.below(p) {
			continue
		}
		p.old = true
		m.n.cfg.Logger.Error("another live server is too old for what newer ones have written; it gets no partition: end it, and start the newer version there",
			"server", p.row.Name, "address", p.row.Address, "build", p.row.Build, "level", p.row.Level, "floor", m.n.floor.Load())
	}
}

// tooOld takes in that the database refused this server; false: err says something else. From then on it holds nothing.
func (n *Node) tooOld(err error) bool {
	e, is := errors.AsType[*job.Error](err)
	if !is || e.Code != "server_too_old" || n.members == nil {
		return false
	}
	m := n.members
	m.mu.Lock()
	first := m.old == nil
	m.old = e
	m.mu.Unlock()
	if first {
		n.cfg.Logger.Error("newer servers have written what this one does not know; it releases what it owns, and takes nothing any more: end it, and start the newer version", "err", e)
		m.putNow()
	}
	return true
}
