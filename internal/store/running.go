package store

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// JoinRunning fills Entry.Running of an entry that has its definition and its cursors. find looks into live rows.
func JoinRunning(e *engine.Entry, find func(job.ExecutionID) (there bool, err error)) error {
	for _, c := range e.Cursors {
		id := e.NewestOf(c)
		if id.IsZero() {
			continue
		}
		runs, err := find(id)
		if err != nil {
			return err
		}
		if runs {
			e.Running = append(e.Running, c.Schedule)
		}
	}
	return nil
}
