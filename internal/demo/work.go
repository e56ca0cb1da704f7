package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/taktsched/takt"
)

// Pool, Handler and JobName are what the demo's job is made of.
const (
	Pool    = "demo"
	Handler = "index"
	JobName = "demo-index"
)

// WorkConfig is what a worker process of the demo is told.
type WorkConfig struct {
	Server string
	Name   string
	Slots  int
	Build  string
	Parent io.Reader // ends with the process that started this one
	Log    io.Writer
}

// ErrOrphan is returned by Work when the process that started this one is gone.
var ErrOrphan = errors.New("demo: the demo is gone, so its worker ends")

// Work runs a worker until ctx ends or the parent is gone; then it returns at once, whatever handlers do,
// and the process should end.
func Work(ctx context.Context, cfg WorkConfig) error {
	w, err := takt.NewWorker(takt.WorkerConfig{
		Server: cfg.Server, Pool: Pool, Name: cfg.Name, Slots: cfg.Slots, Build: cfg.Build,
		Grace: -1, Logger: slog.New(slog.NewTextHandler(cfg.Log, nil)),
	})
	if err != nil {
		return err
	}
	x := &indexer{worker: cfg.Name, client: &http.Client{Timeout: 10 * time.Second}}
	w.Handle(Handler, x.run)
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, cfg.Parent) // nothing is ever sent: it ends when the parent does
		close(orphaned)
	}()
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	select {
	case err := <-ran:
		if err != nil {
			return fmt.Errorf("run worker %s: %w", cfg.Name, err)
		}
		return nil
	case <-orphaned:
		return ErrOrphan
	}
}
