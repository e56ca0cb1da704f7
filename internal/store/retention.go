package store

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// Retention says how long a namespace keeps what is over. 0: the server's default.
type Retention struct {
	Namespace  string
	Executions time.Duration // ended ones, from their end
	Logs       time.Duration // from the last line
}

// Sweeper deletes what is old enough, in small steps. Each sweep deletes at most limit rows and returns how many;
// fewer than limit: that was all.
type Sweeper interface {
	// Namespaces lists the namespaces that have, or had, jobs.
	Namespaces(ctx context.Context) ([]string, error)
	// Retention of a namespace; one that nobody set has zero times.
	Retention(ctx context.Context, namespace string) (Retention, error)
	// PutRetention sets the retention of a namespace.
	PutRetention(ctx context.Context, r Retention) error

	// SweepExecutions deletes ended executions of a namespace that ended before an instant, with their shards. An
	// execution vanishes whole, whatever its shards need in steps; one that a request waits for stays.
	SweepExecutions(ctx context.Context, namespace string, before job.Instant, limit int) (int, error)
	// SweepDecisions looks at the limit oldest decisions of all namespaces and deletes them up to the last one that was
	// made before the instant. When they end with one that is later than the newest, whose clock was ahead, it looks at
	// the following ones too.
	SweepDecisions(ctx context.Context, before job.Instant, limit int) (int, error)
	// SweepJournal deletes the oldest journal rows of a partition likewise; the newest row always stays.
	SweepJournal(ctx context.Context, partition int, before job.Instant, limit int) (int, error)
}

// Over says up to when what is over may go.
type Over struct {
	Executions, Logs, Decisions, Journal job.Instant
	Now                                  job.Instant // months are made ahead of it
}

// Months is a store that keeps what is over in tables of a month each. Dropping one is cheaper than deleting its rows, but
// what is over goes up to a month later.
type Months interface {
	// SweepMonths drops the months in which everything is older than o says, and makes those of now and of the two
	// months after it. A month stays as a whole with an execution in it that a request waits for, with a log of what
	// still runs, or with the newest journal row of a partition. Returns how many tables went.
	SweepMonths(ctx context.Context, o Over) (int, error)
}

// JobSweeper deletes what is left of jobs, backfills and events. Each sweep deletes at most limit rows and returns how many; fewer
// than limit: that was all.
type JobSweeper interface {
	// SweepJobs deletes the revisions of jobs that were deleted before an instant and that no execution, live or ended, no
	// cursor and no inbox entry refers to; the job itself goes with the last of them.
	SweepJobs(ctx context.Context, before job.Instant, limit int) (int, error)
	// SweepBackfills deletes backfills of a namespace that ended before an instant, with how far they had come. All that they
	// ran had ended then. One that an inbox entry is about stays.
	SweepBackfills(ctx context.Context, namespace string, before job.Instant, limit int) (int, error)
	// SweepPoison deletes the records of events that were set aside before an instant.
	SweepPoison(ctx context.Context, before job.Instant, limit int) (int, error)
}
