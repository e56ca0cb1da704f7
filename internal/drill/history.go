package drill

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Event is one fact with its place in the history of a partition.
type Event struct {
	Partition int
	Seq       int64 // of the commit; see After for traces
	Epoch     job.Epoch
	At        job.Instant   // wall time of the step, as the owner knew it
	When      time.Time     // the true instant where the run knows it; zero: At
	Mono      time.Duration // of the step, by the clock that its engine judges leases by; 0: not known
	Trace     bool          // in no journal: a renewal or a refusal
	After     bool          // a trace of a step that committed nothing, behind the commit Seq; else it belongs to that commit's step
	engine.Fact
}

func (e *Event) when() time.Time {
	if e.When.IsZero() {
		return e.At.Time()
	}
	return e.When
}

func (e *Event) place() int {
	switch {
	case !e.Trace:
		return 1
	case e.After:
		return 2
	default:
		return 0
	}
}

// WireKind is the kind of a WireNote.
type WireKind string

// The kinds of wire notes.
const (
	WireSent  WireKind = "sent"  // a worker sent the call
	WireNamed WireKind = "named" // an answer reached the worker: the lease of Token rests on Call

	// WireAccepted: an answer reached the worker: a report item of Token, first sent at First, counts.
	WireAccepted WireKind = "accepted"

	// WireRefused: an answer reached the worker: an item or a beat of Token is stale or lost.
	WireRefused WireKind = "refused"
)

// WireNote is what the network saw at a worker's end. It is evidence that neither the SDK nor the
// server wrote.
type WireNote struct {
	At      time.Time
	Kind    WireKind
	Worker  string
	Session string
	Call    int64
	Token   job.Token // named, accepted, refused
	First   time.Time // accepted
}

// Effect is a side effect as the handler that made it wrote it down.
type Effect struct {
	At        time.Time
	Began     time.Time // when the handler looked at its lease for the last time before; zero: At
	Worker    string
	Execution string
	Shard     int
	Token     job.Token
	Attempt   int
	Key       string
}

// History is everything that is known about a run.
type History struct {
	Events     []Event // as Merge orders them
	Wire       []WireNote
	Effects    []Effect
	Executions []job.Execution // as stored at the end
	End        time.Time       // of the run

	Due map[string][]job.Instant // namespace/job: instants that must each have one fate

	Beside map[string]bool // jobs whose executions may run side by side (overlap allow)

	TTL      time.Duration // of worker leases
	Margin   time.Duration
	OwnerTTL time.Duration // P
	Slack    time.Duration // that a verdict may be late: looks, delays of the network, a stopped server
}

// ReadJournal turns journal rows into events, in the order of the rows.
func ReadJournal(rows []store.JournalRow) ([]Event, error) {
	var out []Event
	for _, r := range rows {
		var facts []engine.Fact
		if len(r.Facts) > 0 {
			if err := json.Unmarshal(r.Facts, &facts); err != nil {
				return nil, fmt.Errorf("journal row %d of partition %d: %w", r.Seq, r.Partition, err)
			}
		}
		for _, f := range facts {
			out = append(out, Event{Partition: r.Partition, Seq: r.Seq, Epoch: r.Epoch, At: r.At, Fact: f})
		}
	}
	return out, nil
}

// Seen completes journal events with the true instants at which their commits were seen to succeed, by
// partition and seq. A commit that nobody saw (its outcome was unknown) gets the end of its millisecond.
func Seen(journal []Event, seen map[[2]int64]time.Time) {
	for i := range journal {
		e := &journal[i]
		if at, ok := seen[[2]int64{int64(e.Partition), e.Seq}]; ok {
			e.When = at
		} else {
			e.When = e.At.Time().Add(time.Millisecond - 1)
		}
	}
}

// Merge puts journal facts and traces into one order: per commit the traces of its own step, its facts,
// then the traces of the steps behind it. Both inputs are in order.
func Merge(journal, traces []Event) []Event {
	out := slices.Concat(traces, journal)
	slices.SortStableFunc(out, func(a, b Event) int {
		if a.Partition != b.Partition {
			return a.Partition - b.Partition
		}
		if a.Seq != b.Seq {
			return cmp.Compare(a.Seq, b.Seq)
		}
		return a.place() - b.place()
	})
	return out
}

// Violation is an invariant that does not hold, with the place where it broke.
type Violation struct {
	Invariant string
	Seq       int64
	Text      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s at seq %d: %s", v.Invariant, v.Seq, v.Text)
}

// shardID names a shard over the whole history.
type shardID struct {
	exec  job.ExecutionID
	index int
}

func (s shardID) String() string { return fmt.Sprintf("%s/%d", s.exec, s.index) }

// tokenID names a lease: tokens are unique in a partition.
type tokenID struct {
	partition int
	token     job.Token
}

// lease is the life of one lease as the events tell it; positions are indices of events.
type lease struct {
	shard   shardID
	id      tokenID
	grant   int
	end     int // -1 while open
	expired bool
	renewed []int
	owners  []int // `owned` facts of the partition during its life
}

// index is the history by lease.
type index struct {
	*History
	byToken map[tokenID]*lease
	byShard map[shardID][]*lease
	order   []*lease      // by grant
	owned   map[int][]int // `owned` facts by partition
}

func newIndex(h *History) *index {
	ix := &index{History: h, byToken: map[tokenID]*lease{}, byShard: map[shardID][]*lease{}, owned: map[int][]int{}}
	owned := ix.owned
	for i := range h.Events {
		e := &h.Events[i]
		id := tokenID{e.Partition, e.Token}
		switch e.Kind {
		case engine.FactOwned:
			owned[e.Partition] = append(owned[e.Partition], i)
		case engine.FactLeaseGranted:
			l := &lease{shard: shardID{e.Execution, e.Shard}, id: id, grant: i, end: -1}
			ix.byToken[id] = l
			ix.byShard[l.shard] = append(ix.byShard[l.shard], l)
			ix.order = append(ix.order, l)
		case engine.FactLeaseRenewed:
			if l := ix.byToken[id]; l != nil {
				l.renewed = append(l.renewed, i)
			}
		case engine.FactLeaseEnded, engine.FactLeaseExpired:
			if l := ix.byToken[id]; l != nil && l.end < 0 {
				l.end, l.expired = i, e.Kind == engine.FactLeaseExpired
			}
		}
	}
	for _, l := range ix.order {
		for _, i := range owned[l.id.partition] {
			if i > l.grant && (l.end < 0 || i < l.end) {
				l.owners = append(l.owners, i)
			}
		}
	}
	return ix
}

// leasesOf lists the leases of l's shard; none for nil.
func (ix *index) leasesOf(l *lease) []*lease {
	if l == nil {
		return nil
	}
	return ix.byShard[l.shard]
}

// lastSign is the newest grant or renewal of l.
func (ix *index) lastSign(l *lease) *Event {
	if n := len(l.renewed); n > 0 {
		return &ix.Events[l.renewed[n-1]]
	}
	return &ix.Events[l.grant]
}
