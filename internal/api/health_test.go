package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/job"
)

// heart is a store whose pings take a while.
type heart struct {
	mu           sync.Mutex
	beats, atNow int
	most         int // at once
	takes        time.Duration
	fails        error
}

func (h *heart) Ping(ctx context.Context) error {
	h.mu.Lock()
	h.beats++
	h.atNow++
	h.most = max(h.most, h.atNow)
	takes, fails := h.takes, h.fails
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.atNow--
		h.mu.Unlock()
	}()
	select {
	case <-time.After(takes):
		return fails
	case <-ctx.Done():
		return ctx.Err()
	}
}

// However many ask whether the server is ready, the store is asked by one at a time, and once a second.
func TestReadyAsksTheStoreOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heart{takes: 100 * time.Millisecond}
		r := newRig(t, func(c *api.Config) { c.Store = h })
		all := func() (ready int) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for range 50 {
				wg.Go(func() {
					if w := r.do(get("/readyz")); w.Code == http.StatusOK {
						mu.Lock()
						ready++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			return ready
		}
		if ready := all(); ready != 50 || h.beats != 1 || h.most != 1 {
			t.Errorf("%d of 50 ready, %d pings, %d at once", ready, h.beats, h.most)
		}
		h.fails = errors.New("disk on fire")
		time.Sleep(900 * time.Millisecond)
		if ready := all(); ready != 50 || h.beats != 1 {
			t.Errorf("within the second: %d of 50 ready, %d pings", ready, h.beats)
		}
		time.Sleep(200 * time.Millisecond)
		if ready := all(); ready != 0 || h.beats != 2 {
			t.Errorf("after the second: %d of 50 ready, %d pings", ready, h.beats)
		}
		h.fails, h.takes = nil, time.Hour // hangs
		time.Sleep(time.Second)
		begun := time.Now()
		if ready := all(); ready != 0 || time.Since(begun) > 3*time.Second || h.beats != 3 {
			t.Errorf("while the store hangs: %d of 50 ready after %s, %d pings", ready, time.Since(begun), h.beats)
		}
	})
}

// A caller that goes away takes no result from the others.
func TestReadyOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heart{takes: time.Second}
		r := newRig(t, func(c *api.Config) { c.Store = h })
		c := r.serve()()
		send(t, c, "/nowhere", 0, "") // a connection that works
		if status, _ := receive(t, c); status != http.StatusNotFound {
			t.Errorf("%d", status)
		}
		if _, err := c.Write([]byte("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		_ = c.Close()
		if w := r.do(get("/readyz")); w.Code != http.StatusOK || h.beats != 1 {
			t.Errorf("%d %s, %d pings", w.Code, w.Body, h.beats)
		}
	})
}

// A store may answer a small question and yet take no commit: the reason of that is told.
func TestReadyTellsWhyNothingCommits(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for code, says := range map[string]string{"disk_full": "the disk of the database is full", "not_writable": "the database cannot be written",
		"database_read_only": "the database cannot be written", "disk_error": "the disk of the database fails", "database_gone": "the database file is gone"} {
		cause := job.Errorf(job.KindUnavailable, code, "no commit").WithHint("make some")
		r.owners.unready = job.Errorf(job.KindUnavailable, "not_ready", "partition 3 has no owner").WithCause(cause)
		w := r.do(get("/readyz"))
		if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || !strings.Contains(body, says) || !strings.Contains(body, "make some") {
			t.Errorf("%s: %d %s", code, w.Code, body)
		}
	}
}
