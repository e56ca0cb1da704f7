package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// careBeat is how often the live tables are looked after, if at least careRows rows of them died since. Autovacuum comes once
// a minute, which is too rare for tables that turn over in seconds.
const (
	careBeat = 5 * time.Second
	careRows = 5000
)

const qVacuum = `VACUUM (SKIP_LOCKED, TRUNCATE false) `

// care vacuums the live tables.
type care struct {
	dead   atomic.Int64
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (c *care) start(s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.done.Go(func() {
		beat := time.NewTicker(careBeat)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			if c.dead.Load() >= careRows {
				c.dead.Store(0)
				s.vacuum(ctx)
			}
		}
	})
}

func (c *care) stop() {
	if c.cancel != nil {
		c.cancel()
		c.done.Wait()
	}
}

// vacuum is an economy: where it fails autovacuum does the same later, and what it runs into shows in the commits too.
func (s *Store) vacuum(ctx context.Context) {
	for _, table := range []string{"executions", "shards", "inbox"} {
		if _, err := s.people.Exec(ctx, qVacuum+table); err != nil {
			return
		}
	}
}
