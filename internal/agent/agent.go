package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/taktsched/takt"
)

// Config is what an agent is made of. Worker (as the SDK wants it), Handlers and, when one of them is a
// command, State and Guard must be set. Worker.Grace is the agent's own business.
type Config struct {
	Worker   takt.WorkerConfig
	Handlers *Handlers
	State    string   // directory in which attempts are noted; made with mode 0700 when missing
	Guard    []string // command line of a program that calls Guard with its standard input

	// Output is the sink of one stream ("stdout" or "stderr") of an attempt. It gets what the command wrote
	// byte for byte, and nothing after the handler has returned. nil: takt.Task.Output, the execution's log.
	Output func(t *takt.Task, stream string) io.Writer

	// Lookup resolves the hosts of HTTP calls; nil: as the system does.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// stopGrace bounds the grace of commands when the agent stops: Ctrl-C ends it in less than 5 s.
const stopGrace = 3 * time.Second

// Agent is a worker that runs commands and HTTP calls.
type Agent struct {
	cfg   Config
	log   *slog.Logger
	state *state // nil without commands
}

// Run runs an agent until ctx ends; then it stops its commands, gives their shards back and returns nil.
// Before it takes any work it kills what an agent before it left on this machine in the same state
// directory. Errors are those of takt.Worker.Run and of the state directory.
//
// The process becomes the reaper of orphans of the processes that it starts (Linux).
func Run(ctx context.Context, cfg Config) (err error) {
	a := &Agent{cfg: cfg, log: cfg.Worker.Logger}
	if a.log == nil {
		a.log = slog.Default()
	}
	if a.cfg.Output == nil {
		a.cfg.Output = (*takt.Task).Output
	}
	cfg.Worker.Grace = -1 // a command that is to stop is told at once and has its own grace
	w, err := takt.NewWorker(cfg.Worker)
	if err != nil {
		return err
	}
	commands := false
	for name, h := range cfg.Handlers.Handlers {
		if h.Command != nil {
			commands = true
			w.Handle(name, (&commandHandler{agent: a, spec: h}).run)
		} else {
			w.Handle(name, newHTTPHandler(name, h.HTTP, cfg.Lookup).run)
		}
	}
	if commands {
		if err := a.prepare(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.state.close()) }()
	}
	return w.Run(ctx)
}

// prepare makes this process one that can answer for commands.
func (a *Agent) prepare(ctx context.Context) error {
	if err := errors.Join(adopt(), seal()); err != nil {
		return err
	}
	st, err := openState(a.cfg.State)
	if err != nil {
		return err
	}
	if err := st.recover(ctx, a.log); err != nil {
		return errors.Join(err, st.close())
	}
	a.state = st
	return nil
}
