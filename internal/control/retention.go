package control

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// The defaults of Keep.
const (
	KeepExecutions  = 30 * 24 * time.Hour
	KeepLogs        = 7 * 24 * time.Hour
	KeepDecisions   = 30 * 24 * time.Hour
	KeepJournal     = 7 * 24 * time.Hour
	KeepRequestKeys = 24 * time.Hour
)

// MinKeep is the shortest time that anything is kept: what has ended a moment ago is still asked for.
const MinKeep = time.Hour

// Keep says how long a server keeps what is over; executions and logs unless their namespace says otherwise.
type Keep struct{ Executions, Logs, Decisions, Journal, RequestKeys time.Duration }

// Filled has the defaults where k is 0.
func (k Keep) Filled() Keep {
	for _, f := range []struct {
		is *time.Duration
		to time.Duration
	}{{&k.Executions, KeepExecutions}, {&k.Logs, KeepLogs}, {&k.Decisions, KeepDecisions}, {&k.Journal, KeepJournal}, {&k.RequestKeys, KeepRequestKeys}} {
		if *f.is == 0 {
			*f.is = f.to
		}
	}
	return k
}

// Check refuses what is too short or too long.
func (k Keep) Check() error {
	for _, f := range []struct {
		name string
		is   time.Duration
	}{{"executions", k.Executions}, {"logs", k.Logs}, {"decisions", k.Decisions}, {"journal", k.Journal}, {"requestKeys", k.RequestKeys}} {
		if f.is != 0 && (f.is < MinKeep || f.is > job.MaxDuration) {
			return job.Errorf(job.KindInvalid, "bad_retention", "this is too short, or too long").WithField(f.name).
				WithHint("keep it for 1h to 10 years, such as 30d")
		}
	}
	return nil
}

// Over is what k becomes in a namespace with its own retention.
func (k Keep) Over(own store.Retention) Keep {
	if own.Executions > 0 {
		k.Executions = own.Executions
	}
	if own.Logs > 0 {
		k.Logs = own.Logs
	}
	return k
}

// RetentionView is how long a namespace keeps what is over.
type RetentionView struct {
	Own   store.Retention // 0: the server's default
	Valid Keep            // what holds
}

// Retention of a namespace.
func (c *Control) Retention(ctx context.Context, namespace string) (RetentionView, error) {
	if c.sweeper == nil {
		return RetentionView{}, noSweeper()
	}
	own, err := c.sweeper.Retention(ctx, namespace)
	return RetentionView{Own: own, Valid: c.keep.Over(own)}, err
}

// PutRetention sets the retention of a namespace; KindInvalid when a time is too short or too long.
func (c *Control) PutRetention(ctx context.Context, r store.Retention) (RetentionView, error) {
	if err := (Keep{Executions: r.Executions, Logs: r.Logs}).Check(); err != nil {
		return RetentionView{}, err
	}
	if c.sweeper == nil {
		return RetentionView{}, noSweeper()
	}
	if err := c.sweeper.PutRetention(ctx, r); err != nil {
		return RetentionView{}, err
	}
	return RetentionView{Own: r, Valid: c.keep.Over(r)}, nil
}

func noSweeper() error {
	return job.Errorf(job.KindUnavailable, "no_retention", "this server deletes nothing")
}
