package bench

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/taktsched/takt/internal/app"
)

// Server is a server of a run's own, in this process, on a loopback port.
type Server struct {
	url    string
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned
	err    error         // of Run; read after ended
}

// Serve starts one as takt server does; cfg.Listen is set here.
func Serve(ctx context.Context, cfg app.Config) (*Server, error) {
	cfg.Listen = "127.0.0.1:0"
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	a, err := app.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	// It ends by Stop, after the workers, and not with the context of the run.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{url: "http://" + a.Addr(), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = a.Run(running)
	}()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// URL is where it listens.
func (s *Server) URL() string { return s.url }

// Stop ends it gracefully.
func (s *Server) Stop() error {
	s.cancel()
	<-s.ended
	return s.err
}

// ready waits until every partition has an owner.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return errors.Join(errors.New("the server ended before it was ready"), s.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
