package control

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// looksAtOnce bounds how many owners one list asks at the same time.
const looksAtOnce = 8

// Seen is a list that was put together from owners' memories. Away counts the owners that did not answer, of
// Asked: what their pools have is missing.
type Seen[T any] struct {
	Items []T
	Asked int // partitions
	Away  int // of them
}

// Workers lists the live sessions of a namespace, by pool, worker and session; pool "" for all. KindNoOwner when no
// owner answers at all.
func (c *Control) Workers(ctx context.Context, namespace, pool string) (Seen[engine.SessionView], error) {
	seen, err := gather(ctx, c, c.partitionsOf(namespace, pool), engine.InspectQuery{Namespace: namespace, Pool: pool},
		func(v *engine.Inspected) []engine.SessionView {
			return slices.DeleteFunc(v.Sessions, func(s engine.SessionView) bool {
				return s.Session.Namespace != namespace || pool != "" && s.Session.Pool != pool
			})
		})
	slices.SortFunc(seen.Items, func(a, b engine.SessionView) int {
		return cmp.Or(cmp.Compare(a.Session.Pool, b.Session.Pool), cmp.Compare(a.Session.Worker, b.Session.Worker),
			cmp.Compare(a.Session.ID, b.Session.ID))
	})
	return seen, err
}

// Pools lists the pools of a namespace that have workers or work, by name. KindNoOwner when no owner answers at all.
func (c *Control) Pools(ctx context.Context, namespace string) (Seen[engine.PoolView], error) {
	seen, err := gather(ctx, c, c.partitionsOf(namespace, ""), engine.InspectQuery{Namespace: namespace},
		func(v *engine.Inspected) []engine.PoolView {
			return slices.DeleteFunc(v.Pools, func(p engine.PoolView) bool { return p.Namespace != namespace })
		})
	slices.SortFunc(seen.Items, func(a, b engine.PoolView) int { return cmp.Compare(a.Pool, b.Pool) })
	return seen, err
}

// gather looks into the memories of the owners of several partitions. A partition without an owner, for a moment or
// for long, neither fails the list nor is silently missing.
func gather[T any](ctx context.Context, c *Control, partitions []int, q engine.InspectQuery, of func(*engine.Inspected) []T) (Seen[T], error) {
	answers, errs := make([]*engine.Inspected, len(partitions)), make([]error, len(partitions))
	places := make(chan struct{}, looksAtOnce)
	var wg sync.WaitGroup
	for i, p := range partitions {
		places <- struct{}{}
		wg.Go(func() {
			answers[i], errs[i] = c.inspect(ctx, p, q)
			<-places
		})
	}
	wg.Wait()
	out := Seen[T]{Asked: len(partitions)}
	var first error
	for i, err := range errs {
		switch {
		case err == nil:
			out.Items = append(out.Items, of(answers[i])...)
		case !away(err):
			return Seen[T]{}, err
		default:
			out.Away++
			first = cmp.Or(first, err)
		}
	}
	if out.Away == out.Asked {
		return Seen[T]{}, first
	}
	return out, nil
}

func (c *Control) partitionsOf(namespace, pool string) []int {
	n := c.owners.Count()
	if pool != "" {
		return []int{partition.Of(namespace, pool, n)}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// inspect looks into an owner's memory.
func (c *Control) inspect(ctx context.Context, p int, q engine.InspectQuery) (*engine.Inspected, error) {
	ctx, cancel := context.WithTimeout(ctx, c.liveWait)
	defer cancel()
	reply, err := c.owners.Call(ctx, p, 0, engine.Inspect{Query: q})
	if err != nil {
		return nil, err
	}
	seen, ok := reply.Value.(*engine.Inspected)
	if !ok {
		return nil, job.Errorf(job.KindInternal, "bad_answer", "the owner of partition %d answered %T to a look", p, reply.Value)
	}
	return seen, nil
}

// away tells that nobody could answer just now: a read then shows the rows alone.
func away(err error) bool {
	switch job.KindOf(err) {
	case job.KindNoOwner, job.KindUnavailable, job.KindFenced, job.KindUnknown:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}
