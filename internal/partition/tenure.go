package partition

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const (
	idleTick  = time.Second             // an idle engine is stepped this often, so that the watchdog sees it live
	spinGuard = time.Millisecond        // least time between two steps that nothing but a timer asked for
	burstGap  = 10 * time.Millisecond   // a step longer ago says nothing about the load now
	stopWait  = 1500 * time.Millisecond // for the commit in flight at a graceful stop
)

// tenure is one engine under one epoch, and the runner that drives it: the life from acquiring a
// partition to losing, breaking or giving it back. Its run method is the runner's goroutine; fields
// without a remark belong to that goroutine.
type tenure struct {
	seat  *seat
	cfg   *Config
	log   *slog.Logger
	epoch job.Epoch
	row   store.PartitionRow
	trust *trust
	work  context.Context // of commits: outlives a graceful stop, ends with the tenure
	core  core
	wall  wall

	calls     chan *call            // written by callers
	gone      chan engine.ReplyID   // written by callers that gave up
	wake      chan struct{}         // written by anybody
	found     chan struct{}         // written by the node's look: the inbox has something, which may be on its way here already
	expected  atomic.Int32          // pages that will be handed over; written by anybody
	handed    chan engine.InboxPage // written by anybody; what does not fit in is read
	sends     chan sending          // written by the runner, closed at its end; one place
	committed chan committed        // written by commitAll
	pages     chan page             // written by the readers
	given     chan struct{}         // asks for the hand-over
	lost      chan error            // written once, by the renewal or an outranking call
	done      chan struct{}         // closed when the runner has ended
	over      chan struct{}         // closed when the own deadline is past, even if the runner hangs
	wg        sync.WaitGroup        // commit, readers, renewal
	seq       atomic.Int64          // of the newest commit; read by stats
	stepped   atomic.Int64          // mono of the newest finished step, in ns; read by the renewal

	queue    []item
	waiters  map[engine.ReplyID]*call
	flight   *flight // its commit is on the way
	prepared *flight // stepped meanwhile; its commit is sent after flight's has succeeded
	ahead    int64   // seq of the newest step, committed or not
	from     int64   // seq that was loaded
	reading  reading
	unread   int // entries in the queue that were handed over
	last     lastStep
	polled   time.Duration // mono when a poll was last answered with work; 0: none was
	commits  int64
	behind   int           // levels, as the engine was told
	born     time.Duration // mono
	loaded   time.Duration // mono
	late     lateness
}

// lastStep is what gathering knows of the step before.
type lastStep struct {
	at    time.Duration // mono when it began
	done  time.Duration // mono when it had ended
	calls int
	empty bool // it committed nothing
	alone bool // it took one event

	jitter time.Duration // drawn once, for the tick after it
}

// call is a caller's event on its way through the runner.
type call struct {
	ctx    context.Context
	event  engine.Event
	kind   string
	reply  engine.ReplyID
	answer chan answered // one place: the runner never waits for a caller
}

type answered struct {
	value any
	err   error
}

// item is one event in the queue, with its caller if it has one.
type item struct {
	event  engine.Event
	kind   string
	call   *call
	handed bool // a page that was not read
	at     time.Duration
}

// ending is how a tenure ended.
type ending struct {
	why   endKind
	err   error
	about engine.About // what it failed at outside of its events; zero: not known
	carry []item       // to be run one by one on the next engine
}

type endKind int

const (
	endStopped  endKind = iota + 1 // the node stops
	endLost                        // the lease is over, or somebody has a higher epoch
	endBroken                      // a commit failed or its outcome is unknown
	endGiven                       // handed over to another server
	endPoisoned                    // a step panicked or its data was refused
)

func newTenure(s *seat, row store.PartitionRow, tr *trust) *tenure {
	ec := s.n.cfg.Engine
	ec.Partition, ec.Epoch, ec.Behind = s.partition, row.Epoch, s.n.behind()
	log := s.log.With("epoch", row.Epoch)
	t := &tenure{
		seat: s, cfg: &s.n.cfg, log: log, epoch: row.Epoch, row: row, trust: tr,
		core:      s.n.cfg.newCore(ec),
		wall:      newWall(s.n, log),
		behind:    ec.Behind,
		calls:     make(chan *call),
		gone:      make(chan engine.ReplyID),
		wake:      make(chan struct{}, 1),
		found:     make(chan struct{}, 1),
		handed:    make(chan engine.InboxPage, 64),
		sends:     make(chan sending, 1),
		committed: make(chan committed, 1),
		pages:     make(chan page, pageKinds),
		given:     make(chan struct{}, 1),
		lost:      make(chan error, 1),
		done:      make(chan struct{}),
		over:      make(chan struct{}),
		waiters:   map[engine.ReplyID]*call{},
	}
	t.born = s.n.mono()
	t.stepped.Store(int64(t.born))
	s.tally.engineMade()
	return t
}

// run loads the engine and drives it until its end. Whatever the end, everybody who still waits is
// answered no_owner: nothing was acknowledged to them.
func (t *tenure) run(ctx context.Context) (end ending) {
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		t.seat.current.CompareAndSwap(t, nil)
		t.seat.loading.Store(false)
		close(t.done)
		cancel()
		t.refuseAll()
		close(t.sends)
		t.wg.Wait()
	}()
	t.wg.Go(func() { t.renew(inner) })
	if err := t.load(inner); err != nil {
		if ctx.Err() != nil {
			return ending{why: endStopped, carry: t.seat.carried}
		}
		return ending{why: endBroken, err: err, carry: t.seat.carried}
	}
	// A commit must not be cut off by a graceful stop, only by the tenure's end.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	t.reading.ctx, t.work = inner, work
	t.wg.Go(t.commitAll)
	if e := t.begin(); e != nil {
		return *e
	}
	t.seat.current.Store(t)
	t.seat.loading.Store(false)
	for {
		if e := t.advance(); e != nil {
			return *e
		}
		if e := t.wait(ctx); e != nil {
			return *e
		}
	}
}

// wait sleeps until something happens and takes it in.
func (t *tenure) wait(ctx context.Context) *ending {
	if e := t.trusted(); e != nil {
		return e
	}
	timer := time.NewTimer(t.sleepFor())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return t.stop(ctx)
	case err := <-t.lost:
		return &ending{why: endLost, err: err}
	case <-t.given:
		return t.handOver(ctx)
	case r := <-t.committed:
		return t.landed(r)
	case c := <-t.calls:
		t.enqueueCall(c)
	case id := <-t.gone:
		t.enqueueGone(id)
	case <-t.wake:
		t.reading.wanted[pageInbox] = true
	case <-t.found:
		t.reading.inboxDue = 0
	case p := <-t.handed:
		t.takeHanded(p)
	case p := <-t.pages:
		t.arrived(p)
	case <-timer.C:
	}
	return t.drain()
}

// drain takes in what is there already without waiting, up to a full step.
func (t *tenure) drain() *ending {
	for len(t.queue) < t.cfg.MaxEvents {
		select {
		case c := <-t.calls:
			t.enqueueCall(c)
		case id := <-t.gone:
			t.enqueueGone(id)
		case p := <-t.handed:
			t.takeHanded(p)
		case p := <-t.pages:
			t.arrived(p)
		default:
			return nil
		}
	}
	return nil
}

func (t *tenure) enqueueCall(c *call) {
	t.queue = append(t.queue, item{event: c.event, kind: c.kind, call: c, at: t.seat.n.mono()})
}

// enqueueGone drops a call that nobody waits for any more, or tells the engine when it knows the call.
func (t *tenure) enqueueGone(id engine.ReplyID) {
	for i, it := range t.queue {
		if it.call != nil && it.call.reply == id {
			t.queue = slices.Delete(t.queue, i, i+1)
			return
		}
	}
	if c, waits := t.waiters[id]; waits {
		delete(t.waiters, id)
		if _, poll := c.event.(engine.Poll); poll {
			ev := engine.PollGone{Reply: id}
			t.queue = append(t.queue, item{event: ev, kind: kindOf(ev), at: t.seat.n.mono()})
		}
	}
}

// ask hands a call to the runner and waits for its answer. The channel has no buffer: a call that was
// handed over is answered by the runner exactly once, whatever becomes of the tenure. Nobody waits for a runner that hangs
// beyond its right to answer.
func (t *tenure) ask(c *call) answered {
	select {
	case t.calls <- c:
	case <-t.done:
		return answered{err: noOwner(t.seat.partition)}
	case <-t.over:
		return answered{err: noOwner(t.seat.partition)}
	case <-c.ctx.Done():
		return answered{err: fmt.Errorf("call: %w", c.ctx.Err())}
	}
	select {
	case a := <-c.answer:
		return a
	case <-t.over:
		return answered{err: noOwner(t.seat.partition)}
	case <-c.ctx.Done():
		select {
		case t.gone <- c.reply:
		case <-t.done:
		case <-t.over:
		}
		return answered{err: fmt.Errorf("call: %w", c.ctx.Err())}
	}
}

// refuseAll answers everybody who still waits: nothing was acknowledged. In the order in which they
// called, so that virtual clusters replay.
func (t *tenure) refuseAll() {
	none := answered{err: noOwner(t.seat.partition)}
	for _, id := range slices.SortedFunc(maps.Keys(t.waiters), cmp.Compare[engine.ReplyID]) {
		t.waiters[id].answer <- none
	}
	for _, it := range t.queue {
		if it.call != nil {
			it.call.answer <- none
		}
	}
	t.waiters, t.queue = nil, nil
}

// lose ends the tenure; only the first reason counts.
func (t *tenure) lose(err error) {
	select {
	case t.lost <- err:
	default:
	}
}

// lookUp says that the inbox is due to be read. What is handed over meanwhile is taken all the same, as behind no hint of others.
func (t *tenure) lookUp() {
	select {
	case t.found <- struct{}{}:
	default:
	}
}

// wakeUp hints that the inbox has something.
func (t *tenure) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
