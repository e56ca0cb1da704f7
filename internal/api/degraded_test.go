package api_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// paused is a store that takes calls and answers none while it is paused.
type paused struct {
	*fakeStore
	on    bool
	asked int
}

func (p *paused) wait(ctx context.Context) error {
	p.asked++
	if !p.on {
		return nil
	}
	<-ctx.Done()
	return job.Errorf(job.KindUnavailable, "gave_up", "the caller stopped waiting for the database").WithCause(ctx.Err())
}

func (p *paused) Ping(ctx context.Context) error { return p.wait(ctx) }

func (p *paused) Job(ctx context.Context, ns, name string) (store.JobRow, error) {
	if err := p.wait(ctx); err != nil {
		return store.JobRow{}, err
	}
	return p.fakeStore.Job(ctx, ns, name)
}

// A database that hangs costs the first caller ten seconds and the next ones, until it is back, two at most, of which most
// are answered at once; the database is asked no more than before. When it is back, so is the server.
func TestCallsDoNotPileUpBehindTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &paused{on: true}
		r := newRig(t, func(c *api.Config) {
			st.fakeStore = newFakeStore()
			c.Store = st
			c.Control = control.New(control.Config{Control: st, Reader: st, Owners: c.Owners, Now: c.Now})
		})
		began := time.Now()
		p := refused(r, get(one), http.StatusServiceUnavailable, "store_unavailable")
		if took := time.Since(began); took > 10*time.Second || p.Hint == "" {
			t.Errorf("the first caller waited %s: %+v", took, p)
		}
		before := st.asked
		began = time.Now()
		for range 100 {
			if w := r.do(get(one)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Fatalf("answered %d", w.Code)
			}
		}
		if took := time.Since(began); took > 3*time.Second || st.asked-before > 2 {
			t.Errorf("100 callers waited %s and asked %d times", took, st.asked-before)
		}
		refused(r, get("/readyz"), http.StatusServiceUnavailable, "store_unavailable")
		if w := r.do(get("/healthz")); w.Code != http.StatusOK {
			t.Errorf("the process lives, and says %d", w.Code)
		}
		if w := r.do(get("/api/v1/stats")); w.Code != http.StatusOK {
			t.Errorf("what needs no database is answered %d", w.Code)
		}
		st.on = false
		time.Sleep(time.Second)
		refused(r, get(one), http.StatusNotFound, "job_not_found")
		if w := r.do(get("/readyz")); w.Code != http.StatusOK {
			t.Errorf("the database is back, and the server says %d", w.Code)
		}
	})
}
