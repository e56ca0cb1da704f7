package partition

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// outageEvery is how often one line of a database's trouble is repeated while it lasts.
const outageEvery = 30 * time.Second

// outage keeps a database that is away from filling the log: each of 32 partitions meets the same trouble again and again.
// Of lines with the same text and code the first is written, then one each outageEvery, with the number of those left out.
type outage struct {
	mu   sync.Mutex
	told map[[2]string]*told
}

type told struct {
	at      time.Duration
	leftOut int
}

func newOutage() *outage { return &outage{told: map[[2]string]*told{}} }

// trouble logs an error. What is no trouble of the database is always written.
func (n *Node) trouble(log *slog.Logger, level slog.Level, text string, err error, more ...any) {
	if e, is := errors.AsType[*job.Error](err); is && (e.Kind == job.KindUnavailable || e.Kind == job.KindUnknown) {
		left, write := n.outage.may(text, e.Code, n.mono())
		if !write {
			return
		}
		if left > 0 {
			more = append(more, "leftOut", left)
		}
	}
	log.Log(context.Background(), level, text, append(more, "err", err)...) //nolint:sloglint // constants of its callers
}

// may tells whether a line may be written, and how many were left out before it.
func (o *outage) may(text, code string, now time.Duration) (leftOut int, write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := [2]string{text, code}
	t := o.told[key]
	if t == nil {
		t = &told{at: now - outageEvery}
		o.told[key] = t
	}
	if now-t.at < outageEvery {
		t.leftOut++
		return 0, false
	}
	leftOut, t.at, t.leftOut = t.leftOut, now, 0
	return leftOut, true
}
