package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/partition"
)

// server is the scheduling centre in this process, the same one that `takt server` runs.
type server struct {
	url    string
	cancel context.CancelFunc
	log    *os.File
	ended  chan struct{} // closed when Run has returned
	err    error         // of Run; read after ended
}

func startServer(ctx context.Context, cfg Config, data string) (*server, error) {
	log, err := os.OpenFile(filepath.Join(data, "server.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	a, err := app.New(ctx, app.Config{
		DataDir: data, Listen: "127.0.0.1:0", Version: cfg.Build, Logger: slog.New(slog.NewTextHandler(log, nil)),
		// A third of the lease for a call: the machine is busy with the workers and the audit's files.
		Lease: partition.Lease{TTL: cfg.TTL, Beat: cfg.Beat, Margin: cfg.Margin, CallTimeout: cfg.TTL / 3},
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	// The server ends by stop, after the workers, and not with the context of the demo.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &server{url: "http://" + a.Addr(), cancel: cancel, log: log, ended: make(chan struct{})}
	go func() {
		s.err = a.Run(running)
		close(s.ended)
	}()
	return s, nil
}

// stop ends the server gracefully.
func (s *server) stop() error {
	s.cancel()
	<-s.ended
	return errors.Join(s.err, s.log.Close())
}
