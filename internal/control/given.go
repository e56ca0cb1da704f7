package control

import (
	"context"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Bounds of what is read of the results of parents.
const (
	GivenBytes     = 256 << 10 // of results that come with one assignment …
	GivenPollBytes = 4 << 20   // … and with all of one answer
	GivenPageBytes = 1 << 20   // of results of one page; a single larger one comes all the same
	givenRows      = 256       // shards that are looked at for one execution …
	givenPollRows  = 4096      // … and for all of one answer
	givenAtOnce    = 16        // executions of one transaction
)

// Given says by which executions of parents each of some was decided, with what those gave as far as it is small: most bytes of
// results for each. When it cannot be read, or ctx ends first, it says so of as many as were read by then.
func (c *Control) Given(ctx context.Context, ids []job.ExecutionID, most int) (map[job.ExecutionID][]store.Given, error) {
	found := make(map[job.ExecutionID][]store.Given, len(ids))
	rows := min(givenRows, givenPollRows/max(len(ids), 1))
	for left := ids; len(left) > 0; {
		some := left[:min(len(left), givenAtOnce)]
		left = left[len(some):]
		asks := make([]store.GivenAsk, len(some))
		for i, id := range some {
			asks[i] = store.GivenAsk{Execution: id, Rows: rows, Bytes: most}
		}
		all, err := c.read.Given(ctx, asks)
		if err != nil {
			return found, err
		}
		for i, id := range some {
			found[id] = all[i]
		}
	}
	return found, nil
}

// GivenBy reads on in what one parent gave, for the holder of a shard of the child.
func (c *Control) GivenBy(ctx context.Context, child job.ExecutionID, who store.Holder, parent string, from int) (store.Given, error) {
	all, err := c.read.Given(ctx, []store.GivenAsk{{Execution: child, Holder: &who, Parent: parent, From: from, Rows: store.DefaultLimit, Bytes: GivenPageBytes, Least: true}})
	if err != nil {
		return store.Given{}, err
	}
	if len(all[0]) == 0 {
		return store.Given{}, job.Errorf(job.KindNotFound, "not_a_parent", "no execution of a job %.64q decided this one", parent).WithField("job").
			WithHint("name a job of the assignment's parents")
	}
	return all[0][0], nil
}
