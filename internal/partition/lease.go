package partition

import (
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// Lease holds every length that the two kinds of lease depend on: those of workers (TTL, Beat, Margin)
// and those of servers (OwnerTTL and what belongs to it). Zero fields are filled by Filled.
type Lease struct {
	TTL    time.Duration // of a worker's leases; 1 s … 1 h
	Beat   time.Duration // between a worker's heartbeats
	Margin time.Duration // a worker stops this much before the owner calls its lease expired

	OwnerTTL    time.Duration // P: of a partition lease
	OwnerMargin time.Duration // an owner stops trusting itself this much before others may call it expired
	Renew       time.Duration // between two renewals of a partition lease
	Look        time.Duration // between two looks at the partition rows and at the inbox

	// What a change of owner may cost besides; only Check reads them.
	Load        time.Duration // reading a partition into memory
	Retry       time.Duration // longest pause of a worker before it tries a call again
	CallTimeout time.Duration // of a worker's call
	RoundTrip   time.Duration
}

// Filled puts in what is missing. For a TTL of 15 s it is the table of DESIGN §5; for shorter ones the
// reserves shrink with the TTL.
func (l Lease) Filled() Lease {
	fill := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	fill(&l.TTL, 15*time.Second)
	fill(&l.Beat, l.TTL/5)
	fill(&l.Margin, l.TTL/10)
	fill(&l.OwnerTTL, min(5*time.Second, l.TTL/3))
	fill(&l.OwnerMargin, l.OwnerTTL/10)
	fill(&l.Renew, l.OwnerTTL*3/10)
	fill(&l.Look, min(500*time.Millisecond, l.OwnerTTL/10))
	fill(&l.Load, min(2*time.Second, l.TTL*2/15))
	fill(&l.Retry, min(time.Second, l.TTL/15))
	fill(&l.CallTimeout, min(2*time.Second, l.TTL*2/15))
	fill(&l.RoundTrip, min(200*time.Millisecond, l.TTL/75))
	return l
}

// term is one summand of the rule that Check enforces.
type term struct {
	name string
	d    time.Duration
}

// Check refuses lengths with which a worker could lose a shard although a server that died was replaced
// in time: TTL ≥ beat + P + look + load + max(retry, call time-out) + round trip + margin. A sole server
// takes its partitions at once when it is started again, so P and look do not count for it. The error
// has KindInvalid and code "lease_settings" and says which term breaks the rule.
func (l Lease) Check(sole bool) error {
	bad := func(field, format string, args ...any) error {
		return job.Errorf(job.KindInvalid, "lease_settings", format, args...).WithField(field)
	}
	for _, f := range []term{
		{"leaseTTL", l.TTL}, {"beat", l.Beat}, {"margin", l.Margin}, {"ownerTTL", l.OwnerTTL},
		{"ownerMargin", l.OwnerMargin}, {"renew", l.Renew}, {"look", l.Look},
	} {
		if f.d <= 0 {
			return bad(f.name, "%v is no length of time: it must be above 0", f.d)
		}
	}
	if l.OwnerMargin+l.Renew >= l.OwnerTTL {
		return bad("ownerTTL", "the partition lease of %v leaves no time for one renewal each %v before the owner's margin of %v", l.OwnerTTL, l.Renew, l.OwnerMargin)
	}
	terms := []term{{"beat", l.Beat}}
	if !sole {
		terms = append(terms, term{"ownerTTL", l.OwnerTTL}, term{"look", l.Look})
	}
	terms = append(terms, term{"load", l.Load}, term{"max(retry, callTimeout)", max(l.Retry, l.CallTimeout)},
		term{"roundTrip", l.RoundTrip}, term{"margin", l.Margin})
	var sum time.Duration
	largest, list := terms[0], ""
	for i, t := range terms {
		sum += t.d
		if t.d > largest.d {
			largest = t
		}
		if i > 0 {
			list += " + "
		}
		list += t.name + " " + schedule.Length(t.d)
	}
	if sum > l.TTL {
		return job.Errorf(job.KindInvalid, "lease_settings", "a lease of %s is shorter than what the death of a server may cost: %s = %s", schedule.Length(l.TTL), list, schedule.Length(sum)).
			WithField("leaseTTL").WithHint("raise the lease to %s or lower %s, the largest term", schedule.Length(sum), largest.name)
	}
	return nil
}

// holderDeadline is how long an owner may trust itself after a call that it sent at before. It counts
// from the instant before the call, never from its answer (R8).
func (l Lease) holderDeadline(before time.Duration) time.Duration {
	return before + l.OwnerTTL - l.OwnerMargin
}

// sighting is a partition row as the watcher saw it, with how long it had stood still by then.
type sighting struct {
	row   store.PartitionRow
	still time.Duration
}

// watch judges one partition: a lease is over when its counter stood still for P on this clock. It takes
// plain monotonic time: a judge whose clock stood still only judges later.
type watch struct {
	row   store.PartitionRow
	since time.Duration // end of the first read that showed it like this
	known bool
}

// see takes in a read that lasted from asked to got. Between two reads with equal counters nobody
// renewed, so the row stood still from the end of the first to the start of the last.
func (w *watch) see(row store.PartitionRow, asked, got time.Duration) sighting {
	same := w.known && w.row.Owner == row.Owner && w.row.Epoch == row.Epoch && w.row.Beat == row.Beat
	if !same {
		w.since, w.known = got, true
	}
	w.row = row
	return sighting{row: row, still: max(0, asked-w.since)}
}

// mayTake tells whether a server may try to acquire what it saw. sole is the right of the data
// directory's lock, which needs no waiting.
func (l Lease) mayTake(v sighting, self string, rank int, sole bool) bool {
	delay := time.Duration(rank) * rankStep
	switch v.row.Owner {
	case self:
		return true
	case "":
		return sole || v.still >= delay
	default:
		return sole || v.still >= l.OwnerTTL+delay
	}
}
