package postgres

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// TriggersOfKnown is Triggers in one write, as long as that is possible.
func TriggersOfKnown(ctx context.Context, s *Store, all []store.Trigger, partition func(job.Definition) int) (out []store.Triggered, done bool, err error) {
	s.people.fresh = time.Hour
	return s.triggersOfKnown(ctx, all, partition)
}
