package partition

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const (
	backoffFirst = 50 * time.Millisecond // before the second try; the first is made at once
	backoffMax   = 2 * time.Second
	releaseWait  = time.Second
	outrankEvery = 10 * time.Second
)

// seat is one partition's place in a node. Its goroutine acquires the partition when it may, and then
// runs one tenure after the other: an engine under one epoch. It lives as long as the node.
type seat struct {
	n         *Node
	partition int
	log       *slog.Logger
	rand      *rand.Rand // the seat's goroutine only

	sights  chan sighting // newest row; written by the watcher, read by the seat while it owns nothing
	current atomic.Pointer[tenure]
	loading atomic.Bool  // a tenure has begun that does not serve yet
	moves   atomic.Int64 // mono when the partition moved for balance, as far as this server saw; 0: never

	// Touched by the seat's goroutine only.
	sole     bool            // the lock's right has not been used yet
	takeover time.Duration   // mono until which an engine counts as one that took over
	failures int             // in a row without a commit
	carried  []item          // events to run one by one on the next engine (R3)
	careful  time.Duration   // mono until which events run one by one
	faults   map[string]int  // that no event brought, see blame
	leftOut  []engine.About  // what every engine from now on does without
	skip     map[string]bool // rows that were set aside but stay in the database, see keysOf
	tally    tally

	mu          sync.Mutex
	floor       job.Epoch     // highest epoch that callers have met: the next one must be above it
	outrankedAt time.Duration // mono, see outranked
	seen        sighting      // newest, for Ready
	held        time.Duration // mono when another was last seen to hold it; 0: never
	trouble     error         // that ended the newest tenure; nil: it was handed over, or there was none
}

func newSeat(n *Node, partition int) *seat {
	return &seat{
		n: n, partition: partition, sole: n.cfg.Sole, skip: map[string]bool{}, faults: map[string]int{},
		log:    n.cfg.Logger.With("partition", partition),
		rand:   rand.New(rand.NewPCG(n.cfg.Seed, uint64(partition))),
		sights: make(chan sighting, 1),
	}
}

// show hands the newest sighting to the seat, in place of one that it has not taken.
func (s *seat) show(v sighting) {
	s.mu.Lock()
	s.seen = v
	if v.row.Owner != "" && v.row.Owner != s.n.cfg.Incarnation {
		s.held = max(s.n.mono(), 1)
	}
	s.mu.Unlock()
	select {
	case <-s.sights:
	default:
	}
	select {
	case s.sights <- v:
	default:
	}
}

// serving is the tenure that may answer; nil: there is none, or its runner hangs and its time is over.
func (s *seat) serving() *tenure {
	t := s.current.Load()
	if t == nil {
		return nil
	}
	select {
	case <-t.over:
		return nil
	default:
		return t
	}
}

// settled tells whether somebody answers for the partition.
func (s *seat) settled() bool {
	if s.serving() != nil {
		return true
	}
	_, held := s.heldElsewhere()
	return held
}

// why is what ended the newest tenure.
func (s *seat) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// heldElsewhere tells whether another server holds the partition and renews its lease.
func (s *seat) heldElsewhere() (store.PartitionRow, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := s.seen.row.Owner
	return s.seen.row, !s.n.cfg.Sole && other != "" && other != s.n.cfg.Incarnation && s.seen.still < s.n.cfg.Lease.OwnerTTL
}

// run owns the partition again and again until ctx ends.
func (s *seat) run(ctx context.Context) {
	for ctx.Err() == nil {
		t, ok := s.acquire(ctx)
		if !ok {
			break
		}
		s.loading.Store(true)
		end := t.run(ctx)
		s.settle(ctx, t, end)
	}
	s.refuse(s.carried)
	s.carried = nil
}

// settle draws the consequences of a tenure's end.
func (s *seat) settle(ctx context.Context, t *tenure, end ending) {
	if t.commits > 0 || s.n.mono()-t.born > time.Minute {
		s.failures = 0
	}
	s.carried = end.carry
	s.mu.Lock()
	s.trouble = end.err
	s.mu.Unlock()
	s.blame(t, end)
	switch end.why {
	case endStopped:
		if !s.n.crashed(ctx) {
			s.release(t)
		}
		return
	case endGiven:
		s.release(t)
		drain(s.sights)
		s.failures = 0
		s.n.lookNow()
		return
	case endLost:
		s.log.Warn("partition ownership ended; watching its row and taking it again when nobody renews it", "epoch", t.epoch, "err", end.err)
	case endBroken:
		s.n.trouble(s.log, slog.LevelError, "engine dropped with its epoch; acquiring the partition again under a new one and loading it", end.err, "epoch", t.epoch)
	case endPoisoned:
		s.careful = s.n.mono() + carefulFor
		s.log.Error("engine dropped: an event could not be decided or stored; running the events of that step one by one", "epoch", t.epoch, "events", len(end.carry), "err", end.err)
	}
	if s.failures > 0 {
		s.pause(ctx)
	}
	s.failures++
	drain(s.sights)
	s.n.lookNow()
}

// pause waits longer after each failure, with jitter.
func (s *seat) pause(ctx context.Context) {
	d := min(backoffMax, backoffFirst<<min(s.failures-1, 10))
	d = d/2 + time.Duration(s.rand.Int64N(int64(d/2)+1))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// acquire waits until the partition may be taken and takes it. It returns false when ctx ended.
func (s *seat) acquire(ctx context.Context) (*tenure, bool) {
	for {
		var v sighting
		select {
		case <-ctx.Done():
			return nil, false
		case v = <-s.sights:
		}
		cfg := &s.n.cfg
		if m := s.n.members; m != nil && (!m.may() || s.moving(s.n.mono())) { // whom it was given up for may be a look behind
			s.elsewhere(v)
			continue
		}
		if !cfg.Lease.mayTake(v, cfg.Incarnation, Rank(s.partition, s.n.rankedAs(), cfg.Live()), s.sole) {
			s.elsewhere(v)
			continue
		}
		t, err := s.take(ctx, v)
		if err == nil {
			return t, true
		}
		if job.KindOf(err) != job.KindFenced && ctx.Err() == nil && !s.n.tooOld(err) {
			s.n.trouble(s.log, slog.LevelError, "partition could not be acquired; trying again until the database answers", err)
			s.failures++
			s.pause(ctx)
		}
		drain(s.sights)
		s.n.lookNow()
	}
}

// elsewhere takes note that another server holds the partition: callers who wait here must ask there.
func (s *seat) elsewhere(v sighting) {
	if v.row.Owner != "" {
		s.refuse(s.carried)
		s.carried = nil
	}
	if v.row.Owner != "" && v.row.Owner != s.n.cfg.Incarnation {
		s.mu.Lock()
		s.trouble = nil
		s.mu.Unlock()
	}
}

// take acquires the partition as it was seen. Its deadline counts from the instant before the call.
func (s *seat) take(ctx context.Context, v sighting) (*tenure, error) {
	n := s.n
	before := n.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Lease.OwnerTTL)
	defer cancel()
	s.mu.Lock()
	floor := int64(s.floor) + 1
	s.mu.Unlock()
	row := v.row
	keep := n.cfg.Switches.KeepEpoch && row.Owner == n.cfg.Incarnation
	if !keep {
		var err error
		row, err = n.cfg.Store.AcquirePartition(ctx, v.row, n.cfg.Incarnation, max(n.Now().UnixMicro(), floor), n.cfg.Self.Level)
		if err != nil {
			return nil, err
		}
	}
	s.sole = false
	s.came(v)
	if v.row.Owner != n.cfg.Incarnation && v.row.Epoch != 0 {
		s.takeover = n.mono() + n.cfg.Lease.OwnerTTL
	}
	s.log.Info("partition acquired; loading it", "epoch", row.Epoch, "before", v.row.Owner)
	return newTenure(s, row, newTrust(n.clock, n.cfg.Lease.holderDeadline(before), n.cfg.Switches.NoDeadline)), nil
}

// came notes that the partition was handed over to here, which counts as a move for balance, wherefore it stays a
// while. Taken from the dead, or from nobody for long, it may move on at once.
func (s *seat) came(v sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.n.mono()
	if v.row.Owner == "" && s.held != 0 && now < s.held+s.n.cfg.Lease.OwnerTTL {
		s.moves.Store(int64(now))
	}
}

// release frees the partition at once for the next server.
func (s *seat) release(t *tenure) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	if err := s.n.cfg.Store.ReleasePartition(ctx, t.fence()); err != nil {
		s.log.Warn("partition could not be released; it is free when its lease has run out", "epoch", t.epoch, "err", err)
		return
	}
	s.n.hinter.hint(s.partition)
}

// outranked drops a tenure because a caller has met a higher epoch (R6): the next one is above it. A server
// whose store nobody else can own has met a store that was set back. Callers that name ever higher epochs
// must not cost everybody else the engine, so that is done each outrankEvery only; until then they, and they
// alone, have no owner.
func (s *seat) outranked(t *tenure, seen job.Epoch) {
	s.mu.Lock()
	s.floor = max(s.floor, seen)
	now, first := s.n.mono(), s.outrankedAt == 0
	soon := !first && now < s.outrankedAt+outrankEvery
	if !soon {
		s.outrankedAt = max(now, 1)
	}
	s.mu.Unlock()
	if soon {
		return
	}
	if first && s.n.cfg.Sole {
		s.log.Error("store_went_back: a caller has met an epoch that this store does not know; the store was set back (a restored backup?), what was done since is not in it. Going on above that epoch",
			"epoch", t.epoch, "met", seen)
	}
	t.lose(job.Errorf(job.KindFenced, "higher_epoch", "a caller has met the epoch %d", seen))
}

// refuse answers calls that were carried over and will not be run.
func (s *seat) refuse(items []item) {
	for _, it := range items {
		if it.call != nil {
			it.call.answer <- answered{err: noOwner(s.partition)}
		}
	}
}

func drain(ch chan sighting) {
	select {
	case <-ch:
	default:
	}
}

// fence is the newest right to commit.
func (t *tenure) fence() store.Fence {
	return store.Fence{Partition: t.seat.partition, Owner: t.seat.n.cfg.Incarnation, Epoch: t.epoch, Seq: t.seq.Load()}
}
