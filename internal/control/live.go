package control

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// Workers lists the live sessions of a namespace, by pool, worker and session; pool "" for all. It
// needs every owner concerned: KindNoOwner when one does not answer.
func (c *Control) Workers(ctx context.Context, namespace, pool string) ([]engine.SessionView, error) {
	var views []engine.SessionView
	for _, p := range c.partitionsOf(namespace, pool) {
		seen, err := c.inspect(ctx, p, engine.InspectQuery{Namespace: namespace, Pool: pool})
		if err != nil {
			return nil, err
		}
		for _, s := range seen.Sessions {
			if s.Session.Namespace == namespace && (pool == "" || s.Session.Pool == pool) {
				views = append(views, s)
			}
		}
	}
	slices.SortFunc(views, func(a, b engine.SessionView) int {
		return cmp.Or(cmp.Compare(a.Session.Pool, b.Session.Pool), cmp.Compare(a.Session.Worker, b.Session.Worker),
			cmp.Compare(a.Session.ID, b.Session.ID))
	})
	return views, nil
}

// Pools lists the pools of a namespace that have workers or work, by name. It needs every owner.
func (c *Control) Pools(ctx context.Context, namespace string) ([]engine.PoolView, error) {
	var views []engine.PoolView
	for _, p := range c.partitionsOf(namespace, "") {
		seen, err := c.inspect(ctx, p, engine.InspectQuery{Namespace: namespace})
		if err != nil {
			return nil, err
		}
		for _, v := range seen.Pools {
			if v.Namespace == namespace {
				views = append(views, v)
			}
		}
	}
	slices.SortFunc(views, func(a, b engine.PoolView) int { return cmp.Compare(a.Pool, b.Pool) })
	return views, nil
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
