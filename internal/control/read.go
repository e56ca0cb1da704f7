package control

import (
	"context"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Job reads a job with its cursors.
func (c *Control) Job(ctx context.Context, namespace, name string) (store.JobRow, error) {
	return c.read.Job(ctx, namespace, name)
}

// Children are the jobs that run after one, by name.
func (c *Control) Children(ctx context.Context, d *job.Definition) ([]string, error) {
	return c.read.Children(ctx, d.UID)
}

// Parents are the executions by which one of a job that runs after others was decided; while it waits, those that count
// so far. nil for one that waits and waited for none.
func (c *Control) Parents(ctx context.Context, e *job.Execution) ([]job.Parent, error) {
	u, matched, err := c.read.Upstream(ctx, *e)
	if err != nil || matched != nil || e.Reason != job.WaitUpstream {
		return matched, err
	}
	return u.Parents, nil
}

// Jobs lists jobs by name.
func (c *Control) Jobs(ctx context.Context, namespace string, p store.Page) ([]store.JobRow, string, error) {
	return c.read.Jobs(ctx, namespace, p)
}

// Executions lists executions, newest planned first.
func (c *Control) Executions(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
	return c.read.Executions(ctx, f)
}

// Decisions lists decisions, newest first.
func (c *Control) Decisions(ctx context.Context, namespace, name string, p store.Page) ([]job.Decision, string, error) {
	return c.read.Decisions(ctx, namespace, name, p)
}

// ExecutionView is an execution with the reason why its first waiting shard waits.
type ExecutionView struct {
	job.Execution
	Waits    job.Reason
	WaitsFor job.ExecutionID // the execution of its job that is in its way; zero: none, or not known
}

// Execution reads one execution. When no owner answers, Waits is left out.
func (c *Control) Execution(ctx context.Context, namespace string, id job.ExecutionID) (ExecutionView, error) {
	e, err := c.read.Execution(ctx, namespace, id)
	if err != nil {
		return ExecutionView{}, err
	}
	live, err := c.liveExecution(ctx, &e)
	if err != nil {
		return ExecutionView{}, err
	}
	v := ExecutionView{Execution: e}
	if e.WaitsItsTurn() {
		v.Waits = e.Reason
		seen, err := c.turns(ctx, []int{e.Partition}, engine.InspectQuery{Job: e.JobUID})
		if err != nil {
			return ExecutionView{}, err
		}
		if len(seen.Items) > 0 && len(seen.Items[0].Running) > 0 && seen.Items[0].Running[0] != id {
			v.WaitsFor = seen.Items[0].Running[0]
		}
	}
	for _, w := range live.Waits {
		if w != "" {
			v.Waits = w
			break
		}
	}
	return v, nil
}

// Turn tells what runs of a job and what waits for that to end: at most one item, none when nothing obeys its overlap policy. Where
// an owner that could know of more does not answer, Away counts it. While the job moves, that is where it comes from.
func (c *Control) Turn(ctx context.Context, row *store.JobRow) (Seen[*engine.TurnView], error) {
	d := &row.Definition
	q := engine.InspectQuery{Job: d.UID}
	seen, err := c.turns(ctx, c.partitionsOf(d.Namespace, d.Spec.Pool), q)
	behind := slices.ContainsFunc(row.Cursors, func(c job.Cursor) bool { return c.Revision != d.Revision })
	if len(seen.Items) > 0 || err != nil || !behind {
		return seen, err
	}
	return c.turns(ctx, c.partitionsOf(d.Namespace, ""), q)
}

// turns gathers what partitions know of a job's turn. One that knows is enough.
func (c *Control) turns(ctx context.Context, partitions []int, q engine.InspectQuery) (Seen[*engine.TurnView], error) {
	seen, err := gather(ctx, c, partitions, q, func(v *engine.Inspected) []*engine.TurnView {
		if v.Turn == nil {
			return nil
		}
		return []*engine.TurnView{v.Turn}
	})
	switch {
	case away(err):
		return Seen[*engine.TurnView]{Asked: len(partitions), Away: len(partitions)}, nil
	case len(seen.Items) > 0:
		seen.Items, seen.Away = seen.Items[:1], 0
	}
	return seen, err
}

// ShardView is a shard with its idempotency key and what its owner's memory knows.
type ShardView struct {
	job.Shard
	Key   string
	Waits job.Reason
	Left  time.Duration // of its lease; 0: not leased
}

// Shards lists shards of an execution by index. When no owner answers, Waits and Left are left out.
func (c *Control) Shards(ctx context.Context, namespace string, id job.ExecutionID, p store.Page) ([]ShardView, string, error) {
	e, err := c.read.Execution(ctx, namespace, id)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := c.read.Shards(ctx, namespace, id, p)
	if err != nil {
		return nil, "", err
	}
	live, err := c.liveExecution(ctx, &e)
	if err != nil {
		return nil, "", err
	}
	views := make([]ShardView, len(rows))
	for i := range rows {
		n := rows[i].Index
		views[i] = ShardView{Shard: rows[i], Key: job.Key(&e, n)}
		if n < len(live.Waits) {
			views[i].Waits = live.Waits[n]
		}
		if n < len(live.Left) {
			views[i].Left = max(live.Left[n], 0)
		}
	}
	return views, next, nil
}

// liveExecution asks the owner about an execution that has not ended. One that is queued and not in
// its memory waits in the database behind others.
func (c *Control) liveExecution(ctx context.Context, e *job.Execution) (engine.ExecutionView, error) {
	none := engine.ExecutionView{}
	if e.State.Ended() || e.State == job.ExecutionScheduled {
		return none, nil
	}
	seen, err := c.inspect(ctx, e.Partition, engine.InspectQuery{Execution: e.ID})
	switch {
	case away(err):
		return none, nil
	case err != nil:
		return none, err
	case seen.Execution != nil:
		return *seen.Execution, nil
	case e.State == job.ExecutionQueued:
		none.Waits = make([]job.Reason, e.ShardTotal)
		for i := range none.Waits {
			none.Waits[i] = job.WaitBacklog
		}
	}
	return none, nil
}
