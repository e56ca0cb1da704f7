package app_test

import (
	"context"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// slowDisk is a store whose commits wait, as behind an fsync that does not return.
type slowDisk struct {
	store.Store
	stuck atomic.Pointer[chan struct{}]
}

func (s *slowDisk) wait() {
	if c := s.stuck.Load(); c != nil {
		<-*c
	}
}

func (s *slowDisk) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	s.wait()
	return s.Store.Commit(ctx, f, b)
}

// Ping waits as long as its caller.
func (s *slowDisk) Ping(ctx context.Context) error {
	if c := s.stuck.Load(); c != nil {
		select {
		case <-*c:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.Store.Ping(ctx)
}

// A disk that does not answer: not ready while it lasts, then everything that was asked for is done.
func TestSlowDisk(t *testing.T) {
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	disk := &slowDisk{Store: st}
	address := run(t, app.Config{Store: disk, DataDir: t.TempDir()})
	base := "http://" + address
	awaitReady(t, base)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := takt.NewClient(takt.ClientConfig{Server: base, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutJob(t.Context(), takt.Job{APIVersion: "takt/v1", Kind: "Job", Metadata: takt.JobMetadata{Name: "j"}, Spec: takt.JobSpec{Pool: "p", Handler: "h"}},
		takt.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	free := make(chan struct{})
	disk.stuck.Store(&free)
	asked, err := c.Trigger(t.Context(), "j", takt.TriggerOptions{})
	if err != nil || asked.Effect != "pending" {
		t.Errorf("a trigger behind the slow disk: %+v, %v; want pending", asked, err)
	}
	if code, body := get(t, base+"/readyz", ""); code != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d %s", code, body)
	}
	disk.stuck.Store(nil)
	close(free)
	awaitReady(t, base)
	for {
		e, err := c.Execution(t.Context(), asked.Execution)
		if err != nil {
			t.Fatal(err)
		}
		if e.State == "queued" { // the owner has taken it in
			return
		}
	}
}
