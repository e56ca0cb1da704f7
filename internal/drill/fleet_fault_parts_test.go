package drill_test

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// timed is a server's way to a database that has a clock of its own, as PostgreSQL has.
type timed struct {
	*chaos
	f *fleet
}

// DatabaseTime implements store.Timekeeper.
func (d timed) DatabaseTime(ctx context.Context) (time.Time, error) {
	if err := d.silence(ctx, "time"); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(d.f.baseOff.Load())), nil
}

// starve makes everything but renewals and looks wait for a connection, for as long as wait says; nil ends that.
func (c *chaos) starve(wait func(method string) time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = wait
}

// queue waits for a connection.
func (c *chaos) queue(ctx context.Context, method string) error {
	c.mu.Lock()
	slow := c.slow
	c.mu.Unlock()
	if slow == nil {
		return nil
	}
	timer := time.NewTimer(slow(method))
	defer timer.Stop()
	ctx, cancel := context.WithTimeout(ctx, goneAfter)
	defer cancel()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return job.Errorf(job.KindUnavailable, "chaos", "no connection to the database is free")
	}
}

// hang makes the runners of a server stand still, each at its next step, until letGo.
func (f *fleet) hang(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stuck[name] == nil {
		f.stuck[name] = make(chan struct{})
	}
}

func (f *fleet) letGo(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ch := f.stuck[name]; ch != nil {
		close(ch)
		delete(f.stuck, name)
	}
}

// hangs is where a runner stands still.
func (f *fleet) hangs(name string) {
	f.mu.Lock()
	ch := f.stuck[name]
	f.mu.Unlock()
	if ch != nil {
		<-ch
	}
}
