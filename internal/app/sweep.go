package app

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const (
	sweepFirst  = time.Minute // after the start, when workers are back
	sweepEach   = 10 * time.Minute
	sweepAtOnce = 200                  // rows of one transaction
	sweepPause  = 5 * time.Millisecond // at least, between two of them
)

// sweep deletes what is old, every now and then, until ctx ends.
func (a *App) sweep(ctx context.Context) {
	next := time.NewTimer(sweepFirst)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if h, ok := a.node.Owner(0); !ok || !h.Local { // one of several servers does it
			next.Reset(sweepEach)
			continue
		}
		if err := a.sweepAll(ctx); err != nil && ctx.Err() == nil {
			a.cfg.Logger.Warn("old rows could not be deleted; trying again later", "in", sweepEach, "err", err)
		}
		next.Reset(sweepEach)
	}
}

// sweepAll deletes all that is old now. The first error ends it.
func (a *App) sweepAll(ctx context.Context) error {
	keep, st := a.cfg.Keep, a.store
	before := func(kept time.Duration) job.Instant { return job.InstantOf(a.cfg.Wall().Add(-kept)) }
	all := []func(limit int) (int, error){
		func(n int) (int, error) { return st.SweepRequestKeys(ctx, before(keep.RequestKeys), n) },
		func(n int) (int, error) { return st.SweepDecisions(ctx, before(keep.Decisions), n) },
	}
	for p := range a.node.Count() {
		all = append(all, func(n int) (int, error) { return st.SweepJournal(ctx, p, before(keep.Journal), n) })
	}
	namespaces, err := st.Namespaces(ctx)
	if err != nil {
		return err
	}
	for _, ns := range namespaces {
		own, err := st.Retention(ctx, ns)
		if err != nil {
			return err
		}
		k := keep.Over(own)
		all = append(all,
			func(n int) (int, error) {
				return st.SweepLogs(ctx, store.SweepLogs{Namespace: ns, Before: before(min(k.Logs, k.Executions)), Limit: n})
			},
			func(n int) (int, error) { return st.SweepExecutions(ctx, ns, before(k.Executions), n) })
	}
	for _, step := range all {
		if err := inSteps(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// inSteps repeats a step until nothing is left. It rests as long as a step took, so that the writer is free for
// others at least half of the time.
func inSteps(ctx context.Context, step func(limit int) (int, error)) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-rest.C:
		}
		begun := time.Now()
		n, err := step(sweepAtOnce)
		if err != nil || n < sweepAtOnce {
			return err
		}
		rest.Reset(max(time.Since(begun), sweepPause))
	}
}
