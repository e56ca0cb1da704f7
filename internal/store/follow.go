package store

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// JobAt is where a job is.
type JobAt struct {
	Revision int64 // the newest
	Place    int   // partition of its pool
	Planner  int
	Cursors  bool // it has some
}

// Home is where what was made under a revision of the job, and is in a partition, belongs by now; nil when that is there, and
// the revision is the newest. newest reads that one.
func (a JobAt) Home(revision int64, partition int, newest func() (*job.Definition, error)) (*engine.Home, error) {
	if a.Revision == revision && a.Place == partition && a.Planner == partition {
		return nil, nil
	}
	d, err := newest()
	if err != nil || d == nil {
		return nil, err
	}
	return engine.HomeOf(d, a.Place, a.Planner, a.Cursors), nil
}
