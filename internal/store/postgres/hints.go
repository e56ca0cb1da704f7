package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/store"
)

const (
	hintChannel = "takt_hint"
	hearPause   = time.Second      // before a listener connects again
	hearCheck   = 30 * time.Second // of silence, after which a listener asks whether the connection lives
	hearAnswer  = 5 * time.Second  // for the answer to that
)

var qHint = statement(`SELECT pg_notify('` + hintChannel + `', $1)`)

var _ store.Hints = (*Store)(nil)

// hints gathers what is to be said while a notification is on its way. Notifications in commits would serialise these.
type hints struct {
	mu      sync.Mutex
	pending []int
	sending bool
}

// add tells whether the caller is the one to send.
func (h *hints) add(partition int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pending {
		if p == partition {
			return false
		}
	}
	h.pending = append(h.pending, partition)
	if h.sending {
		return false
	}
	h.sending = true
	return true
}

// take gives what is to be sent as text; "" when that was all, and then another becomes the sender.
func (h *hints) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]string, len(h.pending))
	for i, p := range h.pending {
		all[i] = strconv.Itoa(p)
	}
	h.pending = h.pending[:0]
	h.sending = len(all) > 0
	return strings.Join(all, ",")
}

// drop ends the sending without it.
func (h *hints) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending, h.sending = nil, false
}

// Hint implements store.Hints. While one hint is under way others are left to its sender, who tells nobody whether
// they got out: the poll finds what they would have told.
func (s *Store) Hint(ctx context.Context, partition int) error {
	if !s.hints.add(partition) {
		return nil
	}
	for {
		text := s.hints.take()
		if text == "" {
			return nil
		}
		if err := s.people.exec(ctx, texts[qHint], text); err != nil {
			s.hints.drop()
			return s.failed("hint", err)
		}
	}
}

// Hear implements store.Hints, on a connection of its own. It returns nil when ctx ends.
func (s *Store) Hear(ctx context.Context, wake func(partition int)) error {
	for failed := false; ; {
		err := s.listen(ctx, wake, func() {
			if failed {
				s.log.Info("Hints from other servers are heard again")
			}
			failed = false
		})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end was asked for
		}
		if !failed {
			s.log.Warn("Hints from other servers are not heard; this server connects again each second and polls meanwhile", "error", classify("listen", err))
			failed = true
		}
		pause := time.NewTimer(hearPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

func (s *Store) listen(ctx context.Context, wake func(int), heard func()) (err error) {
	c := s.dsn.ConnConfig.Copy()
	c.RuntimeParams["application_name"] = s.name + " hints"
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, conn.Close(patience))
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+hintChannel); err != nil {
		return err
	}
	heard()
	for {
		n, err := s.notification(ctx, conn)
		if err != nil {
			return err
		}
		for part := range strings.SplitSeq(n.Payload, ",") {
			if p, err := strconv.Atoi(part); err == nil { // else it is nobody's of ours
				wake(p)
			}
		}
	}
}

// notification waits for one. A connection whose other end is gone without a word is silent, too, so that it is asked now
// and then.
func (s *Store) notification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	for {
		waiting, cancel := context.WithTimeout(ctx, s.hearCheck)
		n, err := conn.WaitForNotification(waiting)
		cancel()
		if err == nil || ctx.Err() != nil || !pgconn.Timeout(err) || conn.IsClosed() {
			return n, err
		}
		asking, cancel := context.WithTimeout(ctx, hearAnswer)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return nil, err
		}
	}
}
