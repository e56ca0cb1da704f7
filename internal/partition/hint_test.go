package partition_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// counted is a door with hints that counts the looks.
type counted struct {
	*hinting
	looks atomic.Int64
}

func (d *counted) PartitionRows(ctx context.Context) ([]store.PartitionRow, error) {
	d.looks.Add(1)
	return d.hinting.PartitionRows(ctx)
}

// Hints come with every request for another server's partitions: who does not own them looks now and then, not each time.
func TestManyHintsAreFewLooks(t *testing.T) {
	inCity(t, 1, func(c *city) {
		c.hints = &board{ears: map[int]func(int){}}
		c.join("a", 1, nil)
		c.until(10*time.Second, wanted(1, "a"))
		var b *counted
		c.join("b", 1, func(cfg *partition.Config) {
			b = &counted{hinting: cfg.Store.(*hinting)}
			cfg.Store = b
			cfg.Live = func() []string { return []string{"a", "b"} } // nothing moves
		})
		time.Sleep(10 * time.Second)
		before := b.looks.Load()
		for range 1000 {
			if err := b.Hint(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if n := b.looks.Load() - before; n < 10 || n > 25 {
			t.Errorf("%d looks for 1,000 hints in a second", n)
		}
	})
}
