package partition

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taktsched/takt/internal/boottime"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// ErrCrashed is what Run returns after Config.Crash panicked.
var ErrCrashed = errors.New("partition: the node died at a crash point")

// epochAhead bounds what is believed of a caller that says it has met a higher epoch: epochs are about
// the clock in µs, and one from next year comes from no server.
const epochAhead = 366 * 24 * time.Hour

// Node is the part of a server that owns partitions. Run owns all its goroutines: a watcher of the
// partition rows and, per partition, a seat with its runner and the renewal of its lease.
type Node struct {
	cfg     Config
	start   time.Time       // zero of the judge's clock and of engine.Now.Mono
	clock   *boottime.Clock // the holder's clock
	seats   []*seat         // by partition
	entries *entries
	members *members // nil: the sole server, or Config.Live tells who lives
	hinter  *hinter
	outage  *outage
	offset  *offset
	look    chan struct{} // asks the watcher to look at once
	hinted  chan struct{} // asks it to look soon
	lived   sync.Map      // histories of the database (string) that were seen since the start
	reply   atomic.Uint64 // newest engine.ReplyID
	floor   atomic.Int64  // of the database, as far as this server knows
	whole   atomic.Int64  // mono when every partition was last seen to be answered for, in ns; 0: not yet
	looked  atomic.Int64  // mono when the newest look that came to an end was begun, in ns; 0: none
	running atomic.Bool
	dead    atomic.Bool             // a crash point fired
	die     context.CancelCauseFunc // set by Run before its goroutines start
}

var _ Owners = (*Node)(nil)

// NewNode reads how many partitions there are. It starts nothing. Inside a synctest bubble, make it there.
func NewNode(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	rows, err := cfg.Store.PartitionRows(ctx)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, start: time.Now(), clock: boottime.Start(), entries: newEntries(), look: make(chan struct{}, 1),
		hinted: make(chan struct{}, 1), hinter: newHinter(cfg.Store), outage: newOutage()}
	n.offset = newOffset(n)
	if cfg.Live == nil {
		n.members = newMembers(n)
		n.cfg.Live = n.members.live
	}
	if err := n.readFloor(ctx); err != nil {
		return nil, err
	}
	for p, row := range rows {
		if row.Partition != p {
			return nil, job.Errorf(job.KindInternal, "bad_partitions", "the store lists partition %d in place %d", row.Partition, p)
		}
		n.seats = append(n.seats, newSeat(n, p))
	}
	return n, nil
}

// Run owns partitions until ctx ends; then it is not ready any more, answers who waits, releases what it owns, all
// partitions at once, and returns nil. It takes at most about two seconds for that. It returns ErrCrashed when a
// crash point fired. Call it once.
func (n *Node) Run(ctx context.Context) error {
	inner, die := context.WithCancelCause(context.WithoutCancel(ctx))
	defer die(nil)
	n.die = func(cause error) { n.dead.Store(true); die(cause) }
	n.running.Store(true)
	defer n.running.Store(false)
	var seats, rest sync.WaitGroup
	for _, s := range n.seats {
		seats.Go(func() { s.run(inner) })
	}
	around, end := context.WithCancel(context.WithoutCancel(ctx)) // goes on until everything is released
	defer end()
	n.runAround(around, &rest)
	select {
	case <-ctx.Done():
		n.running.Store(false)
		if n.members != nil && !n.cfg.Switches.ReleasesUnsaid {
			n.members.announce()
		}
		die(nil)
	case <-inner.Done(): // crashed: the dead say nothing more
		end()
	}
	seats.Wait()
	end()
	rest.Wait()
	if n.crashed(inner) {
		return ErrCrashed
	}
	if n.members != nil {
		n.members.leave()
	}
	return nil
}

// runAround starts what goes on beside the seats.
func (n *Node) runAround(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() { n.watchRows(ctx) })
	if n.members != nil {
		wg.Go(func() { n.members.beat(ctx) })
		wg.Go(func() { n.members.reach(ctx) })
	}
	if n.inboxes() != nil {
		wg.Go(func() { n.lookAtInboxes(ctx) })
	}
	if n.hinter.store != nil {
		wg.Go(func() { n.sendHints(ctx) })
		wg.Go(func() { n.hear(ctx) })
	}
}

func (n *Node) crashed(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrCrashed) }

// mono is the judge's clock.
func (n *Node) mono() time.Duration { return time.Since(n.start) }

// watchRows looks at all partition rows each Lease.Look, and at once when a seat asks for it, and tells
// the seats that own nothing what it saw.
func (n *Node) watchRows(ctx context.Context) {
	w := &watcher{n: n, watches: make([]watch, len(n.seats))}
	failing := false
	for {
		err := w.look(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			n.cfg.Logger.Error("the rows of partitions and servers could not be read; owned partitions go on until their lease ends, looking again each half second", "err", err)
		}
		failing = err != nil
		if !n.rest(ctx) {
			return
		}
	}
}

// watcher is what watchRows remembers.
type watcher struct {
	n       *Node
	watches []watch // by partition
	lineage string
}

// look reads the rows of partitions, then those of servers: who is seen to have released a partition is then seen to
// stop or to sit out, too. A database that does not answer must not hang the watcher for good.
func (w *watcher) look(ctx context.Context) error {
	n := w.n
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Lease.OwnerTTL/2)
	defer cancel()
	asked := n.mono()
	rows, err := n.cfg.Store.PartitionRows(ctx)
	got := n.mono()
	if err != nil {
		return err
	}
	if err := n.offset.measure(ctx); err != nil {
		return err
	}
	if w.lineage, err = n.watchLineage(ctx, w.lineage); err != nil {
		return err
	}
	if n.members != nil {
		if err := n.members.look(ctx); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if row.Partition < len(n.seats) {
			n.seats[row.Partition].show(w.watches[row.Partition].see(row, asked, got))
		}
	}
	if n.members != nil {
		n.members.judged(n.mono())
	}
	n.looked.Store(int64(max(asked, 1)))
	n.unsettled()
	n.balance()
	return nil
}

// lookNow makes the watcher look at once.
func (n *Node) lookNow() {
	select {
	case n.look <- struct{}{}:
	default:
	}
}

// Count implements Owners.
func (n *Node) Count() int { return len(n.seats) }

// Wake implements Owners.
func (n *Node) Wake(partition int) {
	if partition < 0 || partition >= len(n.seats) {
		return
	}
	if t := n.seats[partition].serving(); t != nil {
		t.wakeUp()
		return
	}
	n.hinter.hint(partition)
}

// Hand implements Owners.
func (n *Node) Hand(partition int, p engine.InboxPage) {
	if partition >= 0 && partition < len(n.seats) {
		if t := n.seats[partition].serving(); t != nil && t.hand(p) {
			return
		}
	}
	n.Wake(partition)
}

// Expect implements Owners.
func (n *Node) Expect(partition int) (done func()) {
	if partition >= 0 && partition < len(n.seats) {
		if t := n.seats[partition].serving(); t != nil {
			t.expected.Add(1)
			return func() { t.expected.Add(-1) }
		}
	}
	return func() {}
}

// AwaitEntry implements Owners.
func (n *Node) AwaitEntry(ctx context.Context, _ int, entry int64) bool {
	return n.entries.await(ctx, entry, n.cfg.Store.EntryPending)
}

// Stats implements Owners.
func (n *Node) Stats() []Stats {
	var all []Stats
	for _, s := range n.seats {
		if st := s.stats(); st.Owned {
			all = append(all, st)
		}
	}
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Partition, b.Partition) })
	return all
}

// Call implements Owners.
func (n *Node) Call(ctx context.Context, partition int, seen job.Epoch, ev engine.Event) (Reply, error) {
	if partition < 0 || partition >= len(n.seats) {
		return Reply{}, job.Errorf(job.KindNotFound, "partition_unknown", "there is no partition %d", partition)
	}
	c := &call{ctx: ctx, reply: engine.ReplyID(n.reply.Add(1)), answer: make(chan answered, 1)}
	var err error
	if c.event, c.kind, err = withReply(ev, c.reply); err != nil {
		return Reply{}, err
	}
	s := n.seats[partition]
	t := s.serving()
	if t == nil {
		return Reply{}, noOwner(partition)
	}
	if seen > t.epoch && !n.cfg.Switches.EpochsIgnored {
		if int64(seen) > n.Now().Add(epochAhead).UnixMicro() {
			return Reply{}, job.Errorf(job.KindInvalid, "epoch_implausible", "no server has had the epoch %d", seen)
		}
		s.outranked(t, seen)
		return Reply{}, noOwner(partition)
	}
	a := t.ask(c)
	if !t.trust.holds() { // compared again before answering (R1)
		return Reply{}, noOwner(partition)
	}
	if a.err != nil {
		return Reply{Epoch: t.epoch}, a.err
	}
	return Reply{Value: a.value, Epoch: t.epoch}, nil
}

func noOwner(partition int) error {
	return job.Errorf(job.KindNoOwner, "no_owner", "partition %d has no owner here for the moment", partition).
		WithHint("ask again in a second")
}

// withReply gives a call its reply id and its name.
func withReply(ev engine.Event, id engine.ReplyID) (engine.Event, string, error) {
	switch e := ev.(type) {
	case engine.SessionOpen:
		e.Reply = id
		return e, kindOf(e), nil
	case engine.Poll:
		e.Reply = id
		return e, kindOf(e), nil
	case engine.Heartbeat:
		e.Reply = id
		return e, kindOf(e), nil
	case engine.Report:
		e.Reply = id
		return e, kindOf(e), nil
	case engine.SessionClose:
		e.Reply = id
		return e, kindOf(e), nil
	case engine.Inspect:
		e.Reply = id
		return e, kindOf(e), nil
	default:
		return nil, "", job.Errorf(job.KindInternal, "no_call", "%T is no call to an owner", ev)
	}
}

// kindOf names an event in logs and crash points.
func kindOf(ev engine.Event) string {
	switch ev.(type) {
	case engine.Tick:
		return "tick"
	case engine.Loaded:
		return "loaded"
	case engine.InboxPage:
		return "inbox"
	case engine.DuePage:
		return "due"
	case engine.BacklogPage:
		return "backlog"
	case engine.ScheduledPage:
		return "scheduled"
	case engine.ExecutionPage:
		return "executions"
	case engine.ShardPage:
		return "shards"
	case engine.UpstreamPage:
		return "upstream"
	case engine.AwaitingPage:
		return "awaiting"
	case engine.SessionOpen:
		return "open"
	case engine.Poll:
		return "poll"
	case engine.PollGone:
		return "poll_gone"
	case engine.Heartbeat:
		return "heartbeat"
	case engine.Report:
		return "report"
	case engine.SessionClose:
		return "close"
	case engine.Inspect:
		return "inspect"
	case engine.SetAside:
		return "set_aside"
	case engine.ClockStepped:
		return "clock_stepped"
	default:
		return "unknown"
	}
}
