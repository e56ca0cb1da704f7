package partition_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
)

// mute is a door at which the first loads are never answered.
type mute struct {
	*door
	left atomic.Int64
}

func (d *mute) LoadPartition(ctx context.Context, p int) (engine.Loaded, error) {
	if d.left.Add(-1) >= 0 {
		<-ctx.Done()
		return engine.Loaded{}, ctx.Err()
	}
	return d.door.LoadPartition(ctx, p)
}

// A load that nobody answers (a connection that the network forgot) costs a partition two leases, not its owner for good.
func TestLoadIntoSilence(t *testing.T) {
	inCity(t, 1, func(c *city) {
		c.join("a", 1, func(cfg *partition.Config) {
			d := &mute{door: cfg.Store.(*door)}
			d.left.Store(2)
			cfg.Store = d
		})
		c.until(time.Minute, wanted(1, "a"))
	})
}
