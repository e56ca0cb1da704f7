package store

import (
	"context"
	"errors"

	"github.com/taktsched/takt/internal/job"
)

// TriggerOne is Control.Trigger by Control.Triggers.
func TriggerOne(ctx context.Context, s interface {
	Triggers(ctx context.Context, all []Trigger, partition func(job.Definition) int) ([]Triggered, error)
}, t Trigger, partition func(job.Definition) int) (Triggered, error) {
	out, err := s.Triggers(ctx, []Trigger{t}, partition)
	if set, ok := errors.AsType[*job.SetError](err); ok {
		return Triggered{}, set.Items[0].Err
	}
	if err != nil {
		return Triggered{}, err
	}
	return out[0], nil
}
