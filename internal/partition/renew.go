package partition

import (
	"context"
	"log/slog"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// renew keeps the partition lease while the runner lives. It has its own goroutine, and the store gives
// renewals a row and a connection of their own, so that they never wait for a commit.
func (t *tenure) renew(ctx context.Context) {
	l := &t.cfg.Lease
	wait, stuck := l.Renew, false
	for {
		timer := time.NewTimer(min(wait+t.cfg.Jitter(), max(t.trust.left(), 0)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if !t.trust.holds() { // the runner, which may hang, finds out by itself; its callers need not wait for that
			close(t.over)
			t.lose(ownDeadline())
			return
		}
		wait = l.Renew
		idle := t.seat.n.mono() - time.Duration(t.stepped.Load())
		if idle > l.OwnerTTL && !t.cfg.Switches.RenewWithoutStep {
			if !stuck {
				t.log.Error("the runner has not finished a step for a whole lease; its partition is not renewed until it does", "since", idle)
			}
			stuck = true
			continue
		}
		stuck = false
		before := t.seat.n.clock.Now()
		cctx, cancel := context.WithTimeout(ctx, l.OwnerTTL/2)
		_, err := t.cfg.Store.RenewPartition(cctx, t.fence())
		cancel()
		switch {
		case err == nil:
			t.trust.extend(l.holderDeadline(before))
		case ctx.Err() != nil:
			return
		case job.KindOf(err) == job.KindFenced:
			t.lose(err)
			return
		default:
			t.seat.n.trouble(t.log, slog.LevelWarn, "the partition lease could not be renewed; trying again at once and stopping when it runs out", err, "left", t.trust.left())
			wait = min(l.Look, l.Renew)
		}
	}
}
