package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

const lookEach = 200 * time.Millisecond

// poll asks until ok says true. It ends with an error when limit has passed, ctx has ended, a worker died
// by itself, or ok failed.
func (d *Demo) poll(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for {
		done, err := ok()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if done || err != nil {
			return err
		}
		if p := d.procs.died(); p != nil {
			return fmt.Errorf("worker %s ended by itself while the demo waited for %s", p.name, what)
		}
		select {
		case <-tick.C:
		case <-d.server.ended:
			return fmt.Errorf("the server ended while the demo waited for %s: %w", what, d.server.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("waited %v for %s", limit, what)
		}
	}
}

// await polls a condition on the shards; that the execution ends before is an error.
func (d *Demo) await(ctx context.Context, limit time.Duration, what string, ok func([]takt.ShardStatus) (bool, error)) error {
	return d.poll(ctx, limit, what, func() (bool, error) {
		ended, err := d.look(ctx)
		if err != nil {
			return false, err
		}
		if len(d.shards) != d.cfg.Shards {
			return false, nil // the owner has not taken the request in yet
		}
		done, err := ok(d.shards)
		if !done && err == nil && ended {
			return false, fmt.Errorf("the execution ended while the demo waited for %s", what)
		}
		return done, err
	})
}

// awaitEnd polls until every shard has ended.
func (d *Demo) awaitEnd(ctx context.Context, limit time.Duration) error {
	return d.poll(ctx, limit, "the end of the execution", func() (bool, error) { return d.look(ctx) })
}

// look reads the shards, shows them, and tells whether all have ended.
func (d *Demo) look(ctx context.Context) (ended bool, err error) {
	list, err := d.client.Shards(ctx, d.execution, takt.Page{Limit: d.cfg.Shards})
	if err != nil {
		return false, err
	}
	d.shards = list.Items
	d.view.show(d.shards)
	ended = len(d.shards) > 0
	for _, s := range d.shards {
		ended = ended && s.EndedAt != nil
	}
	return ended, nil
}

// withLogs adds the last lines of the server's and the workers' logs to an error, for the data may be gone
// in a moment.
func (d *Demo) withLogs(err error) error {
	names, globErr := filepath.Glob(filepath.Join(d.data, "*.log"))
	if globErr != nil {
		return err
	}
	var b strings.Builder
	for _, name := range names {
		text, readErr := os.ReadFile(name)
		if readErr != nil || len(text) == 0 {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "\n--- %s\n%s", filepath.Base(name), strings.Join(lines[max(0, len(lines)-8):], "\n"))
	}
	return fmt.Errorf("%w%s", err, b.String())
}
