package app_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
)

// TestC53WhatTheClockMeasures with all times divided by about three: the time of an attempt is neither that in the queue nor
// begun anew by a restart of the server, and what comes after it is refused. All three runs wait longer than they may take.
func TestC53WhatTheClockMeasures(t *testing.T) {
	t.Parallel()
	const limit, waits, restart = 6 * time.Second, 7 * time.Second, 5 * time.Second
	cfg := app.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", NoSync: true, Logger: slog.New(slog.DiscardHandler)}
	address, stop := serveCase(t, cfg)
	cfg.Listen = strings.TrimPrefix(address, "http://")
	c, err := takt.NewClient(takt.ClientConfig{Server: address})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: takt.JobSpec{Pool: name, Handler: "h",
			Timeout: &takt.TimeoutSpec{Attempt: takt.Duration(limit), Grace: takt.Duration(time.Second)},
			Retry:   &takt.RetrySpec{MaxAttempts: 2, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Millisecond)}}}}
		if _, err := c.PutJob(t.Context(), j, takt.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		made, err := c.Trigger(t.Context(), name, takt.TriggerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = made.Execution
	}
	time.Sleep(waits) // the case is about time that passes

	var alive atomic.Bool
	var took atomic.Int64
	begun := make(chan struct{})
	employ(t, address, "a", func(context.Context, *takt.Task) error { return nil })
	employ(t, address, "b", func(ctx context.Context, task *takt.Task) error {
		if task.Attempt() > 1 {
			return nil
		}
		began := time.Now()
		close(begun)
		<-ctx.Done()
		took.Store(int64(time.Since(began)))
		return ctx.Err()
	})
	employ(t, address, "c", func(ctx context.Context, task *takt.Task) error {
		if task.Attempt() > 1 {
			if alive.Load() {
				t.Error("the second attempt runs beside the first")
			}
			return nil
		}
		alive.Store(true)
		defer alive.Store(false)
		<-ctx.Done()
		time.Sleep(3 * time.Second) // it ignores the cancellation
		return task.SetResult("late")
	})
	<-begun
	time.Sleep(restart)
	stop()
	_, stop = serveCase(t, cfg)
	defer stop()

	for name, attempt := range map[string]int{"a": 1, "b": 2, "c": 2} {
		var s takt.ShardStatus
		until(t, name+" succeeds", func() bool {
			list, err := c.Shards(t.Context(), ids[name], takt.Page{})
			if err != nil || len(list.Items) != 1 {
				return false
			}
			s = list.Items[0]
			return s.State == "succeeded"
		})
		if s.Attempt != attempt || s.Result != nil {
			t.Errorf("%s: attempt %d with result %s", name, s.Attempt, s.Result)
		}
		if first := s.Attempts[0]; attempt > 1 && (first.Reason != "attempt_timeout" || first.EndedAt.Sub(*first.StartedAt) < limit) {
			t.Errorf("%s: the first attempt %+v", name, first)
		}
	}
	if d := time.Duration(took.Load()); d < limit-time.Second || d >= restart+limit {
		t.Errorf("the attempt that obeys was given %v of %v", d, limit)
	}
}

// serveCase starts a server; stop ends it in order.
func serveCase(t *testing.T, cfg app.Config) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, cfg)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return a.Addr(), func() { cancel(); running.Wait() }
}

// employ runs a worker with one slot until the test ends.
func employ(t *testing.T, address, pool string, h takt.Handler) {
	t.Helper()
	w, err := takt.NewWorker(takt.WorkerConfig{Server: address, Pool: pool, Slots: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("h", h)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the worker of pool %s ended with %v", pool, err)
		}
	})
}
