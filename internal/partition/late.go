package partition

import (
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// PlanBound is how far planning may lie behind the clock, and how long, before an owner says that it stands. An outage that is
// caught up is over sooner.
const PlanBound = time.Minute

// lateness is what an owner knows of its planning.
type lateness struct {
	first job.Instant   // of the first step: before anything was read, all from there on may be undecided
	since time.Duration // mono when it was first found further behind than the bound; 0: it is not
	told  time.Duration // mono of the newest line; 0: none
}

// planned notes how far the engine has planned, and says so when it stands. An engine that finishes no step says nothing: its
// owner's lease ends.
func (t *tenure) planned(now engine.Now) {
	c, ok := t.core.(interface{ Undecided() job.Instant })
	if !ok {
		return
	}
	l, open := &t.late, c.Undecided()
	if l.first == 0 {
		l.first = now.Wall
	}
	if open == 0 {
		open = l.first
	}
	t.seat.tally.planned(open)
	behind := now.Wall.Sub(open)
	switch {
	case behind <= PlanBound && l.told > 0:
		t.log.Info("planning goes on: nothing that was due is undecided")
		fallthrough
	case behind <= PlanBound:
		l.since, l.told = 0, 0
	case l.since == 0:
		l.since = max(now.Mono, 1)
	case now.Mono-l.since >= PlanBound && (l.told == 0 || now.Mono-l.told >= outageEvery):
		l.told = now.Mono
		t.log.Error("planning stands: what is due since then has not been decided; other partitions go on. When the next lines do not say why, stop this server: another owner reads the partition anew",
			"since", open.Time(), "behind", behind.Round(time.Second))
	}
}
