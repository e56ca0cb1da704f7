package control

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// DefaultLogLimit is how many bytes of one attempt's log are kept.
const DefaultLogLimit = 10 << 20

// logSlack is added to the time that a log stays open, for servers' clocks differ a little.
const logSlack = time.Second

func noLogs() error {
	return job.Errorf(job.KindUnavailable, "no_logs", "this server keeps no logs")
}

// newLogDesk bounds the bytes of lines, for whose packing a transaction holds the writer.
func newLogDesk() *desk[store.LogChunk, store.LogAppended] {
	return &desk[store.LogChunk, store.LogAppended]{most: 2000, bytes: 1 << 20, timeout: 10 * time.Second,
		size: func(c *store.LogChunk) (n int) {
			for i := range c.Lines {
				n += len(c.Lines[i].Bytes)
			}
			return n
		},
		alone: func(err error) bool { return job.KindOf(err) == job.KindRejected }}
}

// AppendLogs takes chunks of workers' logs in; see store.Logs. Calls that come at the same time are one
// transaction.
func (c *Control) AppendLogs(ctx context.Context, chunks []store.LogChunk) ([]store.LogAppended, error) {
	if c.logs == nil {
		return nil, noLogs()
	}
	return c.logDesk.put(ctx, chunks, func(ctx context.Context, all []store.LogChunk) ([]store.LogAppended, error) {
		return c.logs.AppendLogs(ctx, store.AppendLogs{Chunks: all, At: c.instant(), Limit: c.logLimit})
	})
}

// LogView is a page of an execution's log.
type LogView struct {
	store.LogPage
	// End: all attempts that the filter takes in have ended, the page reaches to the end, and nothing can
	// follow. A rerun begins new attempts.
	End bool
}

// Logs reads lines of an execution. KindNotFound when it is not there, or in another namespace.
func (c *Control) Logs(ctx context.Context, namespace string, f store.LogFilter) (LogView, error) {
	if c.logs == nil {
		return LogView{}, noLogs()
	}
	e, err := c.read.Execution(ctx, namespace, f.Execution)
	if err != nil {
		return LogView{}, err
	}
	// The end is looked at before the lines: what is complete now is read whole afterwards.
	end, err := c.logEnds(ctx, &e, f)
	if err != nil {
		return LogView{}, err
	}
	page, err := c.logs.ReadLogs(ctx, f)
	return LogView{LogPage: page, End: end && !page.More}, err
}

// LogsDropped counts what is missing of the logs that f takes in.
func (c *Control) LogsDropped(ctx context.Context, f store.LogFilter) (lines, bytes int64, err error) {
	heads, err := c.logs.LogHeads(ctx, f.Execution, f.Shard)
	for _, h := range heads {
		if f.Attempt == 0 || f.Attempt == h.Attempt {
			lines, bytes = store.AddCount(lines, h.DroppedLines), store.AddCount(bytes, h.DroppedBytes)
		}
	}
	return lines, bytes, err
}

// logEnds tells whether nothing can come any more to the logs that f takes in.
func (c *Control) logEnds(ctx context.Context, e *job.Execution, f store.LogFilter) (bool, error) {
	ended := e.State.Ended()
	if !ended && f.Shard < 0 && f.Attempt == 0 {
		return false, nil
	}
	now := c.instant()
	if ended && !logOpen(e.EndedAt, now) {
		return true, nil
	}
	heads, err := c.logs.LogHeads(ctx, e.ID, f.Shard)
	if err != nil {
		return false, err
	}
	known := make(map[job.Token]store.LogHead, len(heads))
	for _, h := range heads {
		known[h.Token] = h
	}
	page := store.Page{Limit: 500}
	for {
		shards, next, err := c.read.Shards(ctx, e.Namespace, e.ID, page)
		if err != nil {
			return false, err
		}
		for i := range shards {
			if s := &shards[i]; (f.Shard < 0 || f.Shard == s.Index) && !shardLogged(s, known, f.Attempt, now) {
				return false, nil
			}
		}
		if page.After = next; next == "" {
			return ended || len(shards) > 0, nil // one that waits for its owner has no shards yet
		}
	}
}

// logOpen tells whether the log of an attempt that ended at the given instant may still take lines.
func logOpen(ended, now job.Instant) bool {
	return now <= ended+job.Instant((store.LogKept+logSlack).Milliseconds())
}

// shardLogged tells whether nothing can come any more to the log of a shard, or of one attempt of it.
func shardLogged(s *job.Shard, known map[job.Token]store.LogHead, attempt int, now job.Instant) bool {
	if attempt == 0 || s.Attempt < attempt {
		if !s.State.Ended() {
			return false
		}
	}
	for i := range s.Attempts {
		a := &s.Attempts[i]
		if attempt > 0 && a.Number != attempt {
			continue
		}
		h, begun := known[a.Token]
		if !attemptLogged(a, h, begun, now) {
			return false
		}
	}
	return true
}

// attemptLogged: an attempt whose worker reported its end had shipped its log before, or has said that
// it is still to come, which makes it known.
func attemptLogged(a *job.Attempt, h store.LogHead, begun bool, now job.Instant) bool {
	switch {
	case a.EndedAt == 0:
		return false
	case begun && h.Closed, !logOpen(a.EndedAt, now):
		return true
	case begun:
		return false
	}
	return a.State == job.AttemptSucceeded || a.State == job.AttemptFailed || a.State == job.AttemptReleased
}
