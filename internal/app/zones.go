package app

import (
	"context"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
)

// noteZones tells the planners of jobs that name a time zone when the time zone database has changed since a server last
// started: their next instants are computed anew.
func (a *App) noteZones(ctx context.Context) {
	told, err := a.store.ZonesChanged(ctx, control.ZonesMark(), job.InstantOf(a.node.Now()))
	switch {
	case err != nil:
		a.cfg.Logger.Warn("whether the time zone database has changed could not be noted; the next start looks again", "err", err)
	case told > 0:
		a.cfg.Logger.Info("the time zone database is another one than before; next instants are computed anew", "version", control.Zones(), "jobs", told)
	}
}
