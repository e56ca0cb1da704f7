package partition

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// lineage reads on which history the database is; "" when the store has none.
func (n *Node) lineage(ctx context.Context) (string, error) {
	l, is := n.cfg.Store.(store.Lineage)
	if !is || n.cfg.Switches.LineageIgnored {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Lease.OwnerTTL/2)
	defer cancel()
	name, err := l.Lineage(ctx)
	if err != nil {
		return "", fmt.Errorf("read the database's lineage: %w", err)
	}
	n.lived.Store(name, true)
	return name, nil
}

// keptTail tells that nothing was forgotten when the database left a history: a standby confirms every commit, and this
// server saw that history while it ran, so that what came is a failover and no restored backup.
func (n *Node) keptTail(left string) bool {
	_, lived := n.lived.Load(left)
	return n.cfg.NoLoss && lived
}

// watchLineage drops every engine when the history that the database is on changes under them (R7): their next
// ones find that it is not the one that their rows settled on.
func (n *Node) watchLineage(ctx context.Context, last string) (string, error) {
	now, err := n.lineage(ctx)
	if err != nil || now == last {
		return last, err
	}
	if last != "" { // what the database remembered of levels may be forgotten, too
		if err := n.readFloor(ctx); err != nil {
			return last, err
		}
	}
	for _, s := range n.seats {
		if t := s.current.Load(); t != nil && last != "" {
			t.lose(job.Errorf(job.KindFenced, "lineage_changed", "the database went over from lineage %s to %s", last, now))
		}
	}
	return now, nil
}

// hold waits, when the database is on another history than the one that the partition's row has settled on, until
// every lease has ended that a worker may hold without this history's knowing: the longest TTL + P (R7). What was settled
// is kept in the row, so that it does not matter which servers saw the change, or whether any was up; the row
// is written after the wait, so that a successor of who dies in it waits again in full. Meanwhile nobody is answered.
func (t *tenure) hold(ctx context.Context, loaded engine.Loaded) (bool, error) {
	lineage, err := t.seat.n.lineage(ctx) // after the acquiring: a change before that is seen
	if err != nil || lineage == "" || lineage == t.row.Lineage {
		return false, err
	}
	if sameHistory(t.row.Lineage, lineage) {
		return true, t.settleOn(ctx, lineage)
	}
	if t.seat.n.keptTail(t.row.Lineage) {
		t.log.Info("the database failed over and loses nothing by that: going on at once", "lineage", lineage, "settled", t.row.Lineage)
		return true, t.settleOn(ctx, lineage)
	}
	longest := t.cfg.Lease.TTL
	for _, s := range loaded.Sessions {
		longest = max(longest, s.TTL)
	}
	end := t.seat.n.mono() + longest + t.cfg.Lease.OwnerTTL
	t.log.Warn("the database failed over or was restored: nothing is granted or judged until leases that it does not know of have ended",
		"wait", longest+t.cfg.Lease.OwnerTTL, "lineage", lineage, "settled", t.row.Lineage)
	for now := t.seat.n.mono(); now < end; now = t.seat.n.mono() {
		t.stepped.Store(int64(now)) // waiting is this runner's work
		timer := time.NewTimer(min(end-now, t.cfg.Lease.OwnerTTL/4))
		select {
		case <-timer.C:
		case err := <-t.lost:
			timer.Stop()
			return false, err
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
	return true, t.settleOn(ctx, lineage)
}

// sameHistory tells that a row settled on the history by a shorter name: a store may learn to tell more histories apart, and
// appends what it tells them by. In an upgrade nobody waits for that.
func sameHistory(settled, now string) bool {
	return settled != "" && strings.HasPrefix(now, settled+"/")
}

// settleOn writes the history into the partition's row.
func (t *tenure) settleOn(ctx context.Context, lineage string) error {
	if !t.trust.holds() {
		return job.Errorf(job.KindFenced, "own_deadline", "the partition lease was not renewed in time")
	}
	if err := t.cfg.Store.SettlePartition(ctx, t.fence(), lineage); err != nil {
		return fmt.Errorf("settle on the database's lineage: %w", err)
	}
	t.row.Lineage = lineage
	return nil
}
