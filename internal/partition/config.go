package partition

import (
	"context"
	"log/slog"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Store is what a node needs of the database.
type Store interface {
	store.Partitions
	store.Engine
	store.Servers
	EntryPending(ctx context.Context, entry int64) (bool, error)
}

// Config is what a node is built with. Zero values of optional fields are good.
type Config struct {
	Store       Store
	Server      string        // name of this server; places it in the order of Rank
	Incarnation string        // this life of the server: the owner that partition rows name; never used twice
	Sole        bool          // the holder of the data directory's lock: takes every partition at once
	Engine      engine.Config // zero: engine.Default; Partition, Epoch and the lengths of Lease are filled in
	Lease       Lease         // filled by Filled, refused by Check

	Self  store.Server                              // what others read of this server: Address, Key, Build; Level: 0 means engine.Level. The rest is filled in
	Reach func(context.Context, store.Server) error // tells whether another server answers at its address; nil: nobody is ever marked unreachable

	NoLoss bool // a commit is confirmed only when every standby that may be promoted has it: after a failover nothing is waited for (R7)

	Wall   func() time.Time     // the one wall clock of the node (R9); nil: time.Now
	Live   func() []string      // names of the live servers, this one included; nil: by their rows, or this one alone when it is the sole one
	Jitter func() time.Duration // added to every tick of every loop, so that virtual clusters replay; nil: none. Called by many goroutines
	Seed   uint64               // of the back-off's jitter
	Logger *slog.Logger         // nil: discard

	MaxEvents int           // taken into one step; 0: 512
	InboxPage int           // entries read at once; 0: 256
	Gather    time.Duration // longest wait for more calls after a step that had several; 0: 2 ms

	Observe  func(Observation)  // called by the runner's goroutine after each commit, and after a step that had only trace facts; nil: nobody looks
	Crash    func(point string) // tests: called at "before_commit/<kind>", "after_commit/<kind>" and "between_effects/<kind>"; when it panics the node dies there, without a word to anybody
	Switches Switches           // test builds only

	newCore func(engine.Config) core // tests: another core than engine.New
}

// Switches remove one part of the model each, so that a test can show that the part is needed. All
// false in production; nothing but tests sets them. (The missing fence is a store wrapper of the tests.)
type Switches struct {
	KeepEpoch        bool // a failed or unknown commit ends the engine but not its epoch
	NegativesAtOnce  bool // negative answers do not wait for commits
	NoDeadline       bool // the owner does not look at its own deadline
	EpochsIgnored    bool // calls that have met a higher epoch are answered
	RenewWithoutStep bool // no watchdog: a runner that hangs keeps its lease
	NeverSitsOut     bool // a server that nobody reaches keeps what it owns
	NeverRests       bool // a partition moves for balance whenever somebody comes first for it
	ReleasesUnsaid   bool // a server that stops releases what it has before it says that it stops
	ClockUpperBound  bool // the database's clock is taken to be as far as it can be
	LineageIgnored   bool // a database that forgot its tail is used as if it had not
}

// Observation is one step as checkers see it.
type Observation struct {
	Partition int
	Owner     string
	Epoch     job.Epoch
	Seq       int64 // of its commit; of the newest prepared one for a step that committed nothing
	Now       engine.Now
	Facts     []engine.Fact // durable by now
	Trace     []engine.Fact
}

// core is what the runner needs of *engine.Engine.
type core interface {
	Step(now engine.Now, events []engine.Event) engine.Result
	NextWake() (time.Duration, bool)
}

// filled returns c with defaults, or an error that says what is missing or contradicts itself.
func (c Config) filled() (Config, error) {
	if c.Store == nil || c.Incarnation == "" {
		return c, job.Errorf(job.KindInternal, "bad_config", "a node needs a store and an incarnation")
	}
	c.Lease = c.Lease.Filled()
	if err := c.Lease.Check(c.Sole); err != nil {
		return c, err
	}
	if c.Engine == (engine.Config{}) {
		c.Engine = engine.Default()
	}
	c.Engine.LeaseTTL, c.Engine.Beat, c.Engine.Margin = c.Lease.TTL, c.Lease.Beat, c.Lease.Margin
	c.Engine.OwnerTTL = c.Lease.OwnerTTL
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Self.Level == 0 {
		c.Self.Level = engine.Level
	}
	if c.Live == nil && c.Sole {
		c.Live = func() []string { return []string{c.Server} }
	}
	if c.Jitter == nil {
		c.Jitter = func() time.Duration { return 0 }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxEvents == 0 {
		c.MaxEvents = 512
	}
	if c.InboxPage == 0 {
		c.InboxPage = 256
	}
	if c.Gather == 0 {
		c.Gather = 2 * time.Millisecond
	}
	if c.newCore == nil {
		c.newCore = func(ec engine.Config) core { return engine.New(ec) }
	}
	return c, nil
}
