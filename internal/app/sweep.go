package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/control"
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

// sweepAll deletes all that is old now. One kind that cannot be deleted keeps no other.
func (a *App) sweepAll(ctx context.Context) error {
	var failed []error
	namespaces, err := a.kept(ctx)
	if err != nil {
		return err
	}
	w := sweeper{keep: a.cfg.Keep, longest: a.cfg.Keep, now: a.node.Now()} // the database's clock: this server's may be years off (R9)
	for _, k := range namespaces {
		w.longest.Executions, w.longest.Logs = max(w.longest.Executions, k.Executions), max(w.longest.Logs, k.Logs)
	}
	if st, ok := a.store.(store.Months); ok {
		w.months = true
		if _, err := st.SweepMonths(ctx, store.Over{Executions: w.before(w.longest.Executions), Logs: w.before(w.longest.Logs),
			Decisions: w.before(w.keep.Decisions), Journal: w.before(w.keep.Journal), Now: job.InstantOf(w.now)}); err != nil {
			failed = append(failed, err)
		}
	}
	for _, step := range w.steps(ctx, a.store, a.node.Count(), namespaces) {
		if err := inSteps(ctx, step); err != nil && ctx.Err() == nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// kept is what each namespace keeps.
func (a *App) kept(ctx context.Context) (map[string]control.Keep, error) {
	names, err := a.store.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]control.Keep{}
	for _, ns := range names {
		own, err := a.store.Retention(ctx, ns)
		if err != nil {
			return nil, err
		}
		k := a.cfg.Keep.Over(own)
		k.Logs = min(k.Logs, k.Executions)
		all[ns] = k
	}
	return all, nil
}

// Where months are dropped whole, what is kept longest waits for that: its rows are deleted only when they are older by
// what two months have at most, for a month may have to stay. What is kept for less than a month is deleted at once.
const (
	monthAtMost = 31 * 24 * time.Hour
	monthsLate  = 2 * monthAtMost
)

// sweeper says what is old.
type sweeper struct {
	keep, longest control.Keep
	now           time.Time
	months        bool // the store drops months whole
}

func (w *sweeper) before(kept time.Duration) job.Instant { return job.InstantOf(w.now.Add(-kept)) }

// small is before for rows that are deleted in small steps.
func (w *sweeper) small(kept, longest time.Duration) job.Instant {
	if w.months && kept == longest && kept >= monthAtMost {
		kept += monthsLate
	}
	return w.before(kept)
}

func (w *sweeper) steps(ctx context.Context, st store.Store, partitions int, namespaces map[string]control.Keep) []func(limit int) (int, error) {
	all := []func(limit int) (int, error){
		func(n int) (int, error) { return st.SweepRequestKeys(ctx, w.before(w.keep.RequestKeys), n) },
		func(n int) (int, error) {
			return st.SweepDecisions(ctx, w.small(w.keep.Decisions, w.keep.Decisions), n)
		},
	}
	if jobs, ok := st.(store.JobSweeper); ok {
		all = append(all,
			func(n int) (int, error) { return jobs.SweepJobs(ctx, w.before(w.longest.Executions), n) },
			func(n int) (int, error) { return jobs.SweepPoison(ctx, w.before(w.keep.Journal), n) })
	}
	for p := range partitions {
		all = append(all, func(n int) (int, error) { return st.SweepJournal(ctx, p, w.small(w.keep.Journal, w.keep.Journal), n) })
	}
	for _, ns := range slices.Sorted(maps.Keys(namespaces)) {
		k := namespaces[ns]
		all = append(all,
			func(n int) (int, error) {
				return st.SweepLogs(ctx, store.SweepLogs{Namespace: ns, Before: w.small(k.Logs, w.longest.Logs), Limit: n})
			},
			func(n int) (int, error) {
				return st.SweepExecutions(ctx, ns, w.small(k.Executions, w.longest.Executions), n)
			})
		if jobs, ok := st.(store.JobSweeper); ok { // backfills as long as what they ran
			all = append(all, func(n int) (int, error) {
				return jobs.SweepBackfills(ctx, ns, w.small(k.Executions, w.longest.Executions), n)
			})
		}
	}
	return all
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
