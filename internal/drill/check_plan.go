package drill

import (
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// checkFates is I02: each instant in Due has one execution or is in one decision.
func checkFates(ix *index, fail failFunc) {
	fates := map[string]map[job.Instant]int{}
	for name, due := range ix.Due {
		fates[name] = map[job.Instant]int{}
		for _, at := range due {
			fates[name][at] = 0
		}
	}
	for _, x := range ix.Executions {
		if of := fates[x.Namespace+"/"+x.Job]; of != nil && Planned(&x) {
			if _, due := of[x.PlannedAt]; due {
				of[x.PlannedAt]++
			}
		}
	}
	for _, e := range ix.Events {
		if e.Kind == engine.FactUnexplained {
			fail(e.Seq, "%d instants of %s from %s to %s are unexplained", e.Count, e.Job, e.PlannedAt, e.Until)
		}
		if e.Kind != engine.FactDecided {
			continue
		}
		for at := range fates[e.Job] {
			if e.PlannedAt <= at && at <= e.Until {
				fates[e.Job][at]++
			}
		}
	}
	for name, due := range ix.Due {
		for _, at := range due {
			if n := fates[name][at]; n != 1 {
				fail(0, "instant %s of %s has %d executions and decisions", at, name, n)
			}
		}
	}
}

// checkForward is I05 for jobs of one schedule.
func checkForward(ix *index, fail failFunc) {
	type place struct {
		partition int
		job       string
	}
	last := map[place]job.Instant{}
	for _, e := range ix.Events {
		p := place{e.Partition, e.Job}
		switch e.Kind {
		case engine.FactJobDeleted:
			delete(last, p)
		case engine.FactPlanned:
			if before, some := last[p]; some && e.PlannedAt <= before {
				fail(e.Seq, "%s planned %s after %s", e.Job, e.PlannedAt, before)
			}
			if e.Until != 0 && e.Until <= e.PlannedAt {
				fail(e.Seq, "%s goes on at %s after %s", e.Job, e.Until, e.PlannedAt)
			}
			last[p] = e.PlannedAt
		}
	}
}

// checkTerms is the safe half of I30: epochs rise, every commit carries the newest, and who was replaced renews nothing.
func checkTerms(ix *index, fail failFunc) {
	newest := map[int]*Event{} // `owned` fact by partition
	for i := range ix.Events {
		e := &ix.Events[i]
		owner := newest[e.Partition]
		switch {
		case e.Kind == engine.FactOwned:
			if owner != nil && e.Token <= owner.Token {
				fail(e.Seq, "partition %d is owned under epoch %d after %d", e.Partition, e.Token, owner.Token)
			}
			newest[e.Partition] = e
		case !e.Trace && e.Epoch != 0 && owner != nil && int64(e.Epoch) != int64(owner.Token) && e.Seq != owner.Seq:
			fail(e.Seq, "%s was committed under epoch %d, the newest is %d", e.Kind, e.Epoch, owner.Token)
		}
	}
	for i := range ix.Events {
		e := &ix.Events[i]
		if owner := newest[e.Partition]; e.Kind == engine.FactLeaseRenewed && e.Epoch != 0 && owner != nil {
			ix.checkReplaced(e, fail)
		}
	}
}

// checkReplaced looks for an owner that had taken the partition before e, under a higher epoch.
func (ix *index) checkReplaced(e *Event, fail failFunc) {
	for _, o := range ix.owned[e.Partition] {
		if o := &ix.Events[o]; int64(o.Token) > int64(e.Epoch) && o.when().Before(e.when()) {
			fail(e.Seq, "token %d was renewed at %s under epoch %d, epoch %d had begun at %s", e.Token, stamp(e.when()), e.Epoch, o.Token, stamp(o.when()))
			return
		}
	}
}

// Every lists the instants of an interval after from, up to and with until.
func Every(from time.Time, every time.Duration, until time.Time) (all []job.Instant) {
	for at := from.Add(every); !at.After(until); at = at.Add(every) {
		all = append(all, job.InstantOf(at))
	}
	return all
}
