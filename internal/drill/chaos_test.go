package drill_test

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// commitFault is what becomes of one commit.
type commitFault string

const (
	commitFails   commitFault = "fails"          // nothing is written, and that is known
	commitLost    commitFault = "unknown, lost"  // the outcome is not known; nothing was written
	commitLanded  commitFault = "unknown, there" // the outcome is not known; it was written
	commitLater   commitFault = "unknown, later" // the outcome is not known; it lands when land is called
	commitHeld    commitFault = "held"           // on the way until land is called; then its true outcome is told
	commitRefused commitFault = "refused"        // the store refuses the data
)

// chaos is a store whose commits and renewals fail by rule.
type chaos struct {
	store.Store
	noFence bool                // commits whatever owner, epoch and seq say (mutant)
	pace    func(method string) // lets a moment pass before each call; nil: none

	mu       sync.Mutex
	rule     func(n string, b *engine.Batch) commitFault
	n        map[int]int                       // commits, by partition
	mute     bool                              // nothing of the keeper's reaches the database
	cut      bool                              // nothing does
	slow     func(method string) time.Duration // see starve; nil: there are connections enough
	dead     bool                              // the process of this store's server was killed: nothing reaches the database
	underway []func() error
}

// of is a word of its own for each partition: owners of several often do the same at one instant, and what is drawn for them
// must not keep them together.
func of(word string, partition int) string {
	if partition == 0 {
		return word
	}
	return word + "@" + strconv.Itoa(partition)
}

func (c *chaos) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
}

func (c *chaos) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// setRule says what becomes of commits from now on. n is the number of the commit in its partition (see of): what befalls one does
// not depend on which of two partitions comes first.
func (c *chaos) setRule(rule func(n string, b *engine.Batch) commitFault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rule = rule
}

func (c *chaos) setMute(mute bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = mute
}

// setCut cuts the server off from the database, or ends that.
func (c *chaos) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut, c.mute = cut, cut
}

// reaches lets a moment pass, and a call wait in vain while the server is cut off.
func (c *chaos) reaches(ctx context.Context, method string) error {
	c.moment(method)
	c.mu.Lock()
	cut, dead := c.cut, c.dead
	c.mu.Unlock()
	switch {
	case dead:
		return job.Errorf(job.KindUnavailable, "chaos", "the process is dead")
	case !cut:
		return c.queue(ctx, method)
	}
	ctx, cancel := context.WithTimeout(ctx, goneAfter)
	defer cancel()
	<-ctx.Done()
	return job.Errorf(job.KindUnavailable, "chaos", "the database does not answer")
}

// goneAfter is when a connection that brings nothing is given up.
const goneAfter = 3 * time.Second

func (c *chaos) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	if err := c.reaches(ctx, of("commit", f.Partition)); err != nil {
		return job.Errorf(job.KindUnknown, "chaos", "the connection broke while the commit was under way")
	}
	c.mu.Lock()
	if c.n == nil {
		c.n = map[int]int{}
	}
	c.n[f.Partition]++
	var fault commitFault
	if c.dead {
		fault = commitLost
	} else if c.rule != nil {
		fault = c.rule(of(strconv.Itoa(c.n[f.Partition]), f.Partition), b)
	}
	c.mu.Unlock()
	kept := *b
	unknown := job.Errorf(job.KindUnknown, "chaos", "the connection broke while the commit was under way")
	switch fault {
	case commitFails:
		return job.Errorf(job.KindUnavailable, "chaos", "the database is away")
	case commitRefused:
		return job.Errorf(job.KindRejected, "chaos", "the database refuses this data")
	case commitLost:
		return unknown
	case commitLanded:
		if err := c.through(ctx, f, b); err != nil {
			return err
		}
		return unknown
	case commitLater:
		c.keep(func() error { return c.through(context.WithoutCancel(ctx), f, &kept) })
		return unknown
	case commitHeld:
		outcome := make(chan error, 1)
		c.keep(func() error {
			err := c.through(context.WithoutCancel(ctx), f, &kept)
			outcome <- err
			return err
		})
		select {
		case err := <-outcome:
			return err
		case <-ctx.Done():
			return unknown
		}
	}
	return c.through(ctx, f, b)
}

func (c *chaos) through(ctx context.Context, f store.Fence, b *engine.Batch) error {
	if !c.noFence {
		return c.Store.Commit(ctx, f, b)
	}
	rows, err := c.Store.PartitionRows(ctx)
	if err != nil {
		return err
	}
	blind := *b
	blind.Seq = rows[f.Partition].Seq + 1
	return c.Store.Commit(ctx, rows[f.Partition].Fence, &blind)
}

func (c *chaos) keep(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underway = append(c.underway, f)
}

// waiting tells how many commits are under way.
func (c *chaos) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.underway)
}

// land lets the oldest commit under way reach the database.
func (c *chaos) land() error {
	c.mu.Lock()
	f := c.underway[0]
	c.underway = c.underway[1:]
	c.mu.Unlock()
	return f()
}

// silence is what a call meets that the database does not answer; nil when it does.
func (c *chaos) silence(ctx context.Context, method string) error {
	c.moment(method)
	c.mu.Lock()
	mute, dead := c.mute, c.dead
	c.mu.Unlock()
	switch {
	case dead:
		return job.Errorf(job.KindUnavailable, "chaos", "the process is dead")
	case !mute:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, goneAfter)
	defer cancel()
	<-ctx.Done()
	return job.Errorf(job.KindUnavailable, "chaos", "the database does not answer")
}

func (c *chaos) PartitionRows(ctx context.Context) ([]store.PartitionRow, error) {
	if err := c.silence(ctx, "rows"); err != nil {
		return nil, err
	}
	return c.Store.PartitionRows(ctx)
}

func (c *chaos) AcquirePartition(ctx context.Context, seen store.PartitionRow, owner string, clock int64, level int) (store.PartitionRow, error) {
	if err := c.silence(ctx, of("acquire", seen.Partition)); err != nil {
		return store.PartitionRow{}, err
	}
	return c.Store.AcquirePartition(ctx, seen, owner, clock, level)
}

func (c *chaos) ReleasePartition(ctx context.Context, f store.Fence) error {
	if err := c.silence(ctx, of("release", f.Partition)); err != nil {
		return err
	}
	return c.Store.ReleasePartition(ctx, f)
}

func (c *chaos) RenewPartition(ctx context.Context, f store.Fence) (int64, error) {
	if err := c.silence(ctx, of("renew", f.Partition)); err != nil {
		return 0, err
	}
	return c.Store.RenewPartition(ctx, f)
}

func (c *chaos) moment(method string) {
	if c.pace != nil {
		c.pace(method)
	}
}

func (c *chaos) InboxPage(ctx context.Context, partition, limit int) (engine.InboxPage, error) {
	if err := c.reaches(ctx, of("inbox", partition)); err != nil {
		return engine.InboxPage{}, err
	}
	return c.Store.InboxPage(ctx, partition, limit)
}

func (c *chaos) DuePage(ctx context.Context, partition int, w engine.WantDue) (engine.DuePage, error) {
	if err := c.reaches(ctx, of("due", partition)); err != nil {
		return engine.DuePage{}, err
	}
	return c.Store.DuePage(ctx, partition, w)
}

func (c *chaos) ScheduledPage(ctx context.Context, partition int, w engine.WantScheduled) (engine.ScheduledPage, error) {
	if err := c.reaches(ctx, of("scheduled", partition)); err != nil {
		return engine.ScheduledPage{}, err
	}
	return c.Store.ScheduledPage(ctx, partition, w)
}

func (c *chaos) BacklogPage(ctx context.Context, partition int, w engine.WantBacklog) (engine.BacklogPage, error) {
	if err := c.reaches(ctx, of("backlog", partition)); err != nil {
		return engine.BacklogPage{}, err
	}
	return c.Store.BacklogPage(ctx, partition, w)
}

func (c *chaos) ExecutionPage(ctx context.Context, partition int, ids []job.ExecutionID) (engine.ExecutionPage, error) {
	if err := c.reaches(ctx, of("executions", partition)); err != nil {
		return engine.ExecutionPage{}, err
	}
	return c.Store.ExecutionPage(ctx, partition, ids)
}

func (c *chaos) ShardPage(ctx context.Context, partition int, refs []engine.ShardRef) (engine.ShardPage, error) {
	if err := c.reaches(ctx, of("shards", partition)); err != nil {
		return engine.ShardPage{}, err
	}
	return c.Store.ShardPage(ctx, partition, refs)
}

func (c *chaos) UpstreamPage(ctx context.Context, partition int, asks []engine.UpstreamAsk) (engine.UpstreamPage, error) {
	if err := c.reaches(ctx, of("upstream", partition)); err != nil {
		return engine.UpstreamPage{}, err
	}
	return c.Store.UpstreamPage(ctx, partition, asks)
}

func (c *chaos) AwaitingPage(ctx context.Context, partition int, w engine.WantAwaiting) (engine.AwaitingPage, error) {
	if err := c.reaches(ctx, of("awaiting", partition)); err != nil {
		return engine.AwaitingPage{}, err
	}
	return c.Store.AwaitingPage(ctx, partition, w)
}

func (c *chaos) LoadPartition(ctx context.Context, partition int) (engine.Loaded, error) {
	if err := c.reaches(ctx, of("load", partition)); err != nil {
		return engine.Loaded{}, err
	}
	return c.Store.LoadPartition(ctx, partition)
}

func (c *chaos) EntryPending(ctx context.Context, entry int64) (bool, error) {
	if err := c.reaches(ctx, "pending"); err != nil {
		return true, err
	}
	return c.Store.EntryPending(ctx, entry)
}
