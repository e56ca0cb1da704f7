package drill_test

import (
	"context"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// What follows reaches the database unless the server is cut off from it, or dead.

func (c *chaos) PutServer(ctx context.Context, s store.Server) (int64, error) {
	if err := c.silence(ctx, "put server"); err != nil {
		return 0, err
	}
	return c.Store.PutServer(ctx, s)
}

func (c *chaos) Servers(ctx context.Context) ([]store.Server, error) {
	if err := c.silence(ctx, "servers"); err != nil {
		return nil, err
	}
	return c.Store.Servers(ctx)
}

func (c *chaos) RemoveServer(ctx context.Context, incarnation string, beat int64) error {
	if err := c.silence(ctx, "remove server"); err != nil {
		return err
	}
	return c.Store.RemoveServer(ctx, incarnation, beat)
}

func (c *chaos) SettlePartition(ctx context.Context, f store.Fence, lineage string) error {
	if err := c.silence(ctx, of("settle", f.Partition)); err != nil {
		return err
	}
	return c.Store.SettlePartition(ctx, f, lineage)
}

func (c *chaos) Triggers(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) ([]store.Triggered, error) {
	if err := c.reaches(ctx, "trigger"); err != nil {
		return nil, err
	}
	return c.Store.Triggers(ctx, all, partition)
}

func (c *chaos) Ask(ctx context.Context, a store.Ask) (store.Written, error) {
	if err := c.reaches(ctx, "ask"); err != nil {
		return store.Written{}, err
	}
	return c.Store.Ask(ctx, a)
}

func (c *chaos) Execution(ctx context.Context, namespace string, id job.ExecutionID) (job.Execution, error) {
	if err := c.reaches(ctx, "execution"); err != nil {
		return job.Execution{}, err
	}
	return c.Store.Execution(ctx, namespace, id)
}

func (c *chaos) Given(ctx context.Context, asks []store.GivenAsk) ([][]store.Given, error) {
	if err := c.reaches(ctx, "given"); err != nil {
		return nil, err
	}
	return c.Store.Given(ctx, asks)
}
