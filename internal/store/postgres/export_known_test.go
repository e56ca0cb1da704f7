package postgres

import (
	"context"
	"net"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// TriggersOfKnown is Triggers in one write, as long as that is possible.
func TriggersOfKnown(ctx context.Context, s *Store, all []store.Trigger, partition func(job.Definition) int) (out []store.Triggered, done bool, err error) {
	s.people.fresh = time.Hour
	return s.triggersOfKnown(ctx, all, partition)
}

// Severed tells whether the other side of a connection has closed it.
func Severed(c net.Conn) bool { return severed(c) }

// KnownBytes is how many bytes of params are kept of known jobs.
func KnownBytes(s *Store) (n int) {
	s.knownJobs.mu.Lock()
	defer s.knownJobs.mu.Unlock()
	for _, k := range s.knownJobs.of {
		n += len(k.definition.Spec.Params)
	}
	return n
}
