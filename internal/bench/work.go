package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/taktsched/takt"
)

const (
	handler = "noop"

	startPatience = 15 * time.Second // for a worker's session
)

// poolName is the name of a pool, counted from 0.
func poolName(i int) string { return fmt.Sprintf("noop-%d", i+1) }

// crew are the workers of a run.
type crew struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	errs   chan error
}

// hire starts the workers and waits until the server knows them all.
func hire(ctx context.Context, cfg *Config, client *takt.Client, t *tally, run func(context.Context, *takt.Task) error) (*crew, error) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &crew{cancel: cancel, errs: make(chan error, cfg.Pools*cfg.Workers)}
	for i := range cfg.Pools * cfg.Workers {
		w, err := takt.NewWorker(takt.WorkerConfig{Server: cfg.Server, Namespace: cfg.Namespace, Pool: poolName(i % cfg.Pools), Name: fmt.Sprintf("bench-%d", i+1),
			Slots: cfg.Slots, Token: cfg.Token, Logger: cfg.Logger, HTTPClient: &http.Client{Transport: &listener{next: transport(4), tally: t}}})
		if err != nil {
			cancel()
			return nil, errors.Join(err, c.dismiss())
		}
		w.Handle(handler, run)
		c.wg.Go(func() {
			if err := w.Run(working); err != nil {
				c.errs <- err
			}
		})
	}
	if err := c.settle(ctx, cfg, client); err != nil {
		return nil, errors.Join(err, c.dismiss())
	}
	return c, nil
}

// run notes the begin of a handler.
func (t *tally) run(_ context.Context, task *takt.Task) error {
	n, ok := numberIn(task.Params())
	if !ok {
		n = -1
	}
	t.begun(n, task.Execution())
	return nil
}

func (c *crew) settle(ctx context.Context, cfg *Config, client *takt.Client) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for pool := 0; pool < cfg.Pools; {
		list, err := client.Workers(ctx, poolName(pool))
		if err == nil && len(list.Items) >= cfg.Workers {
			pool++
			continue
		}
		select {
		case err := <-c.errs:
			return err
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d of %d workers of pool %s have a session after %v", len(list.Items), cfg.Workers, poolName(pool), startPatience), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// dismiss ends the workers gracefully.
func (c *crew) dismiss() error {
	c.cancel()
	c.wg.Wait()
	close(c.errs)
	var errs []error
	for err := range c.errs {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// listener is a worker's transport that notes which ends the server has acknowledged: then they are durable.
type listener struct {
	next  http.RoundTripper
	tally *tally
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasSuffix(r.URL.Path, "/worker/report") || r.GetBody == nil {
		return resp, err //nolint:wrapcheck // a transport passes errors on
	}
	body, err := r.GetBody()
	if err != nil {
		return resp, nil //nolint:nilerr // the check at the end misses the ends of this report, and says so
	}
	said, err := io.ReadAll(body)
	if err == nil {
		l.tally.acknowledged(endsIn(string(said)))
	}
	return resp, nil
}

// endsIn are the executions of the items of kind done in a report as the SDK writes it. It is read by its words
// rather than decoded, so that the measuring takes little of what is measured.
func endsIn(report string) []string {
	const execution, done = `"execution":"`, `"kind":"done"`
	ends := make([]string, 0, strings.Count(report, done))
	for {
		at := strings.Index(report, done)
		if at < 0 {
			return ends
		}
		if from := strings.LastIndex(report[:at], execution); from >= 0 {
			id, _, _ := strings.Cut(report[from+len(execution):at], `"`)
			ends = append(ends, id)
		}
		report = report[at+len(done):]
	}
}
