package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
)

const (
	devPool  = "dev"
	devSlots = 4

	// devAgentStop is how long the agent may take to give its work back before the server stops as well.
	devAgentStop = 4 * time.Second
	// devStop is when dev stops waiting for either of them.
	devStop = 4800 * time.Millisecond

	// devHandlers is what the agent of takt dev can do when no file says otherwise.
	devHandlers = `
apiVersion: takt/v1
kind: Handlers
handlers:
  hello:
    command:
      shell: |
        echo "hello from execution $TAKT_EXECUTION, shard $TAKT_SHARD_INDEX of $TAKT_SHARD_TOTAL"
        echo "my parameters: $(cat "$TAKT_PARAMS_FILE")"
`
	devJob = `{apiVersion: takt/v1, kind: Job, metadata: {name: hello}, spec: {pool: dev, handler: "%s", schedule: {every: 1m}}}`
)

// dev is a server and a local agent in one process.
type dev struct {
	g        *global
	data     string
	listen   string
	handlers string
	verbose  bool
	format   string
}

func newDevCommand(g *global) *cobra.Command {
	d := dev{g: g}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a server and a local agent in one process, for trying things out",
		Long: `Run a server and a local agent in one process until Ctrl-C, for trying things out. It serves this machine only
and asks for no token; what it knows is kept in the data directory.

The agent works for the pool ` + devPool + `. Without --handlers it has one handler, hello, which says what it was given.
Ctrl-C stops commands (SIGTERM, 3 s), gives their shards back and ends with exit code 0; a second one ends at once.`,
		Example: `  takt dev
  takt dev --data /tmp/try --listen 127.0.0.1:0 --handlers handlers.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&d.data, "data", "./takt-data", "directory of the database; made when it is missing")
	f.StringVar(&d.listen, "listen", app.DefaultListen, "loopback address to listen on; port 0 takes a free one")
	f.StringVar(&d.handlers, "handlers", "", "file that describes the agent's handlers (default: one handler, hello)")
	f.BoolVarP(&d.verbose, "verbose", "v", false, "log everything, not only what goes wrong")
	alsoEnv(f, "data", "listen", "handlers")
	addOutput(cmd, &d.format)
	return cmd
}

func (d *dev) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	if cmd.Flags().Changed("token-file") {
		return usage("--token-file: takt dev asks nobody for a token, for it serves this machine only; `takt server` takes one")
	}
	h, err := d.load(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	level := slog.LevelWarn
	if d.verbose {
		level = slog.LevelInfo
	}
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	a, err := app.New(ctx, app.Config{DataDir: d.data, Listen: d.listen, Version: buildVersion(), Logger: logger})
	if e, ok := errors.AsType[*job.Error](err); ok && e.Code == "token_required" {
		err = e.WithHint("takt dev serves this machine only; for others run `takt server --data %s --listen %s --token-file FILE`, and `takt agent` where the work is", d.data, d.listen)
	}
	if err != nil {
		return explain(ctx, "the server cannot start", err)
	}
	if err := d.greet(cmd.OutOrStdout(), a.Addr(), h); err != nil {
		return errors.Join(err, a.Close())
	}
	defer sayStopping(ctx, cmd.ErrOrStderr())()
	// Whatever ended ctx: what was asked to stop and could not is a fault of its own.
	return explain(context.WithoutCancel(ctx), "takt dev ended", d.serve(ctx, a, h, logger))
}

// load reads the handlers; nil when there is nothing that this system could run.
func (d *dev) load(errOut io.Writer) (*agent.Handlers, error) {
	if d.handlers != "" {
		return loadHandlers(errOut, d.handlers)
	}
	if runtime.GOOS == "windows" { // no commands there
		return nil, nil
	}
	return agent.Parse("hello", []byte(devHandlers))
}

// serve runs both until ctx ends or one of them fails. The agent stops first, so that the server still
// takes in what it gives back.
func (d *dev) serve(ctx context.Context, a *app.App, h *agent.Handlers, logger *slog.Logger) error {
	agentCtx, stopAgent := context.WithCancel(ctx)
	defer stopAgent()
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	var wg sync.WaitGroup
	var agentErr, serverErr error
	failed := make(chan error, 1) // the server's end, should it be left behind the agent's
	wg.Go(func() { defer stopAgent(); serverErr = a.Run(serverCtx); failed <- serverErr })
	wg.Go(func() {
		defer stopServer()
		if h == nil {
			<-agentCtx.Done()
			return
		}
		if awaitReady(agentCtx, a.Addr()) {
			agentErr = d.work(agentCtx, a.Addr(), h, logger)
		}
	})
	<-agentCtx.Done()
	late := time.AfterFunc(devAgentStop, stopServer)
	defer late.Stop()
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
		return errors.Join(serverErr, agentErr)
	case <-time.After(devStop):
		// The end of this process ends the commands (their guards see to it) and frees the directory; what was
		// not given back is lost by its lease, as after any worker's death.
		logger.Warn("not everything ended in time; leaving it: its shards run again when their leases are over")
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}
}

// awaitReady asks until the server takes calls, so that its agent need not be told to wait; false: ctx ended first.
func awaitReady(ctx context.Context, address string) bool {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
		if err != nil {
			return true // the agent will say what is wrong with the address
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			if resp.Body.Close() == nil && resp.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

func (d *dev) work(ctx context.Context, address string, h *agent.Handlers, logger *slog.Logger) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the agent does not find its own program, which guards its commands: %w", err)
	}
	state, err := filepath.Abs(filepath.Join(d.data, "agent"))
	if err != nil {
		return fmt.Errorf("place of the agent's notes: %w", err)
	}
	return agent.Run(ctx, agent.Config{
		Worker: takt.WorkerConfig{Server: "http://" + address, Namespace: d.g.namespace, Pool: devPool, Slots: devSlots,
			Build: buildVersion(), Logger: logger},
		Handlers: h, State: state, Guard: []string{self, agentGuard},
	})
}

// greet says where it is and what to try.
func (d *dev) greet(w io.Writer, address string, h *agent.Handlers) error {
	server := "http://" + address
	var names []string
	if h != nil {
		names = slices.Sorted(maps.Keys(h.Handlers))
	}
	if d.format != "table" {
		return printData(w, d.format, map[string]any{"address": address, "server": server, "openapi": server + "/api/v1/openapi.json",
			"data": d.data, "pool": devPool, "handlers": names})
	}
	handler := "hello" // the job to try runs what is there
	if len(names) > 0 && !slices.Contains(names, handler) {
		handler = h.First
	}
	at, ns := "", ""
	if address != app.DefaultListen {
		at = " --server " + server
	}
	if d.g.namespace != "default" {
		ns = " -n " + d.g.namespace
	}
	able := "no handlers: commands cannot be run on this system, give --handlers with http calls"
	if h != nil {
		able = "handlers: " + strings.Join(names, ", ")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %s: %w", address, err)
	}
	_, err = fmt.Fprintf(w, `takt dev is up: a server and an agent on this machine only; data in %[1]s

  address  %[2]s port %[3]s
  API      %[4]s/api/v1/openapi.json   (no token needed)
  agent    pool %[5]s, %[6]s

Try next, in another terminal:

  echo '%[7]s' | takt apply -f -%[8]s%[9]s
  takt trigger hello --wait%[8]s%[9]s
  takt get executions%[8]s%[9]s

Ctrl-C ends it.
`, d.data, host, port, server, devPool, able, fmt.Sprintf(devJob, handler), at, ns)
	return err
}
