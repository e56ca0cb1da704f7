package peer_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/peer"
	"github.com/taktsched/takt/internal/store"
)

// owner answers everything so, and tells of each call.
func owner(t *testing.T, incarnation string, status int, body string) (store.Server, chan struct{}) {
	t.Helper()
	asked := make(chan struct{}, 8)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		w.Header().Set(peer.HeaderServed, "1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	s.Incarnation = incarnation
	return s, asked
}

const noOwner = `{"kind":"no_owner","code":"no_owner"}`

// waiting makes Peers whose patience is no matter of the test.
func waiting(t *testing.T, d *directory) *peer.Peers {
	t.Helper()
	return newPeers(t, d, func(c *peer.Config) { c.CallTimeout = time.Hour })
}

// result is what Pass gave.
type result struct {
	a      peer.Answer
	passed bool
	err    error
}

func pass(ctx context.Context, p *peer.Peers) chan result {
	done := make(chan result, 1)
	go func() {
		a, passed, err := p.Pass(ctx, 3, peer.Call{Path: "/x", Wait: time.Minute})
		done <- result{a, passed, err}
	}()
	return done
}

// A call for a partition that changes hands waits for the next owner, whatever the former one has said.
func TestCallsWaitForTheNextOwner(t *testing.T) {
	t.Parallel()
	next, asked := owner(t, "c-1", http.StatusOK, "{}")
	former, refused := owner(t, "b-1", http.StatusServiceUnavailable, noOwner)
	gone := store.Server{Incarnation: "b-1", Name: "b", Address: "http://127.0.0.1:1", Key: key}
	for name, d := range map[string]*directory{
		"released":        {none: true, moves: true},
		"owner gives up":  {owner: former, epoch: 7},
		"taken over here": {owner: former, epoch: 7},
		"its process ended": {owner: gone, epoch: 7, onLook: func(d *directory) {
			d.owner, d.epoch = next, 8
		}},
	} {
		p := waiting(t, d)
		done := pass(t.Context(), p)
		switch name {
		case "released":
			d.change(func(d *directory) { d.owner, d.epoch, d.none = next, 8, false })
		case "owner gives up":
			<-refused
			d.change(func(d *directory) { d.owner, d.epoch = next, 8 })
		case "taken over here":
			<-refused
			d.change(func(d *directory) { d.local = true })
			if r := <-done; r.passed || r.err != nil {
				t.Errorf("%s: %+v, want a call that is answered here", name, r)
			}
			continue
		}
		if r := <-done; !r.passed || r.err != nil || r.a.Status != http.StatusOK {
			t.Errorf("%s: %+v, want the answer of the next owner", name, r)
		}
		<-asked
	}
}

// Nobody waits where nobody is to be expected, and who waits does so for a time.
func TestCallsDoNotWaitInVain(t *testing.T) {
	t.Parallel()
	t.Run("nobody is coming", func(t *testing.T) {
		if r := <-pass(t.Context(), waiting(t, &directory{none: true})); r.passed || r.err != nil {
			t.Errorf("%+v, want a call that is refused here", r)
		}
	})
	t.Run("nobody has come", func(t *testing.T) {
		p := newPeers(t, &directory{none: true, moves: true}, func(c *peer.Config) { c.CallTimeout = 100 * time.Millisecond })
		if r := <-pass(t.Context(), p); r.passed || r.err != nil {
			t.Errorf("%+v, want a call that is refused here", r)
		}
	})
	t.Run("the caller is gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		looked := make(chan struct{}, 1)
		p := waiting(t, &directory{none: true, moves: true, onLook: func(*directory) { cancel(); looked <- struct{}{} }})
		if r := <-pass(ctx, p); r.passed {
			t.Errorf("%+v", r)
		}
		<-looked
	})
	t.Run("the owner refuses for another reason", func(t *testing.T) {
		s, _ := owner(t, "b-1", http.StatusServiceUnavailable, `{"code":"store_unavailable"}`)
		if r := <-pass(t.Context(), waiting(t, &directory{owner: s, epoch: 7})); !r.passed || r.a.Status != http.StatusServiceUnavailable {
			t.Errorf("%+v, want its answer", r)
		}
	})
	t.Run("the owner is dead", func(t *testing.T) { // and its row is not: a look has shown that
		d := &directory{owner: store.Server{Incarnation: "b-1", Address: "http://127.0.0.1:1", Key: key}, epoch: 7}
		if r := <-pass(t.Context(), waiting(t, d)); !r.passed || job.KindOf(r.err) != job.KindNoOwner {
			t.Errorf("%+v, want no_owner", r)
		}
	})
	t.Run("this server stops", func(t *testing.T) {
		s, refused := owner(t, "b-1", http.StatusServiceUnavailable, noOwner)
		p := waiting(t, &directory{owner: s, epoch: 7})
		done := pass(t.Context(), p)
		<-refused
		p.Stop()
		if r := <-done; !r.passed || r.a.Status != http.StatusServiceUnavailable {
			t.Errorf("%+v, want the refusal", r)
		}
	})
}

// A call that another server has sent waits for the engine that is being loaded, and for nothing else.
func TestCallsWaitForTheEngine(t *testing.T) {
	t.Parallel()
	d := &directory{none: true, moves: true, loading: true}
	p := waiting(t, d)
	done := make(chan struct{})
	go func() { p.AwaitHere(t.Context(), 3, nil); close(done) }()
	select {
	case <-done:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond): // can only be too short to notice
	}
	d.change(func(d *directory) { d.loading = false })
	<-done
}
