package storetest

import (
	"context"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// landing is the fate of a commit whose answer is lost.
type landing int

const (
	landed landing = iota // written, the answer is lost
	lost                  // never written
	late                  // on its way: arrive lets it land
)

// unsure answers every Commit with KindUnknown.
type unsure struct {
	store.Store
	fate  landing
	fence store.Fence
	batch *engine.Batch
}

func (u *unsure) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	u.fence, u.batch = f, b
	if u.fate == landed {
		if err := u.Store.Commit(ctx, f, b); err != nil {
			return err
		}
	}
	return job.Errorf(job.KindUnknown, "commit_unknown", "the answer was lost")
}

// arrive is the commit that was on its way.
func (u *unsure) arrive() error { return u.Store.Commit(ctx, u.fence, u.batch) }
