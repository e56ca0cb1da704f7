package control

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// Limits of what people may send.
const (
	MaxParams     = job.MaxParams // bytes of a job's params and of a request's, laid over each other too
	MaxRequestKey = 128           // visible ASCII characters
	MaxNote       = 1 << 10       // bytes of what a person says about a cancel or rerun
)

// Effect tells whether a write is in force.
type Effect string

// The effects.
const (
	Effective Effect = "effective" // the owner has taken it in
	Pending   Effect = "pending"   // it is stored and will be taken in; the owner was not that fast
)

// Config is what a Control is built with.
type Config struct {
	Control store.Control
	Reader  store.Reader
	Logs    store.Logs    // nil: none are kept
	Sweeper store.Sweeper // for the retention of namespaces; nil: nobody may ask for it
	Keep    Keep          // of namespaces that say nothing else; zero fields mean the defaults
	Owners  partition.Owners
	Now     func() time.Time // the node's wall clock
	Random  io.Reader        // for ids; nil: crypto/rand
	// EffectWait is how long a write waits for its owner; 0: 1 s.
	EffectWait time.Duration
	// LiveWait bounds the look into an owner's memory; 0: 2 s.
	LiveWait time.Duration
	// Level is the newest engine.Level that all live servers know; nil: this one's.
	Level func() int
	// LogLimit bounds the log of one attempt, in bytes; 0: DefaultLogLimit.
	LogLimit int64
}

// Control carries out what people ask for. It is safe for concurrent use.
type Control struct {
	write      store.Control
	read       store.Reader
	logs       store.Logs
	sweeper    store.Sweeper
	keep       Keep
	logLimit   int64
	logDesk    *desk[store.LogChunk, store.LogAppended]
	triggering *desks[store.Trigger, store.Triggered]
	places     places
	owners     partition.Owners
	now        func() time.Time
	random     io.Reader
	effectWait time.Duration
	liveWait   time.Duration
	level      func() int
}

// New makes a Control. A missing part is a wiring mistake and panics.
func New(c Config) *Control {
	if c.Control == nil || c.Reader == nil || c.Owners == nil || c.Now == nil {
		panic("control: Control, Reader, Owners and Now are required")
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.EffectWait == 0 {
		c.EffectWait = time.Second
	}
	if c.LiveWait == 0 {
		c.LiveWait = 2 * time.Second
	}
	if c.LogLimit == 0 {
		c.LogLimit = DefaultLogLimit
	}
	return &Control{logDesk: newLogDesk(), triggering: &desks[store.Trigger, store.Triggered]{create: newTriggerDesk}, write: c.Control, read: c.Reader, logs: c.Logs, sweeper: c.Sweeper, keep: c.Keep.Filled(), logLimit: c.LogLimit, owners: c.Owners, now: c.Now, random: c.Random,
		effectWait: c.EffectWait, liveWait: c.LiveWait, level: c.Level}
}

// effect wakes the owner and waits until it has consumed the entry, at most EffectWait. It is called
// after the write has committed, so an ended ctx makes it "pending", never an error.
func (c *Control) effect(ctx context.Context, w store.Written) Effect {
	if w.Entry != 0 {
		c.owners.Wake(w.Partition)
	}
	return c.awaited(ctx, w)
}

// awaited is effect for who has told the owner already.
func (c *Control) awaited(ctx context.Context, w store.Written) Effect {
	if w.Entry == 0 {
		return Effective
	}
	ctx, cancel := context.WithTimeout(ctx, c.effectWait)
	defer cancel()
	if c.owners.AwaitEntry(ctx, w.Partition, w.Entry) {
		return Effective
	}
	return Pending
}

func (c *Control) instant() job.Instant { return job.InstantOf(c.now()) }

func (c *Control) draw(b []byte) error {
	if _, err := io.ReadFull(c.random, b); err != nil {
		return job.Errorf(job.KindInternal, "no_random_bits", "no id could be drawn").WithCause(fmt.Errorf("read random bits: %w", err))
	}
	return nil
}
