package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// careBeat is how often the live tables are looked after, if at least careRows rows of them died since. Autovacuum comes once
// a minute, which is too rare for tables that turn over in seconds.
const (
	careBeat = 5 * time.Second
	careRows = 5000
)

const qVacuum = `VACUUM (SKIP_LOCKED, TRUNCATE false) `

// aheadBy is how long before its beginning a month is made.
const aheadBy = job.Instant(7 * 24 * 60 * 60 * 1000)

// care vacuums the live tables and makes the next month's tables.
type care struct {
	dead   atomic.Int64
	at     atomic.Int64 // instant of the newest commit
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
			if at := job.Instant(c.at.Load()); at != 0 {
				s.makeAhead(ctx, at+aheadBy)
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

// committed tells of a commit, and how many rows died by it.
func (c *care) committed(at job.Instant, dead int64) {
	c.at.Store(int64(at))
	c.dead.Add(dead)
}

// makeAhead spares the first commits of a month the wait for its tables.
func (s *Store) makeAhead(ctx context.Context, at job.Instant) {
	for _, tables := range [][]string{monthsOfExecutions, monthsOfLogs, monthsOfCommits} {
		if err := s.ensureMonths(ctx, tables, at); err != nil && ctx.Err() == nil {
			s.log.Warn("The tables of a coming month were not made; the next look, or the first commit of that month, tries again", "error", err)
			return
		}
	}
}

func (s *Store) vacuum(ctx context.Context) {
	for _, table := range []string{"executions", "lots", "shards", "inbox"} {
		patience, cancel := context.WithTimeout(ctx, s.people.patience)
		err := s.people.exec(patience, qVacuum+table)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.log.Warn("A live table was not vacuumed; autovacuum does it later, commits may be slower until then", "table", table, "error", classify("vacuum", err))
			return
		}
	}
}
