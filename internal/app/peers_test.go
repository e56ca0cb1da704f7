package app_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// Servers that speak TLS reach each other when they trust the certificate, and say so when they do not.
func TestPeersOverTLS(t *testing.T) {
	cert, key := certificate(t)
	for _, ca := range []string{cert, ""} {
		st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), Partitions: 4, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		var apps []*app.App
		for _, name := range []string{"a", "b"} {
			a, err := app.New(t.Context(), app.Config{Store: st, Listen: "127.0.0.1:0", Server: name, TLSCert: cert, TLSKey: key, PeerCA: ca})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- a.Run(ctx) }()
			t.Cleanup(func() {
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			apps = append(apps, a)
		}
		for p := range 4 {
			until(t, "an owner that both know", func() bool {
				h, ok := apps[0].Node().Owner(p)
				g, known := apps[1].Node().Owner(p)
				return ok && known && h.Local != g.Local
			})
		}
		c, err := takt.NewClient(takt.ClientConfig{Server: "https://" + apps[0].Addr(), CAFile: cert, RetryFor: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var list takt.ServerList
		until(t, "the rows of both", func() bool {
			if list, err = c.Servers(t.Context()); err != nil {
				t.Fatal(err)
			}
			return len(list.Items) == 2
		})
		for _, s := range list.Items {
			if !strings.HasPrefix(s.Address, "https://") || (s.UptimeMs != nil) != (s.Self || ca != "") {
				t.Errorf("with the CA %q: %+v", ca, s)
			}
		}
	}
}

// A worker that knows several servers goes on when one of them dies: on whichever is left, with the same session.
func TestWorkerOutlivesAServer(t *testing.T) {
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), Partitions: 4, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	lease := partition.Lease{TTL: 6 * time.Second}
	var addresses []string
	var stops []func()
	for _, name := range []string{"a", "b", "c"} {
		a, err := app.New(t.Context(), app.Config{Store: st, Listen: "127.0.0.1:0", Server: name, Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		end := func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			done <- nil
		}
		t.Cleanup(end)
		stops, addresses = append(stops, end), append(addresses, a.Addr())
	}
	all := strings.Join(addresses, ",")
	c, err := takt.NewClient(takt.ClientConfig{Server: all, RetryFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	started, goOn := make(chan int64, 4), make(chan struct{})
	w, err := takt.NewWorker(takt.WorkerConfig{Server: all, Pool: "p", Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("h", func(ctx context.Context, task *takt.Task) error {
		started <- task.Token()
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	if _, err := c.PutJob(t.Context(), takt.Job{APIVersion: "takt/v1", Kind: "Job", Metadata: takt.JobMetadata{Name: "j"}, Spec: takt.JobSpec{Pool: "p", Handler: "h"}}, takt.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	x, err := c.Trigger(t.Context(), "j", takt.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	stops[0]() // it was the first of the list: all have asked it so far
	second, err := c.Trigger(t.Context(), "j", takt.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	close(goOn)
	for _, id := range []string{x.Execution, second.Execution} {
		e, err := c.Wait(t.Context(), id)
		if err != nil || e.State != "succeeded" {
			t.Errorf("%+v, %v", e, err)
		}
		sh, err := c.Shards(t.Context(), id, takt.Page{})
		if err != nil || len(sh.Items) != 1 || sh.Items[0].Attempt != 1 || sh.Items[0].Losses != 0 {
			t.Errorf("%+v, %v", sh, err)
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
