package store

import (
	"bytes"
	"cmp"
	"context"

	"github.com/taktsched/takt/internal/job"
)

// Bounds of what is looked at for one answer.
const (
	MaxUpcoming = 5_000   // cursors that one look ahead reads of a partition
	MaxCounted  = 100_000 // rows of one kind that are counted
)

// DueRow is a schedule with the instant that it is due next.
type DueRow struct {
	Definition job.Definition // newest revision
	Cursor     job.Cursor
}

// Counts are numbers of rows, each as far as MaxCounted.
type Counts struct {
	Jobs      int
	Live      map[job.ExecutionState]int
	Decisions int
	Backfills int // that have not ended
}

// Instants is used by answers about planned instants.
type Instants interface {
	// DecisionsIn reads, of each of the named schedules of a job, the first decision whose range meets from up to to, both
	// included. The schedule "" stands for the instants that no schedule plans.
	DecisionsIn(ctx context.Context, uid job.UID, schedules []string, from, to job.Instant) ([]job.Decision, error)
	// Upcoming reads the schedules of a namespace that are due at or before until, by (next, job, schedule): the first
	// limit of them. more: there are others, or there may be, for it looks at MaxUpcoming cursors of a partition at most.
	Upcoming(ctx context.Context, namespace string, until job.Instant, limit int) (rows []DueRow, more bool, err error)
	// Counts counts what is in the database.
	Counts(ctx context.Context) (Counts, error)
	// ZonesChanged notes the time zone database that servers read now. When it is another one than before, it tells the
	// planners of all jobs that name a time zone to compute their next instants anew: job_changed entries, made in the same
	// transaction. Returns how many.
	ZonesChanged(ctx context.Context, mark int64, at job.Instant) (told int, err error)
}

// CompareDue orders schedules by what is due next.
func CompareDue(x, y DueRow) int {
	a, b := x.Cursor, y.Cursor
	return cmp.Or(cmp.Compare(a.Next, b.Next), bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Schedule, b.Schedule))
}
