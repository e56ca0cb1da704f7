package takt

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// LogQuery selects lines of an execution's log; the zero value selects all.
type LogQuery struct {
	Shard   *int      // nil: all shards
	Attempt int       // 0: all attempts
	Since   time.Time // lines that reached the server then or later; zero: all
	Page
	// Wait is how long the server may hold the answer back, at most 20 s, while there is nothing new and
	// the end has not come.
	Wait time.Duration
	// OnRetry, when set, is told by FollowLogs why it has to try again.
	OnRetry func(error)
}

// Logs reads a page of an execution's log. Ask again with After set to Next until End is true.
func (c *Client) Logs(ctx context.Context, execution string, q LogQuery) (LogList, error) {
	v := q.values()
	if q.Shard != nil {
		v.Set("shard", strconv.Itoa(*q.Shard))
	}
	if q.Attempt > 0 {
		v.Set("attempt", strconv.Itoa(q.Attempt))
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Wait > 0 {
		v.Set("waitMs", strconv.FormatInt(ceilMs(q.Wait), 10))
	}
	return fetch[LogList](ctx, c, "read the log of "+execution, c.path("executions", execution, "logs"), v)
}

// FollowLogs gives each line of an execution's log to line, in order and once, and waits for more until
// all attempts that q takes in have ended and everything was read. It goes on where it stood when
// servers are unavailable for a while; ctx bounds it. It returns what is missing (nil: nothing), or the
// error of line.
func (c *Client) FollowLogs(ctx context.Context, execution string, q LogQuery, line func(LogEntry) error) (*Dropped, error) {
	if q.Wait <= 0 {
		q.Wait = 20 * time.Second
	}
	b := backoff{max: 2 * time.Second, jitter: c.jitter}
	for {
		list, err := c.Logs(ctx, execution, q)
		switch {
		case err == nil:
			b.reset()
		case ctx.Err() == nil && errors.Is(err, ErrUnavailable):
			if q.OnRetry != nil {
				q.OnRetry(err)
			}
			pause(ctx, b.after(err))
			continue
		default:
			return nil, err
		}
		for _, e := range list.Items {
			if err := line(e); err != nil {
				return nil, err
			}
		}
		if q.After = list.Next; list.End {
			return list.Dropped, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("takt: follow the log of %s: %w", execution, context.Cause(ctx))
		}
	}
}
