package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taktsched/takt"
)

// patience is how long nothing may end before a run counts as stuck.
const patience = 30 * time.Second

// drain waits until every execution has ended.
func drain(ctx context.Context, t *tally, patience time.Duration) error {
	for {
		waiting, changed := t.waiting()
		if waiting == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(patience):
			return fmt.Errorf("%d of %d executions have not ended, and none has for %v", waiting, t.asked.Load(), patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ours counts what the handlers and the acknowledgements of this process tell: each shard ran once and ended once.
func (t *tally) ours() error {
	var never, twice, open, again int64
	for n := range t.asked.Load() {
		r := t.at(n)
		switch runs := r.runs.Load(); {
		case runs < t.shards:
			never++
		case runs > t.shards:
			twice++
		}
		switch acks := r.acks.Load(); {
		case acks < t.shards:
			open++
		case acks > t.shards:
			again++
		}
	}
	if never+twice+open+again+t.alien.Load() == 0 {
		return nil
	}
	return fmt.Errorf("of %d executions %d did not run whole, %d ran more than once, %d were not acknowledged whole, %d more than once; "+
		"%d runs were of others", t.asked.Load(), never, twice, open, again, t.alien.Load())
}

// theirs counts what the server tells: as many executions of the jobs as were asked for, and all succeeded.
func theirs(ctx context.Context, client *takt.Client, jobs []string, want int64) error {
	var found, other int64
	example := ""
	for page := (takt.Page{Limit: 500}); len(jobs) > 0; {
		list, err := client.Executions(ctx, takt.ExecutionQuery{Job: jobs[0], Page: page})
		if err != nil {
			return fmt.Errorf("read the executions back: %w", err)
		}
		for i := range list.Items {
			found++
			if e := &list.Items[i]; e.State != "succeeded" {
				other++
				example = e.ID + " is " + e.State
			}
		}
		if page.After = list.Next; page.After == "" {
			jobs = jobs[1:]
		}
	}
	switch {
	case found != want:
		return fmt.Errorf("%d executions were asked for, the server has %d", want, found)
	case other > 0:
		return fmt.Errorf("%d of %d executions have not succeeded, such as %s", other, want, example)
	}
	return nil
}

// ErrNotEmpty says that the namespace has jobs already.
var ErrNotEmpty = errors.New("the namespace has jobs already")
